"""What stands between two matrix products of the int8 network, compiled: `kernel_sources.py` says what it is.

Each function hands the addresses and sizes of its tensors to machine code, which runs on one core and without Python's
lock. Tensors lie in memory row after row, without gaps. Where none can be compiled, `plain_kernels.py` does the same.
"""

from torch import Tensor

from transduce.engine.calls import AtOnce, Calls
from transduce.engine.vnni_products import GROUP, LANES, ROOM, VnniProduct


class FusedKernels:
    """The kernels, called at once or noted in a program."""

    def __init__(self, calls: Calls | None = None) -> None:
        self._calls: Calls = calls or AtOnce()
        self._call = self._calls.call

    def multiply(self, product: VnniProduct, rows: Tensor, out: Tensor | None = None) -> Tensor:
        """Return the product of quantised rows, without their scales and the offset."""
        if product.inputs % GROUP:
            return product(rows) if out is None else out.copy_(product(rows))
        out = self._calls.output(len(rows), product.outputs) if out is None else out
        room = self._calls.room(ROOM)
        self._call("multiply", *product.operands(rows, out, room=room))
        return out

    def embed(
        self, tokens: Tensor, table: Tensor, scales: Tensor, positions: Tensor, position_of_row: Tensor, x: Tensor
    ) -> None:
        """X = scale * row of the quantised table + position."""
        self._call("embed", *_addresses(tokens, table, scales, positions, position_of_row, x), *x.shape)

    def quantize(self, x: Tensor, q: Tensor, s: Tensor) -> None:
        """Quantise rows as they are."""
        self._call("quantize", *_addresses(x, q, s), *x.shape)

    def normalize(self, x: Tensor, gain: Tensor, bias: Tensor, q: Tensor, s: Tensor) -> None:
        """Quantise rows after normalising them; x stays as it is."""
        room = self._calls.room(x.size(1))
        self._call("normalize", *_addresses(x, gain, bias, q, s, room), *x.shape)

    def add_and_normalize(
        self,
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
        operands = _addresses(raw, scale, offset, x, gain, bias)
        self._call("add_and_normalize", *operands, is_pre_norm, *_addresses(q, s), *x.shape)

    def activate(self, raw: Tensor, scale: Tensor, offset: Tensor, is_gelu: bool, q: Tensor, s: Tensor) -> None:
        """Quantise the activation of the product, which is written over."""
        self._call("activate", *_addresses(raw, scale, offset), is_gelu, *_addresses(q, s), *raw.shape)

    def rescale(self, raw: Tensor, scale: Tensor, offset: Tensor, first: Tensor, second: Tensor) -> None:
        """Write the product's columns into two tables of equal width, in bf16."""
        self._call("rescale", *_addresses(raw, scale, offset, first, second), *first.shape)

    def self_attend(
        self,
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
        room = self._calls.room(2 * keys.size(1) + slots.size(1) + LANES)
        operands = _addresses(raw, scale, offset, keys, values, where, slots)
        self._call("self_attend", *operands, slots.size(1), heads, *_addresses(q, s, room), *q.shape)

    def cross_attend(
        self,
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
        room = self._calls.room(2 * keys.size(1) + len(places) + LANES)
        operands = _addresses(raw, scale, offset, keys, values, starts, lengths, places)
        self._call("cross_attend", *operands, heads, *_addresses(q, s, room), len(places), *raw.shape, q.size(1))

    def encoder_attend(
        self,
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
        self._call("store", *_addresses(raw, scale, offset, keys, values), *keys.shape)
        self.cross_attend(raw, scale, offset, keys, values, starts, lengths, places, heads, q, s)

    def hide(self, raw: Tensor, is_hidden_BL: Tensor) -> None:
        """Write -inf over what is hidden of each sentence's list, in all its rows."""
        sentences, width = is_hidden_BL.shape
        self._call("hide", *_addresses(raw, is_hidden_BL), sentences, len(raw) // sentences, width)

    def log_softmax(self, raw: Tensor, scale: Tensor) -> None:
        """Raw = log softmax(raw * scale), row by row, in place; `scale` is positive."""
        self._call("log_softmax", *_addresses(raw, scale), *raw.shape)


def _addresses(*tensors: Tensor) -> list[int]:
    return [tensor.data_ptr() for tensor in tensors]
