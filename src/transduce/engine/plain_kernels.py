"""What stands between two matrix products of the int8 network, in plain torch: `fused_kernels.py` says what it is.

Used where numba is not installed. It takes the same arrays and does the same, to the last bits of float32, in several
times the time.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from transduce.model.layers import LAYER_NORM_EPSILON

Array = NDArray[Any]


def embed(
    tokens: Array, table: Array, scales: Array, factor: float, positions: Array, position_of_row: Array, x: Array
) -> None:
    """X = factor * row of the quantised table + position."""
    np.multiply(table[tokens], (scales[tokens] * np.float32(factor))[:, None], out=x)
    x += positions[position_of_row]


def quantize(x: Array, q: Array, s: Array) -> None:
    """Quantise rows as they are."""
    _quantize(torch.from_numpy(x), q, s)


def normalize(x: Array, gain: Array, bias: Array, q: Array, s: Array) -> None:
    """Quantise rows after normalising them; x stays as it is."""
    _quantize(_norm(torch.from_numpy(x), gain, bias), q, s)


def add_and_normalize(
    raw: Array,
    scale: Array,
    offset: Array,
    x: Array,
    gain: Array,
    bias: Array,
    is_pre_norm: bool,
    q: Array,
    s: Array,
) -> None:
    """X += the product; quantise LayerNorm(x), which with post-norm becomes x."""
    sums = torch.from_numpy(x).add_(_product(raw, scale, offset))
    normal = _norm(sums, gain, bias)
    if not is_pre_norm:
        sums.copy_(normal)
    _quantize(normal, q, s)


def activate(raw: Array, scale: Array, offset: Array, is_gelu: bool, q: Array, s: Array) -> None:
    """Quantise the activation of the product."""
    inner = _product(raw, scale, offset)
    _quantize(functional.gelu(inner) if is_gelu else inner.relu_(), q, s)


def rescale(raw: Array, scale: Array, offset: Array, first: Array, second: Array) -> None:
    """Write the product's columns into two tables of equal width, in bf16."""
    product = _product(raw, scale, offset)
    _bf16(first).copy_(product[:, : first.shape[1]])
    _bf16(second).copy_(product[:, first.shape[1] :])


def self_attend(
    raw: Array,
    scale: Array,
    offset: Array,
    keys: Array,
    values: Array,
    first_slot: int,
    slots: Array,
    count: int,
    heads: int,
    q: Array,
    s: Array,
) -> None:
    """Store each row's key and value at `first_slot` + row, then attend over what `slots` names of each row."""
    query, key, value = _product(raw, scale, offset).split(keys.shape[1], dim=1)
    stored = slice(first_slot, first_slot + len(raw))
    _bf16(keys)[stored] = key.bfloat16()
    _bf16(values)[stored] = value.bfloat16()
    _quantize(_attend(query, keys, values, torch.from_numpy(slots[:, :count]), heads), q, s)


def cross_attend(
    raw: Array,
    scale: Array,
    offset: Array,
    keys: Array,
    values: Array,
    starts: Array,
    lengths: Array,
    heads: int,
    q: Array,
    s: Array,
) -> None:
    """Attend over the tokens of each row's own source sentence, which lie side by side."""
    query = _product(raw, scale, offset)
    mixed = torch.empty_like(query)
    for length in np.unique(lengths):  # without padding, so that a longer neighbour changes no sum
        rows = torch.from_numpy((lengths == length).nonzero()[0])
        slots = torch.from_numpy(starts)[rows, None] + torch.arange(int(length))
        mixed[rows] = _attend(query[rows], keys, values, slots, heads)
    _quantize(mixed, q, s)


def encoder_attend(
    raw: Array,
    scale: Array,
    offset: Array,
    keys: Array,
    values: Array,
    starts: Array,
    lengths: Array,
    heads: int,
    q: Array,
    s: Array,
) -> None:
    """Store all rows' keys and values, then attend over the tokens of each row's own sentence."""
    width = keys.shape[1]
    rescale(raw[:, width:], scale, offset[width:], keys, values)
    cross_attend(raw[:, :width], scale, offset[:width], keys, values, starts, lengths, heads, q, s)


def log_softmax(raw: Array, scale: Array) -> None:
    """Raw = log softmax(raw * scale), row by row, in place; `scale` is positive."""
    logits = torch.from_numpy(raw).mul_(torch.from_numpy(scale)[:, None])
    torch.log_softmax(logits, dim=-1, out=logits)


def _product(raw: Array, scale: Array, offset: Array) -> Tensor:
    return torch.from_numpy(raw) * torch.from_numpy(scale)[:, None] + torch.from_numpy(offset)


def _bf16(table: Array) -> Tensor:
    return torch.from_numpy(table).view(torch.bfloat16)


def _norm(x: Tensor, gain: Array, bias: Array) -> Tensor:
    width = (x.size(1),)
    return functional.layer_norm(x, width, torch.from_numpy(gain), torch.from_numpy(bias), LAYER_NORM_EPSILON)


def _quantize(x: Tensor, q: Array, s: Array) -> None:
    scale = (x.abs().amax(dim=1) / 127.0).clamp_min(1e-30)
    torch.from_numpy(s).copy_(scale)
    # Adding 128.5 and cutting off rounds as the fused kernel does; torch's round would take halves to even.
    torch.from_numpy(q).copy_((x * (1.0 / scale)[:, None]).add_(128.5))


def _attend(query: Tensor, keys: Array, values: Array, slots: Tensor, heads: int) -> Tensor:
    rows, width = query.shape
    key, value = (_bf16(table)[slots].float().unflatten(-1, (heads, -1)) for table in (keys, values))
    scores = torch.einsum("rhe,rphe->rhp", query.view(rows, heads, -1), key)
    return torch.einsum("rhp,rphe->rhe", scores.softmax(dim=-1), value).reshape(rows, width)
