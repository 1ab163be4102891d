"""What a network costs: parameters by part, arithmetic per token, memory. Pure arithmetic on a `ModelConfig`.

    P = V·d + N·(3A + 2F + 10d),   A = 2·d·h·d_k + 2·d·h·d_v,   F = 2·d·d_ff + d_ff + d

is the paper's model (one matrix, sinusoids, no biases in attention); the options add what they add.

Arithmetic counts a multiplication and an addition as two operations, matrix products only; a backward pass costs
two forward passes. Table 1's n² term is in it, for sentences of a stated length.
"""

from collections import Counter
from dataclasses import dataclass

import torch

from transduce.model.config import ModelConfig
from transduce.model.transformer import Transformer

# The first public code also had a table of 32 target-space vectors, added to every input.
AUTHORS_TARGET_SPACES = 32
AUTHORS_VOCABULARY = 40_960

_PARTS = {
    "self_attention_residual": "layer norms",
    "cross_attention_residual": "layer norms",
    "feed_forward_residual": "layer norms",
    "final_norm": "layer norms",
    "self_attention": "self-attention",
    "cross_attention": "attention over the encoder",
    "feed_forward": "feed-forward",
    "positions": "learned positions",
}


def parameters_by_part(config: ModelConfig) -> dict[str, int]:
    """Return how many parameters each part has, counted on a network that takes no memory."""
    with torch.device("meta"):
        model = Transformer(config)
    counts: Counter[str] = Counter()
    for name, parameter in model.named_parameters():
        stack, *rest = name.split(".")
        part = next((_PARTS[piece] for piece in rest if piece in _PARTS), None)
        counts[f"{stack} {part}" if part else "embeddings"] += parameter.numel()
    return dict(counts)


def parameter_count(config: ModelConfig) -> int:
    """Return how many parameters the network has; a tied matrix counts once."""
    return sum(parameters_by_part(config).values())


def authors_parameter_count(config: ModelConfig) -> int:
    """Return the count as the first public code would have it, which reproduces Table 3's column."""
    as_coded = config.model_copy(update={"vocabulary_size": AUTHORS_VOCABULARY, "attention_bias": True})
    return parameter_count(as_coded) + AUTHORS_TARGET_SPACES * config.d_model


@dataclass(frozen=True)
class Arithmetic:
    """Floating-point operations of one source and one target token, in sentences of `length` tokens."""

    length: int
    encoder: int
    decoder: int
    output: int

    @property
    def forward(self) -> int:
        """A forward pass over one source and one target token."""
        return self.encoder + self.decoder + self.output

    @property
    def training(self) -> int:
        """A forward and a backward pass over one source and one target token."""
        return 3 * self.forward


def arithmetic(config: ModelConfig, *, length: int = 25) -> Arithmetic:
    """Return the operations per token for sentences of `length` tokens on both sides."""
    d, heads, d_k, d_v = config.d_model, config.heads, config.query_width, config.value_width
    projections = 2 * (2 * d * heads * d_k + 2 * d * heads * d_v)
    products = 2 * length * heads * (d_k + d_v)
    attention = projections + products
    feed_forward = 2 * 2 * d * config.d_ff
    return Arithmetic(
        length=length,
        encoder=config.encoder_depth * (attention + feed_forward),
        decoder=config.decoder_depth * (2 * attention + feed_forward),
        output=2 * config.vocabulary_size * d,
    )


def training_memory(config: ModelConfig, *, tokens: int, bytes_per_activation: int = 4) -> int:
    """Estimate the bytes that training needs at once: weights, gradients, Adam's two moments, activations."""
    state = 4 * 4 * parameter_count(config)
    # What a layer keeps for its backward pass, in units of its width: inputs, q, k, v, heads, sums and norms.
    encoder_layer = 12 * config.d_model + 2 * config.d_ff
    decoder_layer = 20 * config.d_model + 2 * config.d_ff
    activations = tokens * (config.encoder_depth * encoder_layer + config.decoder_depth * decoder_layer)
    return state + bytes_per_activation * activations


def translation_memory(config: ModelConfig, *, bytes_per_weight: float = 4.0) -> int:
    """Return the bytes of the weights alone, which are nearly all that translating one sentence needs."""
    return int(bytes_per_weight * parameter_count(config))
