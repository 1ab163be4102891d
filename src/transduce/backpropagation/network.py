"""The Transformer (section 3) over packed tokens, forward and backward.

It has no parameters: it reads those of a `Transformer` and adds to their gradients.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import cast

import torch
from torch import Tensor, nn

from transduce.backpropagation.attention import CrossAttention, Memory, SelfAttention
from transduce.backpropagation.dropout import KeyedDropout
from transduce.backpropagation.embedding import Embedder, LastPullback
from transduce.backpropagation.feed_forward import HandwrittenFeedForward
from transduce.backpropagation.linear import Linear
from transduce.backpropagation.packing import Packing, Visibility, past_visible, tokens_visible
from transduce.backpropagation.pullback import Pullback
from transduce.backpropagation.residual import HandwrittenNorm, HandwrittenResidual
from transduce.model.config import SIZES, ModelConfig
from transduce.model.layers import DecoderLayer, EncoderLayer
from transduce.model.transformer import Transformer
from transduce.networks.config import NetworkConfig
from transduce.networks.handled import Handled
from transduce.networks.network import Network, offset_by_one

HANDLED = Handled(
    "transformer",
    {
        **SIZES,
        "norm": ("post", "pre"),
        "norm_epsilon": "any",
        "final_norm": (None, False, True),
        "positions": ("sinusoidal", "sinusoidal_halves", "concatenated", "learned", "none"),
        "first_position": "any",
        "scores": ("scaled", "unscaled"),
        "attention_bias": (False, True),
        "activation": ("relu",),
        "tied": ("all", "decoder", "inputs", "none"),
        "source_vocabulary_size": "any",
        "embedding_scale": "any",
        "output_bias": (False, True),
    },
)


def obstacle(config: NetworkConfig) -> str | None:
    """Return the options of a network that this package does not implement, or None."""
    found = HANDLED.obstacle(config)
    if found is None and isinstance(config, ModelConfig) and config.query_width != config.value_width:
        return f"d_k = {config.query_width} and d_v = {config.value_width} (only equal ones)"
    return found


class _HandwrittenEncoderLayer:
    def __init__(self, layer: EncoderLayer, *, dtype: torch.dtype) -> None:
        self.attention = SelfAttention(layer.self_attention, dtype=dtype)
        self.feed_forward = HandwrittenFeedForward(layer.feed_forward, dtype=dtype)
        self.attention_frame = HandwrittenResidual(layer.self_attention_residual)
        self.feed_forward_frame = HandwrittenResidual(layer.feed_forward_residual)
        self.linears = (*self.attention.linears, *self.feed_forward.linears)

    def forward(
        self, x_ND: Tensor, side: Packing, *, visibility: Visibility, dropout: KeyedDropout
    ) -> tuple[Tensor, list[Pullback]]:
        attend = partial(self.attention.forward, side=side, visibility=visibility, dropout=dropout)
        x_ND, pull_attention = self.attention_frame.forward(x_ND, attend, dropout=dropout)
        transform = partial(self.feed_forward.forward, dropout=dropout)
        x_ND, pull_feed_forward = self.feed_forward_frame.forward(x_ND, transform, dropout=dropout)
        return x_ND, [pull_attention, pull_feed_forward]


class _HandwrittenDecoderLayer:
    def __init__(self, layer: DecoderLayer, *, dtype: torch.dtype) -> None:
        self.attention = SelfAttention(layer.self_attention, dtype=dtype)
        self.cross_attention = CrossAttention(layer.cross_attention, dtype=dtype)
        self.feed_forward = HandwrittenFeedForward(layer.feed_forward, dtype=dtype)
        self.attention_frame = HandwrittenResidual(layer.self_attention_residual)
        self.cross_attention_frame = HandwrittenResidual(layer.cross_attention_residual)
        self.feed_forward_frame = HandwrittenResidual(layer.feed_forward_residual)
        self.linears = (*self.attention.linears, *self.cross_attention.linears, *self.feed_forward.linears)

    def forward(
        self, x_ND: Tensor, memory: Memory, side: Packing, *, visibility: Visibility, dropout: KeyedDropout
    ) -> tuple[Tensor, list[Pullback]]:
        attend = partial(self.attention.forward, side=side, visibility=visibility, dropout=dropout)
        x_ND, pull_attention = self.attention_frame.forward(x_ND, attend, dropout=dropout)
        look = partial(self.cross_attention.forward, memory=memory, target=side, dropout=dropout)
        x_ND, pull_cross = self.cross_attention_frame.forward(x_ND, look, dropout=dropout)
        transform = partial(self.feed_forward.forward, dropout=dropout)
        x_ND, pull_feed_forward = self.feed_forward_frame.forward(x_ND, transform, dropout=dropout)
        return x_ND, [pull_attention, pull_cross, pull_feed_forward]


@dataclass(frozen=True)
class ForwardPass:
    """The result of a forward pass: the decoder's output for every label, without padding, and the backward pass."""

    padded_ND: Tensor
    """The output, followed by idle rows."""
    count: int
    backward: Callable[[Tensor], None]
    """Maps the gradient of `padded_ND` (0 in idle rows) or `hidden_ND` to those of all parameters; call it once."""

    @property
    def hidden_ND(self) -> Tensor:
        """The output without idle rows."""
        return self.padded_ND[: self.count]


