"""Section 3: what the whole network must and must not depend on."""

from collections.abc import Callable
from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from transduce.model import ModelConfig, Transformer
from transduce.model.masks import visible_tokens
from transduce.model.transformer import Encoder
from transduce.networks.network import offset_by_one

OPTIONS: dict[str, dict[str, object]] = {
    "the paper": {},
    "pre-norm": {"norm": "pre"},
    "learned positions": {"positions": "learned", "d_model": 17},
    "no positions": {"positions": "none", "d_model": 17},
    "concatenated sinusoids": {"positions": "concatenated"},
    "unscaled": {"scores": "unscaled"},
    "additive": {"scores": "additive"},
    "attention biases": {"attention_bias": True},
    "attention dropout": {"attention_dropout": 0.3},
    "additive with dropout": {"scores": "additive", "attention_dropout": 0.3},
    "feed-forward dropout": {"feed_forward_dropout": 0.3},
    "dropout": {"dropout": 0.3},
    "gelu": {"activation": "gelu"},
    "silu": {"activation": "silu"},
    "ssru": {"decoder_mixer": "ssru"},
    "ssru with pre-norm": {"decoder_mixer": "ssru", "norm": "pre"},
    "halves of sinusoids from 2": {"positions": "sinusoidal_halves", "first_position": 2},
    "normed embeddings": {"embedding_norm": True, "embedding_scale": 1.0},
    "post-norm with a final norm": {"final_norm": True, "norm_epsilon": 1e-5},
    "a start of zeros and an output bias": {"start_from_zeros": True, "output_bias": True},
    "two vocabularies": {"source_vocabulary_size": 37, "tied": "decoder"},
    "untied": {"tied": "none"},
    "the decoder tied": {"tied": "decoder"},
    "the inputs tied": {"tied": "inputs"},
    "a deep encoder": {"encoder_layers": 3, "decoder_layers": 1},
    "a deep decoder": {"encoder_layers": 1, "decoder_layers": 3},
    "everything at once": {
        "norm": "pre", "positions": "learned", "d_model": 17, "scores": "additive", "attention_bias": True,
        "attention_dropout": 0.1, "feed_forward_dropout": 0.1, "dropout": 0.1, "activation": "gelu", "tied": "none",
        "encoder_layers": 3, "decoder_layers": 1,
    },
}  # fmt: skip
every_option = pytest.mark.parametrize("option", OPTIONS)
MakeModel = Callable[..., Transformer]


@every_option
def test_every_option_runs_and_every_weight_learns(
    make_config: Callable[..., ModelConfig], source_BS: Tensor, target_BT: Tensor, option: str
) -> None:
    model = Transformer(make_config(**OPTIONS[option]))
    hidden_BTD = model(source_BS, target_BT)
    assert hidden_BTD.shape == (3, 13, model.config.d_model)
    model.output.logits(hidden_BTD).log_softmax(dim=-1)[..., 5].sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert bool(parameter.grad.isfinite().all()), name
        if "W_K.bias" not in name:  # adding a constant to a query's scores changes nothing: its gradient is 0
            assert bool((parameter.grad != 0).any()), name


@every_option
def test_more_padding_changes_nothing(make_model: MakeModel, source_BS: Tensor, target_BT: Tensor, option: str) -> None:
    model = make_model(**OPTIONS[option])
    padding = torch.zeros(3, 5, dtype=torch.long)
    longer_source, longer_target = torch.cat([source_BS, padding], 1), torch.cat([target_BT, padding], 1)
    real_S, real_T = visible_tokens(source_BS), visible_tokens(target_BT)
    assert_close(model.encode(longer_source)[:, :11][real_S], model.encode(source_BS)[real_S])
    assert_close(model(longer_source, longer_target)[:, :13][real_T], model(source_BS, target_BT)[real_T])


@every_option
def test_a_sentence_does_not_depend_on_its_neighbours_in_the_batch(
    make_model: MakeModel, source_BS: Tensor, target_BT: Tensor, option: str
) -> None:
    model = make_model(**OPTIONS[option])
    together_BTD = model(source_BS, target_BT)
    for b, (source, target) in enumerate([(11, 5), (7, 13), (2, 3)]):
        alone_BTD = model(source_BS[b : b + 1, :source], target_BT[b : b + 1, :target])
        assert_close(together_BTD[b, :target], alone_BTD[0])


