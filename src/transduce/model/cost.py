"""The cost of the Transformer, computed from its sizes.

    P = V·d + N·(3A + 2F + 10d),   A = 2·d·h·d_k + 2·d·h·d_v,   F = 2·d·d_ff + d_ff + d

P is the parameter count of the paper's model (one matrix, sinusoids, no biases in attention); options may add more.
"""

from transduce.model.config import ModelConfig
from transduce.networks.cost import Cost

_PARTS = {
    "self_attention_residual": "layer norms",
    "cross_attention_residual": "layer norms",
    "feed_forward_residual": "layer norms",
    "embedding_norm": "layer norms",
    "final_norm": "layer norms",
    "ssru": "SSRU",
    "self_attention": "self-attention",
    "cross_attention": "attention over the encoder",
    "feed_forward": "feed-forward",
    "positions": "learned positions",
}


def part_of(parameter: str) -> str:
    """Return the part of the network that a parameter belongs to."""
    stack, *rest = parameter.split(".")
    part = next((_PARTS[piece] for piece in rest if piece in _PARTS), None)
    return f"{stack} {part}" if part else "embeddings"


def transformer_cost(config: ModelConfig, source: int, target: int) -> Cost:
    """Return the cost of a forward pass over a pair of these lengths, Table 1's n² term included."""
    d, heads, d_k, d_v = config.d_model, config.heads, config.query_width, config.value_width
    half = 2 * (d * heads * d_k + d * heads * d_v)  # the projections of the queries' side, or of the keys' side
    product = 2 * heads * (d_k + d_v)
    feed_forward = 2 * 2 * d * config.d_ff
    is_recurrent = config.decoder_mixer == "ssru"
    past = 2 * 2 * d * d if is_recurrent else 2 * half + product * target
    encoder = source * (2 * half + product * source + feed_forward)
    decoder = target * (past + half + product * source + feed_forward) + source * half
    # What a layer keeps for its backward pass, in units of its width: inputs, q, k, v, heads, sums and norms.
    kept = source * config.encoder_depth * (12 * d + 2 * config.d_ff)
    kept += target * config.decoder_depth * (20 * d + 2 * config.d_ff)
    return Cost(
        operations={
            "encoder": config.encoder_depth * encoder,
            "decoder": config.decoder_depth * decoder,
            "output": target * 2 * config.vocabulary_size * d,
        },
        sequential_steps=config.encoder_depth + config.decoder_depth * (target if is_recurrent else 1),
        path_length=target if is_recurrent else 1,
        kept_numbers=kept,
    )
