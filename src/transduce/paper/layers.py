"""Table 1 on real layers: operations and dependent products counted while a layer runs, its reach, and its time.

Each layer maps (1, n, d) to (1, n, d). As in the table, attention is counted without its projections and the
convolution without a gate. The LSTM runs cell by cell where it is counted, and as torch's layer where it is timed.
"""

import math
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from transduce.model.attention import attend
from transduce.model.neighbourhood import cut_into_blocks, joined_blocks

NEIGHBOURHOOD, KERNEL = 16, 3
_PRODUCTS = ("mm", "bmm", "addmm", "baddbmm", "convolution", "addmv", "mv")
Layer = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class LayerCount:
    """What one layer of width d needs for n positions."""

    operations: int
    sequential: int
    """The longest chain of matrix products that wait for each other."""
    path: int
    """Layers until the last output depends on the first input; positions, for a layer that walks along them."""


def self_attention(d: int, index: int = 0) -> Layer:
    """Return equation 1 with every position as query, key and value."""
    return lambda x_BND: attend(x_BND[:, None], x_BND[:, None], x_BND[:, None])[:, 0]


def restricted(d: int, index: int = 0) -> Layer:
    """Return self-attention within a neighbourhood of 16 positions."""
    window = (NEIGHBOURHOOD // 2, NEIGHBOURHOOD // 2)

    def layer(x_BND: Tensor) -> Tensor:
        heads_BHND = x_BND[:, None]
        query, key, value, shown = cut_into_blocks(heads_BHND, heads_BHND, heads_BHND, visible_BHQK=None, window=window)
        return joined_blocks(attend(query, key, value, visible_BHQK=shown), sentences=1, length=x_BND.size(1))[:, 0]

    return layer


def recurrent(d: int, index: int = 0) -> Layer:
    """Return an LSTM that is run cell by cell."""
    cell = nn.LSTMCell(d, d)

    def layer(x_BND: Tensor) -> Tensor:
        state, outputs = None, []
        for x_BD in x_BND.unbind(1):
            state = cell(x_BD, state)
            outputs.append(state[0])
        return torch.stack(outputs, 1)

    return layer


def convolution(d: int, index: int = 0, *, dilation: int = 1) -> Layer:
    """Return a convolution over three neighbouring positions, or over three that are `dilation` apart."""
    product = nn.Conv1d(d, d, KERNEL, padding=dilation * (KERNEL // 2), dilation=dilation)
    return lambda x_BND: product(x_BND.mT).mT


def dilated(d: int, index: int = 0) -> Layer:
    """Return the layer of this index in a stack of convolutions, each reaching three times as far as the one below."""
    return convolution(d, dilation=KERNEL**index)


LAYERS: Mapping[str, Callable[..., Layer]] = {
    "self-attention": self_attention, "recurrent": recurrent, "convolutional": convolution,
    "convolutional, dilated": dilated, "self-attention (restricted)": restricted,
}  # fmt: skip


class _LongestChain(TorchDispatchMode):
    """Follows every tensor and counts the products on the longest chain that leads to it."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.longest, self._lengths, self._kept = 0, {}, []  # type: int, dict[int, int], list[Tensor]

    def __torch_dispatch__(
        self,
        func: Any,  # noqa: ANN401
        types: Any,  # noqa: ANN401
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        results = func(*args, **(kwargs or {}))
        length = max((self._lengths.get(id(tensor), 0) for tensor in _tensors(args)), default=0)
        length += func.overloadpacket.__name__ in _PRODUCTS
        for tensor in _tensors([results]):
            self._lengths[id(tensor)] = length
            self._kept.append(tensor)  # the id of a freed tensor would be given out again
        self.longest = max(self.longest, length)
        return results


def _tensors(values: Iterable[Any]) -> list[Tensor]:
    return [
        tensor
        for value in values
        for tensor in (_tensors(value) if isinstance(value, (list, tuple)) else [value])
        if isinstance(tensor, Tensor)
    ]


def count(kind: str, n: int, d: int) -> LayerCount:
    """Run a layer once and count; stack it until the first position reaches the last."""
    with torch.no_grad(), FlopCounterMode(display=False) as counter, _LongestChain() as chain:
        LAYERS[kind](d)(torch.randn(1, n, d))
    layers, reaches = 0, False
    x_BND = torch.randn(1, n, 1, dtype=torch.float64).requires_grad_()
    y_BND: Tensor = x_BND
    while not reaches:  # ones as weights and one number a position: no gradient cancels or vanishes
        y_BND = LAYERS[kind](1, layers)(y_BND)
        layers += 1
        (gradient_BND,) = torch.autograd.grad(y_BND[0, -1].sum(), x_BND, retain_graph=True)
        reaches = bool(gradient_BND[0, 0].abs().sum() > 0) or kind == "recurrent"
    return LayerCount(counter.get_total_flops(), chain.longest, n if kind == "recurrent" else layers)


def slope(sizes: Sequence[int], values: Sequence[float]) -> float:
    """Return the exponent p of the best fit of c·nᵖ."""
    logs, heights = [math.log(size) for size in sizes], [math.log(value) for value in values]
    return statistics.linear_regression(logs, heights).slope


def seconds(kind: str, sizes: Sequence[int], d: int, *, rounds: int = 5) -> list[float]:
    """Return the median seconds of a forward and backward pass for each length, measured in alternating rounds."""
    lstm = nn.LSTM(d, d, batch_first=True)
    layer = (lambda x_BND: lstm(x_BND)[0]) if kind == "recurrent" else LAYERS[kind](d)
    taken: list[list[float]] = [[] for _ in sizes]
    for _ in range(rounds + 1):
        for n, times in zip(sizes, taken, strict=True):
            x_BND = torch.randn(1, n, d, requires_grad=True)
            start = time.perf_counter()
            layer(x_BND).sum().backward()
            times.append(time.perf_counter() - start)
    return [statistics.median(times[1:]) for times in taken]
