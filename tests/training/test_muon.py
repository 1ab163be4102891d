"""Muon against the singular value decomposition, torch's own, and Adam for what is left to it."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from transduce.model.transformer import Transformer
from transduce.networks.network import MatrixView
from transduce.training.config import TrainingConfig
from transduce.training.flat_parameters import FlatParameters
from transduce.training.muon import Muon, orthogonal
from transduce.training.optimization import Adam
from transduce.training.step import optimizer_of


@pytest.mark.parametrize("shape", [(13, 13), (29, 17), (17, 29)])
def test_singular_values_become_alike_and_their_vectors_stay(shape: tuple[int, int]) -> None:
    torch.manual_seed(3)
    u, _, v = torch.linalg.svd(torch.randn(5, *shape, dtype=torch.float64), full_matrices=False)
    matrices = u @ torch.diag_embed(torch.linspace(0.07, 1.0, min(shape), dtype=torch.float64)) @ v
    turned = u.mT @ orthogonal(matrices) @ v.mT  # diagonal if the vectors are the same
    values = turned.diagonal(dim1=-2, dim2=-1)
    assert float(values.min()) > 0.6
    assert float(values.max()) < 1.3
    torch.testing.assert_close(turned, torch.diag_embed(values), atol=1e-9, rtol=0.0)


def test_in_bf16_singular_values_become_alike_too() -> None:
    """Rounding turns the vectors by a few hundredths, and every singular value still comes near 1."""
    torch.manual_seed(3)
    u, _, v = torch.linalg.svd(torch.randn(5, 48, 32), full_matrices=False)
    matrices = u @ torch.diag_embed(torch.linspace(0.07, 1.0, 32)) @ v
    turned = u.mT @ orthogonal(matrices, product_dtype=torch.bfloat16) @ v.mT
    values = turned.diagonal(dim1=-2, dim2=-1)
    assert turned.dtype == torch.float32
    assert float(values.min()) > 0.6
    assert float(values.max()) < 1.3
    torch.testing.assert_close(turned, torch.diag_embed(values), atol=0.05, rtol=0.0)


def test_a_bf16_run_takes_its_products_in_bf16(make_model: Callable[..., Transformer]) -> None:
    """And goes nearly, but not quite, where float32 takes it."""
    first = weights(make_model())
    by_precision = {}
    for dtype in (None, torch.bfloat16):
        model = make_model()
        config = TrainingConfig(optimizer="muon")
        moved(optimizer_of(model, FlatParameters(model), config, product_dtype=dtype), steps=range(1))
        by_precision[dtype] = weights(model)
    for name, exact in by_precision[None].items():
        way, off = exact - first[name], by_precision[torch.bfloat16][name] - exact
        assert float(off.norm()) < 0.05 * float(way.norm())
        assert bool(off.any()) == (".layers." in name and exact.dim() == 2)


def test_what_has_no_gradient_is_not_moved_and_size_plays_no_part() -> None:
    assert not orthogonal(torch.zeros(2, 3, 5)).any()
    matrices = torch.randn(2, 3, 5, dtype=torch.float64)
    torch.testing.assert_close(orthogonal(1e3 * matrices), orthogonal(matrices))


def layers() -> nn.Module:
    torch.manual_seed(5)
    return nn.ModuleDict({"wide": nn.Linear(19, 11), "tall": nn.Linear(11, 19), "same": nn.Linear(11, 19)})


MATRICES = ("wide.weight", "tall.weight", "same.weight")
VIEWS = [MatrixView(name, (1, *shape)) for name, shape in zip(MATRICES, [(11, 19), (19, 11), (19, 11)], strict=True)]


def gradients(parameters: FlatParameters, step: int) -> None:
    parameters.gradients.copy_(torch.randn(parameters.gradients.shape, generator=torch.manual_seed(step)))


def moved(optimizer: Adam, *, steps: range) -> None:
    for step in steps:
        gradients(optimizer.parameters, step)
        optimizer.step(rate=0.03)


def weights(module: nn.Module) -> dict[str, Tensor]:
    return {name: parameter.detach().clone() for name, parameter in module.named_parameters()}


@pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="this torch has no Muon to compare with")
def test_matrices_go_where_torch_s_muon_takes_them() -> None:
    """Which computes in bf16, so that a step of it is off by a few hundredths of its length."""
    ours, theirs = layers(), layers()
    own = Muon(FlatParameters(ours), TrainingConfig(), matrices=VIEWS)
    other = FlatParameters(theirs)
    named = dict(theirs.named_parameters())
    oracle = torch.optim.Muon(
        [named[name] for name in MATRICES], lr=0.03, weight_decay=0.0, adjust_lr_fn="match_rms_adamw"
    )
    first = weights(ours)
    for step in range(4):
        moved(own, steps=range(step, step + 1))
        gradients(other, step)
        oracle.step()
    for name in MATRICES:
        way = weights(ours)[name] - first[name]
        assert float((way - (weights(theirs)[name] - first[name])).norm()) < 0.05 * float(way.norm())


def test_all_others_are_adam_s() -> None:
    by_muon, by_adam = layers(), layers()
    moved(Muon(FlatParameters(by_muon), TrainingConfig(), matrices=VIEWS), steps=range(4))
    moved(Adam(FlatParameters(by_adam), TrainingConfig()), steps=range(4))
    for name, weight in weights(by_muon).items():
        assert torch.allclose(weight, weights(by_adam)[name], rtol=1e-5) == (name not in MATRICES)


def test_the_blocks_of_a_parameter_are_matrices_of_their_own() -> None:
    """Two gates that lie in one parameter move as if each were a parameter."""
    together, apart = nn.Linear(5, 14, bias=False), nn.ModuleList(nn.Linear(5, 7, bias=False) for _ in range(2))
    with torch.no_grad():
        for gate, rows in zip(apart, together.weight.split(7), strict=True):
            gate.weight.copy_(rows)  # type: ignore[operator]
    one = Muon(FlatParameters(together), TrainingConfig(), matrices=[MatrixView("weight", (2, 7, 5))])
    gates = [MatrixView(f"{number}.weight", (1, 7, 5)) for number in range(2)]
    two = Muon(FlatParameters(apart), TrainingConfig(), matrices=gates)
    gradient = torch.randn(14, 5)
    for optimizer in (one, two):
        for (_, part), rows in zip(
            optimizer.parameters.named_parts(optimizer.parameters.gradients),
            gradient.split(7) if optimizer is two else [gradient],
            strict=True,
        ):
            part.copy_(rows)
        optimizer.step(rate=0.03)
    torch.testing.assert_close(together.weight, torch.cat([gate.weight for gate in apart]))  # type: ignore[misc]


def test_restored_it_goes_on_to_the_bit() -> None:
    whole, first, second = layers(), layers(), layers()
    moved(Muon(FlatParameters(whole), TrainingConfig(), matrices=VIEWS), steps=range(6))
    before = Muon(FlatParameters(first), TrainingConfig(), matrices=VIEWS)
    moved(before, steps=range(3))
    after = Muon(FlatParameters(second), TrainingConfig(), matrices=VIEWS)
    after.parameters.values.copy_(before.parameters.values)
    after.restore({name: tensor.clone() for name, tensor in before.state().items()}, steps=3)
    moved(after, steps=range(3, 6))
    assert all(torch.equal(weight, weights(whole)[name]) for name, weight in weights(second).items())


def test_of_a_transformer_it_moves_the_layers_matrices(make_model: Callable[..., Transformer]) -> None:
    model = make_model()
    optimizer = optimizer_of(model, FlatParameters(model), TrainingConfig(optimizer="muon"))
    assert isinstance(optimizer, Muon)
    moved_by_muon = sum(len(matrices) for matrices in optimizer._of_shape.values())
    assert moved_by_muon == 6 + 10  # 4 of attention and 2 of the feed-forward; in the decoder 4 more
    first = weights(model)
    moved(optimizer, steps=range(1))
    assert all(not torch.equal(weight, first[name]) for name, weight in weights(model).items())


def test_a_run_that_began_before_there_was_a_choice_goes_on() -> None:
    assert "optimizer" not in TrainingConfig().trajectory()
    assert TrainingConfig(optimizer="muon").trajectory()["optimizer"] == "muon"
