"""The cost of the Transformer, computed from its sizes.

    P = V·d + N·(3A + 2F + 10d),   A = 2·d·h·d_k + 2·d·h·d_v,   F = 2·d·d_ff + d_ff + d

P is the parameter count of the paper's model (one matrix, sinusoids, no biases in attention); options may add more.
"""

from typing import TYPE_CHECKING

from transduce.networks.cost import Cost

Window = tuple[int, int]
"""How many positions before its own and after it a query may see."""

if TYPE_CHECKING:
    from transduce.model.config import ModelConfig

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


def block_sizes(window: Window) -> tuple[int, int]:
    """Return how long the blocks of restricted attention are, and how many keys the queries of one see."""
    size = max(1, *window)
    return size, (3 if window[1] else 2) * size


def uses_blocks(window: Window, length: int) -> bool:
    """Return whether attention over this many positions is computed in blocks: if that takes fewer pairs."""
    return block_sizes(window)[1] < length


def attended_pairs(length: int, window: Window | None) -> int:
    """Return how many pairs of a query and a key self-attention computes."""
    if window is None or not uses_blocks(window, length):
        return length * length
    size, seen = block_sizes(window)
    return -(-length // size) * size * seen


def transformer_cost(config: "ModelConfig", source: int, target: int) -> Cost:
    """Return the cost of a forward pass over a pair of these lengths, Table 1's n² term included."""
    d, heads, d_k, d_v = config.d_model, config.heads, config.query_width, config.value_width
    half = 2 * (d * heads * d_k + d * heads * d_v)  # the projections of the queries' side, or of the keys' side
    product = 2 * heads * (d_k + d_v)
    feed_forward = 2 * 2 * d * config.d_ff
    is_recurrent = config.decoder_mixer == "ssru"
    pairs = {side: attended_pairs(n, config.window(side)) for side, n in (("encoder", source), ("decoder", target))}
    past = target * 2 * 2 * d * d if is_recurrent else target * 2 * half + product * pairs["decoder"]
    encoder = source * (2 * half + feed_forward) + product * pairs["encoder"]
    decoder = past + target * (half + product * source + feed_forward) + source * half
    # What a layer keeps for its backward pass, in units of its width: inputs, q, k, v, heads, sums and norms.
    kept = source * config.encoder_depth * (12 * d + 2 * config.d_ff)
    kept += target * config.decoder_depth * (20 * d + 2 * config.d_ff)
    window = config.window("encoder")
    reach = max(1, source - 1 if window is None else window[0])
    return Cost(
        operations={
            "encoder": config.encoder_depth * encoder,
            "decoder": config.decoder_depth * decoder,
            "output": target * 2 * config.vocabulary_size * d,
        },
        sequential_steps=config.encoder_depth + config.decoder_depth * (target if is_recurrent else 1),
        path_length=target if is_recurrent else max(1, -(-(source - 1) // reach)),
        kept_numbers=kept,
    )
