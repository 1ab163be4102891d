"""What stands between two matrix products of the int8 network, compiled: `kernel_sources.py` says what it is.

Each function hands the addresses and sizes of its tensors to machine code, which runs on one core and without Python's
lock. Tensors lie in memory row after row, without gaps. Where none can be compiled, `plain_kernels.py` does the same.
"""

import torch
from torch import Tensor

from transduce.engine.machine_code import entry
from transduce.engine.vnni_products import LANES


def embed(tokens: Tensor, table: Tensor, scales: Tensor, positions: Tensor, position_of_row: Tensor, x: Tensor) -> None:
    """X = scale * row of the quantised table + position."""
    entry("embed", 8)(*_addresses(tokens, table, scales, positions, position_of_row, x), *x.shape)


def quantize(x: Tensor, q: Tensor, s: Tensor) -> None:
    """Quantise rows as they are."""
    entry("quantize", 5)(*_addresses(x, q, s), *x.shape)


def normalize(x: Tensor, gain: Tensor, bias: Tensor, q: Tensor, s: Tensor) -> None:
    """Quantise rows after normalising them; x stays as it is."""
    room = torch.empty(x.size(1))
    entry("normalize", 8)(*_addresses(x, gain, bias, q, s, room), *x.shape)


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
    """X += the product; quantise LayerNorm(x), which with post-norm becomes x. The product is written over."""
    entry("add_and_normalize", 11)(
        raw.data_ptr(),
        scale.data_ptr(),
        offset.data_ptr(),
        x.data_ptr(),
        gain.data_ptr(),
        bias.data_ptr(),
        is_pre_norm,
        q.data_ptr(),
        s.data_ptr(),
        *x.shape,
    )


def activate(raw: Tensor, scale: Tensor, offset: Tensor, is_gelu: bool, q: Tensor, s: Tensor) -> None:
    """Quantise the activation of the product, which is written over."""
    entry("activate", 8)(
        raw.data_ptr(), scale.data_ptr(), offset.data_ptr(), is_gelu, q.data_ptr(), s.data_ptr(), *raw.shape
    )


def rescale(raw: Tensor, scale: Tensor, offset: Tensor, first: Tensor, second: Tensor) -> None:
    """Write the product's columns into two tables of equal width, in bf16."""
    entry("rescale", 7)(*_addresses(raw, scale, offset, first, second), *first.shape)


def self_attend(
    raw: Tensor,
    scale: Tensor,
    offset: Tensor,
    keys: Tensor,
    values: Tensor,
    first_slot: int,
    slots: Tensor,
    count: int,
    heads: int,
    q: Tensor,
    s: Tensor,
) -> None:
    """Store each row's key and value at `first_slot` + row, then attend over what `slots` names of each row."""
    room = torch.empty(2 * keys.size(1) + count + LANES)
    operands = _addresses(raw, scale, offset, keys, values)
    past = (first_slot, slots.data_ptr(), slots.size(1), count, heads)
    entry("self_attend", 15)(*operands, *past, *_addresses(q, s, room), *q.shape)


def cross_attend(
    raw: Tensor,
    scale: Tensor,
    offset: Tensor,
    keys: Tensor,
    values: Tensor,
    starts: Tensor,
    lengths: Tensor,
    heads: int,
    q: Tensor,
    s: Tensor,
) -> None:
    """Attend over the tokens of each row's own source sentence, which lie side by side."""
    longest = int(lengths.max())
    room, places = torch.empty(2 * keys.size(1) + longest + LANES), torch.arange(longest)
    operands = _addresses(raw, scale, offset, keys, values, starts, lengths, places)
    outputs = _addresses(q, s, room)
    entry("cross_attend", 16)(*operands, heads, *outputs, longest, *raw.shape, q.size(1))


def encoder_attend(
    raw: Tensor,
    scale: Tensor,
    offset: Tensor,
    keys: Tensor,
    values: Tensor,
    starts: Tensor,
    lengths: Tensor,
    heads: int,
    q: Tensor,
    s: Tensor,
) -> None:
    """Store all rows' keys and values, then attend over the tokens of each row's own sentence."""
    operands = _addresses(raw, scale, offset, keys, values)
    entry("store", 7)(*operands, *keys.shape)
    cross_attend(raw, scale, offset, keys, values, starts, lengths, heads, q, s)


def log_softmax(raw: Tensor, scale: Tensor) -> None:
    """Raw = log softmax(raw * scale), row by row, in place; `scale` is positive."""
    entry("log_softmax", 4)(*_addresses(raw, scale), *raw.shape)


def _addresses(*tensors: Tensor) -> list[int]:
    return [tensor.data_ptr() for tensor in tensors]
