"""Section 3.4: one matrix, three uses, scaled by √d_model on the way in and not on the way out."""

import math
from collections.abc import Callable

import pytest
import torch
from torch.testing import assert_close

from transduce.model import ModelConfig, Transformer
from transduce.model.embedding import Embeddings
from transduce.special_tokens import SpecialTokens

MATRICES = ("source_VD", "target_VD", "output_VD")


def test_a_token_is_its_row_times_the_root_of_the_width(make_model: Callable[..., Transformer]) -> None:
    embeddings = make_model().embeddings
    tokens = torch.tensor([[3, 30], [0, 3]])
    expected = torch.stack([embeddings.source_VD[row] for row in tokens]) * math.sqrt(14)
    assert_close(embeddings.embed_source(tokens), expected)
    assert_close(embeddings.embed_target(tokens), expected)


@pytest.mark.parametrize(
    ("tied", "groups"),
    [
        ("all", [{"source_VD", "target_VD", "output_VD"}]),
        ("decoder", [{"source_VD"}, {"target_VD", "output_VD"}]),
        ("inputs", [{"source_VD", "target_VD"}, {"output_VD"}]),
        ("none", [{"source_VD"}, {"target_VD"}, {"output_VD"}]),
    ],
)
def test_a_tied_matrix_is_one_tensor(
    make_config: Callable[..., ModelConfig], tied: str, groups: list[set[str]]
) -> None:
    embeddings = Embeddings(make_config(tied=tied))
    by_storage: dict[int, set[str]] = {}
    for name, tensor in embeddings.state_dict().items():
        by_storage.setdefault(tensor.data_ptr(), set()).add(name)
    assert sorted(map(sorted, by_storage.values())) == sorted(map(sorted, groups))
    assert sum(parameter.numel() for parameter in embeddings.parameters()) == len(groups) * 31 * 14


@pytest.mark.parametrize("tied", ["all", "decoder", "inputs", "none"])
def test_a_state_names_all_three_and_comes_back_tied(make_model: Callable[..., Transformer], tied: str) -> None:
    saved, loaded = make_model(tied=tied), make_model(tied=tied)
    state = {name: tensor.clone() for name, tensor in saved.state_dict().items()}  # as from a file: nothing shared
    assert {f"embeddings.{name}" for name in MATRICES} <= state.keys()
    loaded.load_state_dict(state)
    for name in MATRICES:
        assert torch.equal(getattr(loaded.embeddings, name), getattr(saved.embeddings, name))
    assert len(set(map(id, loaded.embeddings.parameters()))) == len(set(map(id, saved.embeddings.parameters())))


def test_one_matrix_gathers_the_gradients_of_its_three_uses(make_model: Callable[..., Transformer]) -> None:
    tied, apart = make_model(tied="all"), make_model(tied="none")
    apart.load_state_dict(tied.state_dict())
    for model in (tied, apart):
        hidden_BTD = model(torch.tensor([[5, 6, 7]]), torch.tensor([[8, 9]]))
        (hidden_BTD @ model.output.matrix_VD.T).logsumexp(dim=-1).sum().backward()
    gradients = [getattr(apart.embeddings, name).grad for name in MATRICES]
    assert all(gradient.abs().sum() > 0 for gradient in gradients)
    assert_close(tied.embeddings.source_VD.grad, sum(gradients))


def test_the_output_matrix_is_used_as_it_is(make_model: Callable[..., Transformer]) -> None:
    model = make_model(tied="none")
    assert model.output.matrix_VD is model.embeddings.output_VD


@pytest.mark.parametrize("scale", [1.0, 2.5])
def test_another_factor_takes_the_place_of_the_root(make_model: Callable[..., Transformer], scale: float) -> None:
    embeddings = make_model(embedding_scale=scale).embeddings
    tokens = torch.tensor([[3, 30]])
    assert_close(embeddings.embed_source(tokens)[0], scale * embeddings.source_VD[[3, 30]])


@pytest.mark.parametrize("start", [2, 3])
def test_a_start_of_zeros_is_the_position_alone(make_config: Callable[..., ModelConfig], start: int) -> None:
    tokens = SpecialTokens(padding=0, unknown=1, start=start, end=3)  # 3: as in fairseq, where both are one
    usual, zeros = (Embeddings(make_config(start_from_zeros=is_on), tokens) for is_on in (False, True))
    usual.load_state_dict(zeros.state_dict())
    inputs_BT = torch.tensor([[start, 7, 8]])
    expected_BTD = usual.embed_target(inputs_BT)
    expected_BTD[:, 0] = 0.0
    assert torch.equal(zeros.embed_target(inputs_BT), expected_BTD)
    assert torch.equal(zeros.embed_source(inputs_BT), usual.embed_source(inputs_BT))


def test_an_output_bias_starts_at_0_and_is_added_to_the_logits(make_model: Callable[..., Transformer]) -> None:
    model = make_model(output_bias=True)
    bias_V = model.output.bias_V
    assert bias_V is model.embeddings.output_bias_V
    assert bias_V is not None
    assert torch.equal(bias_V, torch.zeros(31).double())
    hidden_BTD = model(torch.tensor([[5, 6, 7]]), torch.tensor([[8, 9]]))
    with torch.no_grad():
        bias_V.copy_(torch.arange(31))
    assert_close(model.output.logits(hidden_BTD), hidden_BTD @ model.output.matrix_VD.T + torch.arange(31))
    assert make_model().output.bias_V is None
