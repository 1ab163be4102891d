"""The network with the handwritten gradient against the plain one, whose gradient is autograd's."""

import pytest
import torch
from torch import Tensor, nn

from transduce.backpropagation import HandwrittenNetwork, handwritten
from transduce.backpropagation.dropout import KeyedDropout
from transduce.backpropagation.pullback import kept_bytes
from transduce.model import ModelConfig, Transformer

SIZES = {"vocabulary_size": 31, "layers": 2, "d_model": 14, "d_ff": 23, "heads": 7, "dropout": 0.0}
OPTIONS: list[dict[str, object]] = [
    {},
    {"norm": "pre"},
    {"attention_bias": True},
    {"positions": "learned"},
    {"positions": "none", "norm": "pre", "attention_bias": True},
    {"positions": "concatenated", "scores": "unscaled"},
    {"tied": "none"},
    {"tied": "inputs", "encoder_layers": 1, "decoder_layers": 3},
    {"heads": 3, "d_k": 5, "d_v": 5},
    {"activation": "gelu"},
    {"activation": "gelu_tanh"},
    {"activation": "gelu_sigmoid"},
    {"activation": "silu"},
]


def make_model(**changes: object) -> Transformer:
    torch.manual_seed(1706_03762)
    model = Transformer(ModelConfig.model_validate(SIZES | changes)).double()
    for parameter in model.parameters():  # so that no bias is 0 and no gain 1
        parameter.data = torch.randn_like(parameter) * 0.3
        parameter.grad = torch.zeros_like(parameter)
    return model


def padded(lengths: list[int]) -> Tensor:
    tokens = torch.randint(4, 31, (len(lengths), max(lengths)))
    return tokens.masked_fill(torch.arange(max(lengths)) >= torch.tensor(lengths)[:, None], 0)


def gradients(model: nn.Module) -> dict[str, Tensor]:
    found = {}
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None
        found[name] = parameter.grad.clone()
        parameter.grad.zero_()
    return found


def test_products_have_few_sizes_and_idle_rows_no_part_in_them() -> None:
    model = make_model(norm="pre")
    tokens = padded([11, 7, 2])
    network = HandwrittenNetwork(model, dtype=torch.float64)
    network.refresh()
    run = network.forward(tokens, tokens, dropout=KeyedDropout(1))
    assert run.padded_ND.size(0) == 32
    assert run.hidden_ND.size(0) == 20
    gradient_ND = torch.zeros_like(run.padded_ND)
    run.backward(gradient_ND)
    assert all(not gradient.any() for gradient in gradients(model).values())


@pytest.mark.parametrize("lengths", [([11, 7, 2], [5, 19, 3]), ([17], [1]), ([3, 3], [16, 16])])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_hidden_states_and_gradients_are_those_that_torch_derives(
    options: dict[str, object], lengths: tuple[list[int], list[int]]
) -> None:
    model = make_model(**options)
    source_BS, target_BT = padded(lengths[0]), padded(lengths[1])
    expected_ND = model(source_BS, target_BT)[target_BT != 0]
    gradient_ND = torch.randn_like(expected_ND)
    expected_ND.backward(gradient_ND)
    expected = gradients(model)

    network = HandwrittenNetwork(model, dtype=torch.float64)
    network.refresh()
    run = network.forward(source_BS, target_BT, dropout=KeyedDropout(1))
    torch.testing.assert_close(run.hidden_ND, expected_ND.detach())
    run.backward(gradient_ND)
    for name, gradient in gradients(model).items():
        assert torch.allclose(gradient, expected[name], rtol=1e-7, atol=1e-12), name


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_gradient_under_dropout_is_the_slope(norm: str) -> None:
    """The same key drops the same numbers, so the loss is a smooth function, and its slope can be measured."""
    model = make_model(norm=norm, dropout=0.2, attention_dropout=0.3, feed_forward_dropout=0.1)
    source_BS, target_BT = padded([11, 7, 2]), padded([5, 19, 3])
    network = HandwrittenNetwork(model, dtype=torch.float64)
    weight_ND = torch.randn(27, 14, dtype=torch.float64)

    def loss() -> float:
        network.refresh()
        run = network.forward(source_BS, target_BT, dropout=KeyedDropout(5))
        return float((run.hidden_ND * weight_ND).sum())

    network.refresh()
    network.forward(source_BS, target_BT, dropout=KeyedDropout(5)).backward(weight_ND)
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None
        direction, start, step = torch.randn_like(parameter), parameter.data.clone(), 1e-6
        values = []
        for sign in (1, -1):
            parameter.data = start + sign * step * direction
            values.append(loss())
        parameter.data = start
        slope = (values[0] - values[1]) / (2 * step)
        assert float((parameter.grad * direction).sum()) == pytest.approx(slope, rel=1e-5, abs=1e-6), name


