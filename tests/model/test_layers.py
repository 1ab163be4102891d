"""Section 3.1: layers against torch's own with the same weights, and the residual frame by hand."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from transduce.model import ModelConfig, Transformer
from transduce.model.attention import MultiHeadAttention
from transduce.model.feed_forward import FeedForward
from transduce.model.layers import DecoderLayer, EncoderLayer, Residual
from transduce.model.masks import as_keys, visible_to_the_left
from transduce.model.normalization import layer_norm

WIDE = ModelConfig(d_model=4, heads=2, dropout=0.0)
ORACLE = {"d_model": 6, "heads": 3, "d_ff": 11, "dropout": 0.0, "attention_bias": True}


def test_an_encoder_layer_works_on_bare_vectors_in_three_lines() -> None:
    layer = EncoderLayer(ModelConfig(d_model=6, heads=2, d_ff=5))
    vectors_BSD = torch.randn(1, 3, 6)
    outputs_BSD = layer(vectors_BSD)

    assert outputs_BSD.shape == vectors_BSD.shape
    assert bool(outputs_BSD.isfinite().all())
    with pytest.raises(ValueError, match="give a sentence of its own as x\\[None\\]"):
        layer(vectors_BSD[0])


def test_layer_norm_by_hand() -> None:
    # Mean 2.5, variance 1.25: (1 - 2.5) / √(1.25 + 1e-6).
    normed = layer_norm(WIDE).double()(torch.tensor([1.0, 2.0, 3.0, 4.0]).double())
    expected = torch.tensor([-1.34164025, -0.44721342, 0.44721342, 1.34164025]).double()
    assert_close(normed, expected, rtol=0, atol=6e-8)


def test_the_epsilon_is_the_authors() -> None:
    # Of a vector whose variance is 1e-6 itself, an epsilon of 1e-6 leaves 1/√2; torch's default of 1e-5 leaves 0.30.
    normed = layer_norm(WIDE).double()(1e-3 * torch.tensor([1.0, -1.0, 1.0, -1.0]).double())
    assert_close(normed[0].item(), 0.5**0.5, rtol=1e-6, atol=0)


@pytest.mark.parametrize("epsilon", [1e-12, 1e-5, 0.5])
def test_another_epsilon_is_torchs(epsilon: float) -> None:
    inputs = torch.randn(3, 4).double()
    expected = nn.functional.layer_norm(inputs, (4,), eps=epsilon)
    assert_close(layer_norm(ModelConfig(d_model=4, heads=1, norm_epsilon=epsilon)).double()(inputs), expected)


def test_post_norm_by_hand() -> None:
    sublayer = torch.tensor([0.5, -0.5, 0.0, 1.0])
    outputs = Residual(WIDE)(torch.tensor([1.0, 2.0, 3.0, 4.0]), lambda _: sublayer)
    assert_close(outputs, torch.tensor([-0.87038807, -0.87038807, 0.17407761, 1.56669852]))


def test_pre_norm_by_hand() -> None:
    residual = Residual(WIDE.model_copy(update={"norm": "pre"}))
    outputs = residual(torch.tensor([1.0, 2.0, 3.0, 4.0]), lambda normed: 2 * normed)
    # Twice the normalised vector is added to the vector itself, which stays as it is.
    assert_close(outputs, torch.tensor([1 - 2.68328050, 2 - 0.89442684, 3 + 0.89442684, 4 + 2.68328050]))


def test_dropout_falls_on_the_sublayer_and_not_on_the_residual() -> None:
    residual = Residual(ModelConfig(d_model=4096, heads=1, dropout=0.25, norm="pre"))
    outputs = residual(torch.full((4096,), 5.0), lambda _: torch.ones(4096))
    assert outputs.unique().tolist() == pytest.approx([5.0, 5.0 + 4 / 3])
    assert 0.20 < (outputs == 5.0).float().mean().item() < 0.30


def test_with_post_norm_dropout_falls_before_the_sum_too() -> None:
    residual = Residual(ModelConfig(d_model=4096, heads=1, dropout=0.25))
    normed: list[Tensor] = []
    residual.norm.register_forward_pre_hook(lambda _, inputs: normed.append(inputs[0]))
    residual(torch.full((4096,), 5.0), lambda _: torch.ones(4096))
    assert normed[0].unique().tolist() == pytest.approx([5.0, 5.0 + 4 / 3])


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_encoder_layer_is_torchs(norm: str, activation: str) -> None:
    config = ModelConfig.model_validate(ORACLE | {"norm": norm, "activation": activation})
    ours = EncoderLayer(config)
    randomize(ours)
    theirs = nn.TransformerEncoderLayer(
        6, 3, 11, dropout=0.0, activation=activation, layer_norm_eps=1e-6, batch_first=True,
        norm_first=norm == "pre", dtype=torch.float64,
    )  # fmt: skip
    copy_attention(ours.self_attention, theirs.self_attn)
    copy_feed_forward(ours.feed_forward, theirs)
    copy_norms([ours.self_attention_residual, ours.feed_forward_residual], [theirs.norm1, theirs.norm2])
    inputs_BSD = torch.randn(2, 7, 6).double().requires_grad_()
    visible_BS = torch.arange(7) < torch.tensor([[7], [4]])
    expected_BSD = theirs(inputs_BSD, src_key_padding_mask=~visible_BS)
    actual_BSD = ours(inputs_BSD, visible_BHSS=as_keys(visible_BS))
    assert_close(actual_BSD, expected_BSD)
    assert_same_gradients(actual_BSD, expected_BSD, inputs_BSD)


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_decoder_layer_is_torchs(norm: str, activation: str) -> None:
    config = ModelConfig.model_validate(ORACLE | {"norm": norm, "activation": activation})
    ours = DecoderLayer(config)
    randomize(ours)
    theirs = nn.TransformerDecoderLayer(
        6, 3, 11, dropout=0.0, activation=activation, layer_norm_eps=1e-6, batch_first=True,
        norm_first=norm == "pre", dtype=torch.float64,
    )  # fmt: skip
    copy_attention(ours.self_attention, theirs.self_attn)
    copy_attention(ours.cross_attention, theirs.multihead_attn)
    copy_feed_forward(ours.feed_forward, theirs)
    copy_norms(
        [ours.self_attention_residual, ours.cross_attention_residual, ours.feed_forward_residual],
        [theirs.norm1, theirs.norm2, theirs.norm3],
    )
    inputs_BTD, memory_BSD = torch.randn(2, 5, 6).double().requires_grad_(), torch.randn(2, 7, 6).double()
    visible_BS = torch.arange(7) < torch.tensor([[7], [4]])
    expected_BTD = theirs(
        inputs_BTD, memory_BSD, tgt_mask=~visible_to_the_left(5)[0, 0], memory_key_padding_mask=~visible_BS
    )
    actual_BTD = ours(
        inputs_BTD, memory_BSD, target_visible_BHTT=visible_to_the_left(5), source_visible_BHTS=as_keys(visible_BS)
    )
    assert_close(actual_BTD, expected_BTD)
    assert_same_gradients(actual_BTD, expected_BTD, inputs_BTD)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_stacks_with_a_final_norm_are_torchs(norm: str) -> None:
    changes = {"norm": norm, "final_norm": True, "norm_epsilon": 1e-5, "positions": "none", "layers": 2}
    ours = Transformer(ModelConfig.model_validate(ORACLE | changes))
    randomize(ours)
    theirs = nn.Transformer(6, 3, 2, 2, 11, dropout=0.0, batch_first=True, norm_first=norm == "pre").double().eval()
    for stack in ("encoder", "decoder"):
        our_stack, their_stack = getattr(ours, stack), getattr(theirs, stack)
        their_stack.norm.load_state_dict(our_stack.final_norm.state_dict())
        for our_layer, their_layer in zip(our_stack.layers, their_stack.layers, strict=True):
            copy_attention(our_layer.self_attention, their_layer.self_attn)
            copy_feed_forward(our_layer.feed_forward, their_layer)
            residuals = [our_layer.self_attention_residual, our_layer.feed_forward_residual]
            if stack == "decoder":
                copy_attention(our_layer.cross_attention, their_layer.multihead_attn)
                residuals.insert(1, our_layer.cross_attention_residual)
            copy_norms(residuals, [getattr(their_layer, f"norm{n + 1}") for n in range(len(residuals))])
    source_BSD, target_BTD = torch.randn(2, 7, 6).double(), torch.randn(2, 5, 6).double().requires_grad_()
    visible_BS = torch.arange(7) < torch.tensor([[7], [4]])
    memory_BSD = ours.encoder(source_BSD, visible_BHSS=as_keys(visible_BS))
    actual_BTD = ours.decoder(target_BTD, memory_BSD, source_visible_BHTS=as_keys(visible_BS))
    expected_BTD = theirs(
        source_BSD, target_BTD, tgt_mask=~visible_to_the_left(5)[0, 0],
        src_key_padding_mask=~visible_BS, memory_key_padding_mask=~visible_BS,
    )  # fmt: skip
    assert_close(actual_BTD, expected_BTD)
    assert_same_gradients(actual_BTD, expected_BTD, target_BTD)


def test_a_decoder_layer_alone_sees_the_whole_memory(make_config: Callable[..., ModelConfig]) -> None:
    layer = DecoderLayer(make_config()).double()
    memory_BSD = torch.randn(1, 11, 14).double().requires_grad_()
    first_BD = layer(torch.randn(1, 5, 14).double(), memory_BSD, target_visible_BHTT=visible_to_the_left(5))[:, 0]
    (gradient_BSD,) = torch.autograd.grad(first_BD.square().sum(), memory_BSD)
    assert bool((gradient_BSD.abs().sum(dim=-1) > 0).all())  # the first target position sees every source position


@torch.no_grad()
def randomize(layer: nn.Module) -> None:
    """Move gains off 1 and biases off 0, or an oracle would not see them swapped."""
    for parameter in layer.double().parameters():
        parameter.add_(torch.randn_like(parameter), alpha=0.3)


def copy_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    inputs = (ours.W_Q, ours.W_K, ours.W_V)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([projection.weight for projection in inputs]))
        theirs.in_proj_bias.copy_(torch.cat([projection.bias for projection in inputs]))
    theirs.out_proj.load_state_dict(ours.W_O.state_dict())


def copy_feed_forward(ours: FeedForward, theirs: nn.TransformerEncoderLayer | nn.TransformerDecoderLayer) -> None:
    theirs.linear1.load_state_dict(ours.W_1.state_dict())
    theirs.linear2.load_state_dict(ours.W_2.state_dict())


def copy_norms(ours: list[Residual], theirs: list[nn.LayerNorm]) -> None:
    for residual, norm in zip(ours, theirs, strict=True):
        norm.load_state_dict(residual.norm.state_dict())


def assert_same_gradients(actual: Tensor, expected: Tensor, inputs: Tensor) -> None:
    (actual_gradient,) = torch.autograd.grad(actual.sin().sum(), inputs)
    (expected_gradient,) = torch.autograd.grad(expected.sin().sum(), inputs)
    assert_close(actual_gradient, expected_gradient)