class HandwrittenNetwork:
    """A `Transformer` with a handwritten backward pass."""

    def __init__(self, model: Transformer, *, dtype: torch.dtype) -> None:
        assert obstacle(model.config) is None, f"ask `handwritten` first: {obstacle(model.config)}"
        self.model, self.heads, self.dtype = model, model.config.heads, dtype
        embedder = partial(Embedder, scale=model.embeddings.scale, dropout=model.config.dropout, dtype=dtype)
        self.source = embedder(model.embeddings.source_VD, model.encoder.positions)
        self.target = embedder(model.embeddings.target_VD, model.decoder.positions)
        encoder_layers = cast("list[EncoderLayer]", list(model.encoder.layers))
        decoder_layers = cast("list[DecoderLayer]", list(model.decoder.layers))
        self.encoder = [_HandwrittenEncoderLayer(layer, dtype=dtype) for layer in encoder_layers]
        self.decoder = [_HandwrittenDecoderLayer(layer, dtype=dtype) for layer in decoder_layers]
        self.encoder_norm, self.decoder_norm = (
            _final_norm(model.encoder.final_norm),
            _final_norm(model.decoder.final_norm),
        )
        self._linears: list[Linear] = []
        for layer in self.encoder:
            self._linears += layer.linears
        for decoder_layer in self.decoder:
            self._linears += decoder_layer.linears

    def refresh(self) -> None:
        """Read the current weights of the model."""
        for linear in self._linears:
            linear.refresh()

    @torch.no_grad()
    def forward(self, source_BS: Tensor, target_BT: Tensor, *, dropout: KeyedDropout) -> ForwardPass:
        """Run the network on a padded batch; `target_BT` holds the labels."""
        is_source_BS, is_target_BT = self.model.visible(source_BS), self.model.visible(target_BT)
        source, target = (Packing(is_token, heads=self.heads) for is_token in (is_source_BS, is_target_BT))
        memory_ND, pull_encoder = self._encode(source.with_idle_rows(source_BS[is_source_BS]), source, dropout)
        memory = Memory(memory_ND, source, visibility=tokens_visible(target, source, dtype=self.dtype))
        inputs_N = target.with_idle_rows(offset_by_one(target_BT, start=self.model.tokens.start)[is_target_BT])
        hidden_ND, pull_decoder = self._decode(inputs_N, memory, target, dropout)

        @torch.no_grad()
        def backward(gradient_ND: Tensor) -> None:
            assert gradient_ND.size(0) in (target.count, target.rows)
            has_idle_rows = gradient_ND.size(0) == target.rows
            pull_decoder((gradient_ND if has_idle_rows else target.with_idle_rows(gradient_ND)).to(self.dtype))
            assert memory.gradient_ND is not None
            pull_encoder(memory.gradient_ND)

        return ForwardPass(hidden_ND, target.count, backward)

    def _encode(self, tokens_N: Tensor, side: Packing, dropout: KeyedDropout) -> tuple[Tensor, LastPullback]:
        visibility = tokens_visible(side, side, dtype=self.dtype)
        x_ND, pull_embedding = self.source.forward(tokens_N, side, dropout=dropout)
        pulls: list[Pullback] = []
        for layer in self.encoder:
            x_ND, pulls_layer = layer.forward(x_ND, side, visibility=visibility, dropout=dropout)
            pulls += pulls_layer
        if self.encoder_norm is not None:
            x_ND, pull_norm = self.encoder_norm.forward(x_ND)
            pulls.append(pull_norm)
        return x_ND, _chained(pull_embedding, pulls)

    def _decode(
        self, inputs_N: Tensor, memory: Memory, side: Packing, dropout: KeyedDropout
    ) -> tuple[Tensor, LastPullback]:
        visibility = past_visible(side, dtype=self.dtype)
        x_ND, pull_embedding = self.target.forward(inputs_N, side, dropout=dropout)
        pulls: list[Pullback] = []
        for layer in self.decoder:
            x_ND, pulls_layer = layer.forward(x_ND, memory, side, visibility=visibility, dropout=dropout)
            pulls += pulls_layer
        if self.decoder_norm is not None:
            x_ND, pull_norm = self.decoder_norm.forward(x_ND)
            pulls.append(pull_norm)
        return x_ND, _chained(pull_embedding, pulls)


def _chained(first: LastPullback, later: list[Pullback]) -> LastPullback:
    """Return the pullback of a stack: it calls the last pullback first, and frees each after its call."""

    def pull(gradient_ND: Tensor) -> None:
        while later:
            gradient_ND = later.pop()(gradient_ND)
        first(gradient_ND)

    return pull


def _final_norm(module: nn.Module) -> HandwrittenNorm | None:
    return HandwrittenNorm(module) if isinstance(module, nn.LayerNorm) else None


def handwritten(network: Network, *, dtype: torch.dtype) -> HandwrittenNetwork | None:
    """Return the network with a handwritten backward pass, or None if this package does not implement it.

    It also returns None on a GPU, where autograd has fused kernels.
    """
    if type(network) is not Transformer or obstacle(network.config) or network.output.matrix_VD.device.type != "cpu":
        return None
    return HandwrittenNetwork(network, dtype=dtype)