def test_gradients_are_added_to_what_is_there() -> None:
    model, gradient_ND = make_model(), torch.randn(4, 14, dtype=torch.float64)
    network, tokens = HandwrittenNetwork(model, dtype=torch.float64), padded([4])
    network.refresh()
    for _ in range(2):
        network.forward(tokens, tokens, dropout=KeyedDropout(1)).backward(gradient_ND)
    twice = gradients(model)
    network.forward(tokens, tokens, dropout=KeyedDropout(1)).backward(gradient_ND)
    for name, once in gradients(model).items():
        torch.testing.assert_close(twice[name], 2 * once)


def test_bf16_stays_near_float32() -> None:
    model = make_model(d_model=64, heads=4, d_ff=128).float()
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    source_BS, target_BT = padded([11, 7, 2]), padded([5, 19, 3])
    found = []
    for dtype in (torch.float32, torch.bfloat16):
        network = HandwrittenNetwork(model, dtype=dtype)
        network.refresh()
        run = network.forward(source_BS, target_BT, dropout=KeyedDropout(1))
        torch.manual_seed(2)
        run.backward(torch.randn(run.hidden_ND.shape))
        found.append(torch.cat([gradient.flatten() for gradient in gradients(model).values()]))
    assert 0 < (found[1] - found[0]).norm() < 0.05 * found[0].norm()


def test_weights_are_read_when_it_is_told_to() -> None:
    model, tokens = make_model(), padded([4])
    network = HandwrittenNetwork(model, dtype=torch.float64)

    def run() -> Tensor:
        return network.forward(tokens, tokens, dropout=KeyedDropout(1)).hidden_ND

    network.refresh()
    before = run()
    with torch.no_grad():
        model.encoder.layers[0].feed_forward.W_1.weight += 1.0  # type: ignore[union-attr, operator]
    assert torch.equal(run(), before)
    network.refresh()
    assert not torch.allclose(run(), before)


def test_what_a_pass_keeps_is_counted_and_given_back() -> None:
    model = make_model()
    network = HandwrittenNetwork(model, dtype=torch.float64)
    network.refresh()
    few, many = padded([16] * 2), padded([16] * 8)
    passes = [network.forward(tokens, tokens, dropout=KeyedDropout(1)) for tokens in (few, many)]
    kept = [kept_bytes(each.backward) for each in passes]
    inner_bytes = 4 * 8 * 16 * 23 * 8  # the feed-forward networks' inner layers alone
    assert inner_bytes < kept[1] < 40 * inner_bytes
    assert kept[1] / kept[0] == pytest.approx(4.0, rel=0.1)
    passes[1].backward(torch.zeros_like(passes[1].hidden_ND))
    assert kept_bytes(passes[1].backward) < kept[1] / 10


@pytest.mark.parametrize(
    ("changes", "is_supported"),
    [({}, True), ({"activation": "gelu"}, True), ({"scores": "additive"}, False), ({"d_k": 3}, False)],
)
def test_what_is_not_written_out_is_not_claimed(changes: dict[str, object], is_supported: bool) -> None:
    assert (handwritten(make_model(**changes), dtype=torch.float64) is not None) is is_supported


def test_a_network_that_only_inherits_from_the_transformer_is_not_written_out() -> None:
    class Another(Transformer):
        pass

    assert handwritten(Another(make_model().config), dtype=torch.float64) is None


def test_what_is_not_on_a_processor_is_left_to_the_derived_gradient() -> None:
    assert handwritten(make_model().to("meta"), dtype=torch.float64) is None