@every_option
def test_no_position_sees_a_later_one(make_model: MakeModel, source_BS: Tensor, option: str) -> None:
    model = make_model(**OPTIONS[option])
    label_BT = torch.randint(4, 31, (3, 13))
    before_BTD = model(source_BS, label_BT)
    for t in range(13):
        changed_BT = label_BT.clone()
        changed_BT[:, t] = (label_BT[:, t] + 1) % 27 + 4
        after_BTD = model(source_BS, changed_BT)
        # The label at t is the input at t + 1: it must be unseen up to t, and seen from there on.
        assert_close(after_BTD[:, : t + 1], before_BTD[:, : t + 1])
        if t < 12:
            assert bool((after_BTD[:, t + 1] != before_BTD[:, t + 1]).any())


def test_no_gradient_flows_from_a_later_position(make_model: MakeModel) -> None:
    model = make_model()
    memory_BSD = torch.randn(1, 11, 14).double()
    embedded_BTD = torch.randn(1, 13, 14).double().requires_grad_()
    hidden_BTD = model.decoder(embedded_BTD, memory_BSD)
    for t in range(13):
        (gradient_BTD,) = torch.autograd.grad(hidden_BTD[:, t].sin().sum(), embedded_BTD, retain_graph=True)
        seen_T = gradient_BTD[0].abs().sum(dim=-1) > 0
        assert seen_T.tolist() == [True] * (t + 1) + [False] * (12 - t)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("scores", ["scaled", "unscaled", "additive"])
def test_without_positions_the_encoder_commutes_with_every_permutation(
    make_model: MakeModel, norm: str, scores: str
) -> None:
    model = make_model(positions="none", norm=norm, scores=scores)
    source_BS = torch.randint(4, 31, (2, 11))
    for _ in range(5):
        order = torch.randperm(11)
        assert_close(model.encode(source_BS[:, order]), model.encode(source_BS)[:, order])


@pytest.mark.parametrize("positions", ["sinusoidal", "concatenated", "learned"])
def test_with_positions_order_matters(make_model: MakeModel, positions: str) -> None:
    model = make_model(positions=positions)
    source_BS = torch.randint(4, 31, (2, 11))
    order = torch.arange(10, -1, -1)
    assert (model.encode(source_BS[:, order]) - model.encode(source_BS)[:, order]).abs().max() > 1e-3


def test_a_source_that_is_all_padding_gives_finite_outputs_and_gradients(
    make_model: MakeModel, source_BS: Tensor, target_BT: Tensor
) -> None:
    model = make_model()
    source_BS[1] = 0
    hidden_BTD = model(source_BS, target_BT)
    assert bool(hidden_BTD.isfinite().all())
    hidden_BTD.sin().sum().backward()
    assert all(p.grad is not None and bool(p.grad.isfinite().all()) for p in model.parameters())


def test_the_output_is_offset_by_one() -> None:
    labels = torch.tensor([[7, 8, 9, 3], [5, 3, 0, 0]])
    assert offset_by_one(labels, start=2).tolist() == [[2, 7, 8, 9], [2, 5, 3, 0]]


def test_forward_is_encode_offset_and_decode(make_model: MakeModel, source_BS: Tensor, target_BT: Tensor) -> None:
    model = make_model()
    hidden_BTD = model.decode(
        offset_by_one(target_BT, start=2), model.encode(source_BS), source_visible_BS=visible_tokens(source_BS)
    )
    assert torch.equal(model(source_BS, target_BT), hidden_BTD)


def test_the_last_label_predicts_nothing(make_model: MakeModel, source_BS: Tensor) -> None:
    model = make_model()
    label_BT = torch.randint(4, 31, (3, 5))
    changed_BT = label_BT.clone()
    changed_BT[:, -1] = 3
    assert torch.equal(model(source_BS, label_BT), model(source_BS, changed_BT))


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_both_stacks_end_normalised(make_model: MakeModel, source_BS: Tensor, target_BT: Tensor, norm: str) -> None:
    model = make_model(norm=norm)
    for outputs in (model.encode(source_BS), model(source_BS, target_BT)):
        assert_close(outputs.mean(dim=-1), torch.zeros(outputs.shape[:2]).double())
        assert_close(outputs.var(dim=-1, correction=0), torch.ones(outputs.shape[:2]).double(), rtol=1e-4, atol=0)


