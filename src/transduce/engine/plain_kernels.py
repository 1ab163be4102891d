"""What stands between two matrix products of the int8 network, in plain torch: `fused_kernels.py` says what it is.

Used where numba is not installed. It takes the same arrays and does the same, to the last bits of float32, in several
times the time.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional

from transduce.engine.products import Product

EPSILON = 1e-6  # of layer normalisation: the one that these kernels and the fused ones have


def multiply(product: Product, rows: Tensor, out: Tensor | None = None) -> Tensor:
    """Return the product of quantised rows, without their scales and the offset."""
    return product(rows) if out is None else out.copy_(product(rows))


def embed(tokens: Tensor, table: Tensor, scales: Tensor, positions: Tensor, position_of_row: Tensor, x: Tensor) -> None:
    """X = scale * row of the quantised table + position."""
    torch.mul(table[tokens], scales[tokens, None], out=x).add_(positions[position_of_row])


def quantize(x: Tensor, q: Tensor, s: Tensor) -> None:
    """Quantise rows as they are."""
    _quantize(x, q, s)


def normalize(x: Tensor, gain: Tensor, bias: Tensor, q: Tensor, s: Tensor) -> None:
    """Quantise rows after normalising them; x stays as it is."""
    _quantize(_norm(x, gain, bias), q, s)


def add_and_normalize(
    raw: Tensor,
    scale: Tensor,
    offset: Tensor,
    x: Tensor,
    gain: Tensor,
    bias: Tensor,
    is_pre_norm: bool,
    q: Tensor,
    s: Tensor,
) -> None:
    """X += the product; quantise LayerNorm(x), which with post-norm becomes x."""
    sums = x.add_(_product(raw, scale, offset))
    normal = _norm(sums, gain, bias)
    if not is_pre_norm:
        sums.copy_(normal)
    _quantize(normal, q, s)


def activate(raw: Tensor, scale: Tensor, offset: Tensor, is_gelu: bool, q: Tensor, s: Tensor) -> None:
    """Quantise the activation of the product."""
    inner = _product(raw, scale, offset)
    _quantize(functional.gelu(inner) if is_gelu else inner.relu_(), q, s)


def rescale(raw: Tensor, scale: Tensor, offset: Tensor, first: Tensor, second: Tensor) -> None:
    """Write the product's columns into two tables of equal width, in bf16."""
    product = _product(raw, scale, offset)
    first.copy_(product[:, : first.shape[1]])
    second.copy_(product[:, first.shape[1] :])


def self_attend(
    raw: Tensor,
    scale: Tensor,
    offset: Tensor,
    keys: Tensor,
    values: Tensor,
    where: Tensor,
    slots: Tensor,
    heads: int,
    q: Tensor,
    s: Tensor,
) -> None:
    """Store each row's key and value at where[0] + row, then attend over the where[1] that `slots` names of it."""
    first_slot, count = where.tolist()
    query, key, value = _product(raw, scale, offset).split(keys.shape[1], dim=1)
    stored = slice(first_slot, first_slot + len(raw))
    keys[stored] = key.bfloat16()
    values[stored] = value.bfloat16()
    _quantize(_attend(query, keys, values, slots[:, :count], heads), q, s)


def cross_attend(
    raw: Tensor,
    scale: Tensor,
    offset: Tensor,
    keys: Tensor,
    values: Tensor,
    starts: Tensor,
    lengths: Tensor,
    places: Tensor,
    heads: int,
    q: Tensor,
    s: Tensor,
) -> None:
    """Attend over the tokens of each row's own source sentence, which lie side by side; `places` counts from 0."""
    query = _product(raw, scale, offset)
    mixed = torch.empty_like(query)
    for length in lengths.unique().tolist():  # without padding, so that a longer neighbour changes no sum
        rows = (lengths == length).nonzero()[:, 0]
        slots = starts[rows, None] + places[:length]
        mixed[rows] = _attend(query[rows], keys, values, slots, heads)
    _quantize(mixed, q, s)


def encoder_attend(
    raw: Tensor,
    scale: Tensor,
    offset: Tensor,
    keys: Tensor,
    values: Tensor,
    starts: Tensor,
    lengths: Tensor,
    places: Tensor,
    heads: int,
    q: Tensor,
    s: Tensor,
) -> None:
    """Store all rows' keys and values, then attend over the tokens of each row's own sentence."""
    width = keys.shape[1]
    rescale(raw[:, width:], scale, offset[width:], keys, values)
    cross_attend(raw[:, :width], scale, offset[:width], keys, values, starts, lengths, places, heads, q, s)


def hide(raw: Tensor, is_hidden_BL: Tensor) -> None:
    """Write -inf over what is hidden of each sentence's list, in all its rows."""
    raw.view(len(is_hidden_BL), -1, raw.size(1)).masked_fill_(is_hidden_BL[:, None], -math.inf)


def log_softmax(raw: Tensor, scale: Tensor) -> None:
    """Raw = log softmax(raw * scale), row by row, in place; `scale` is positive."""
    logits = raw.mul_(scale[:, None])
    torch.log_softmax(logits, dim=-1, out=logits)


def _product(raw: Tensor, scale: Tensor, offset: Tensor) -> Tensor:
    return raw * scale[:, None] + offset


def _norm(x: Tensor, gain: Tensor, bias: Tensor) -> Tensor:
    width = (x.size(1),)
    return functional.layer_norm(x, width, gain, bias, EPSILON)


def _quantize(x: Tensor, q: Tensor, s: Tensor) -> None:
    scale = (x.abs().amax(dim=1) / 127.0).clamp_min(1e-30)
    s.copy_(scale)
    # Adding 128.5 and cutting off rounds as the fused kernel does; torch's round would take halves to even.
    q.copy_((x * (1.0 / scale)[:, None]).add_(128.5))


def _attend(query: Tensor, keys: Tensor, values: Tensor, slots: Tensor, heads: int) -> Tensor:
    rows, width = query.shape
    key, value = (table[slots].float().unflatten(-1, (heads, -1)) for table in (keys, values))
    scores = torch.einsum("rhe,rphe->rhp", query.view(rows, heads, -1), key)
    return torch.einsum("rhp,rphe->rhe", scores.softmax(dim=-1), value).reshape(rows, width)