def test_stacks_may_differ_in_depth(make_model: MakeModel) -> None:
    model = make_model(encoder_layers=3, decoder_layers=1)
    assert (len(model.encoder.layers), len(model.decoder.layers)) == (3, 1)


def test_dropout_falls_on_the_sum_of_embeddings_and_positions(make_config: Callable[..., ModelConfig]) -> None:
    encoder = Encoder(make_config(dropout=0.5))
    seen: list[Tensor] = []
    encoder.layers[0].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    encoder(torch.full((1, 199, 14), 5.0))
    assert 0.45 < (seen[0] == 0.0).float().mean().item() < 0.55


def test_each_named_dropout_is_where_it_is_named(make_model: MakeModel) -> None:
    model = make_model(dropout=0.2, feed_forward_dropout=0.3, attention_dropout=0.4)
    rates = {name: module.p for name, module in model.named_modules() if isinstance(module, nn.Dropout)}
    # 2 sums of embeddings and positions; 2 x 2 sub-layers of the encoder and 2 x 3 of the decoder.
    assert sum(rate == 0.2 for name, rate in rates.items() if "residual" in name) == 10
    assert [name for name, rate in rates.items() if rate == 0.2 and "residual" not in name] == [
        "encoder.dropout",
        "decoder.dropout",
    ]
    assert all(("feed_forward.dropout" in name) == (rate == 0.3) for name, rate in rates.items())


def test_only_training_is_random(make_model: MakeModel, source_BS: Tensor, target_BT: Tensor) -> None:
    model = make_model(dropout=0.2, feed_forward_dropout=0.3, attention_dropout=0.4)
    assert torch.equal(model(source_BS, target_BT), model(source_BS, target_BT))
    model.train()
    assert not torch.equal(model(source_BS, target_BT), model(source_BS, target_BT))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_half_precision_stays_near_the_exact_network(
    make_model: MakeModel, source_BS: Tensor, target_BT: Tensor, dtype: torch.dtype
) -> None:
    exact = make_model()
    expected_BTD = exact(source_BS, target_BT)
    actual_BTD = exact.to(dtype)(source_BS, target_BT)
    assert actual_BTD.dtype == dtype
    tolerance = 0.15 if dtype == torch.bfloat16 else 1e-4
    assert_close(actual_BTD.double(), expected_BTD, rtol=0, atol=tolerance)


def test_eighteen_attention_sublayers_in_the_base_model() -> None:
    with torch.device("meta"):
        model = Transformer(ModelConfig())
    names = [name for name, _ in model.named_modules() if name.endswith(("self_attention", "cross_attention"))]
    assert len(names) == 18
    assert all(first != second for first, second in pairwise(names))


def test_muon_moves_every_matrix_of_a_layer(make_model: MakeModel) -> None:
    model = make_model(decoder_mixer="ssru", decoder_layers=1, encoder_layers=1)
    shapes = {matrix.name: matrix.shape for matrix in model.matrices()}
    named = {name: parameter for name, parameter in model.named_parameters() if ".layers." in name}
    assert shapes.keys() == {name for name, parameter in named.items() if parameter.dim() == 2}
    assert shapes["decoder.layers.0.ssru.W.weight"] == shapes["decoder.layers.0.ssru.W_f.weight"] == (1, 14, 14)


def test_an_ssru_has_no_attention_to_show(make_model: MakeModel) -> None:
    blocks = make_model(decoder_mixer="ssru").attention([5, 6, 3], [7, 3])
    assert {name: block.weights_LHQK.shape for name, block in blocks.items()} == {
        "encoder": (2, 3, 3, 3),
        "cross": (2, 3, 2, 3),
    }


def test_each_vocabulary_has_its_own_rows(make_model: MakeModel) -> None:
    model = make_model(source_vocabulary_size=37, tied="decoder")
    assert model.embeddings.source_VD.shape == (37, 14)
    assert model.output.matrix_VD.shape == (31, 14)
    assert model(torch.tensor([[36, 3]]), torch.tensor([[30, 3]])).shape == (1, 2, 14)
