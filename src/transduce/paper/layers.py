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
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from transduce.model.attention import attend
from transduce.model.neighbourhood import cut_into_blocks, joined_blocks
from transduce.paper.finding import Finding, StudyContext

NEIGHBOURHOOD, KERNEL = 16, 3
_LENGTHS, _WIDTHS = (8, 32, 128, 256, 512, 1024, 2048), (64, 256, 512)
_TIMED = 3  # index in its stack of the layer that is timed: taps 27 apart, if it is dilated
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


def convolution(d: int, index: int = 0) -> Layer:
    """Return a convolution over three neighbouring positions."""
    product = nn.Conv1d(d, d, KERNEL, padding=KERNEL // 2)
    return lambda x_BND: product(x_BND.mT).mT


def dilated(d: int, index: int = 0) -> Layer:
    """Return the layer of this index in a stack of convolutions, each with taps three times as far apart as below.

    Where that would reach beyond the end, the taps are as far apart as what is left.
    """
    kernel = nn.Conv1d(d, d, KERNEL)
    below = (KERNEL**index - 1) // 2  # how far the layers below reach

    def layer(x_BND: Tensor) -> Tensor:
        apart = min(KERNEL**index, max(1, x_BND.size(1) - 1 - below))
        return functional.conv1d(x_BND.mT, kernel.weight, kernel.bias, padding=apart, dilation=apart).mT

    return layer


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
    return LayerCount(counter.get_total_flops(), chain.longest, n if kind == "recurrent" else _path(kind, n))


def _path(kind: str, n: int) -> int:
    """Return the fewest layers after which the last output depends on the first input.

    A layer's derivatives at one number a position say which outputs depend on which inputs; a stack of layers
    multiplies these matrices of 0 and 1, so that no product of small derivatives vanishes.
    """
    reached_N = torch.zeros(n)
    reached_N[0] = 1.0
    for index in range(n):
        x_BND = torch.randn(1, n, 1)
        derivative = torch.autograd.functional.jacobian(LAYERS[kind](1, index), x_BND)
        reached_N = ((derivative.view(n, n) != 0).float() @ reached_N > 0).float()
        if reached_N[-1]:
            return index + 1
    raise AssertionError(f"{n} layers of kind {kind} do not join {n} positions")


def slope(sizes: Sequence[int], values: Sequence[float]) -> float:
    """Return the exponent p of the best fit of c·nᵖ."""
    logs, heights = [math.log(size) for size in sizes], [math.log(value) for value in values]
    return statistics.linear_regression(logs, heights).slope


def seconds(kind: str, sizes: Sequence[int], d: int, *, rounds: int = 3) -> list[float]:
    """Return the median processor seconds of a forward and backward pass for each length, measured in turns."""
    lstm = nn.LSTM(d, d, batch_first=True)
    layer = (lambda x_BND: lstm(x_BND)[0]) if kind == "recurrent" else LAYERS[kind](d, _TIMED)
    taken: list[list[float]] = [[] for _ in sizes]
    for _ in range(rounds + 1):
        for n, times in zip(sizes, taken, strict=True):
            x_BND = torch.randn(1, n, d, requires_grad=True)
            start = time.process_time()
            layer(x_BND).sum().backward()
            times.append(time.process_time() - start)
    return [statistics.median(times[1:]) for times in taken]


def growth(kind: str, context: StudyContext) -> Finding | None:
    """Return the exponent with which a layer's time grows with n, and its times at d = 256."""
    torch.manual_seed(context.seed)
    also, points = {}, []
    for d in _WIDTHS:
        if context.stop_requested():
            return None
        taken = seconds(kind, _LENGTHS, d)
        for low, high in ((8, 128), (256, 2048)):
            span = [place for place, n in enumerate(_LENGTHS) if low <= n <= high]
            fitted = slope([_LENGTHS[place] for place in span], [taken[place] for place in span])
            also[f"exponent of n at d = {d}, n = {low} to {high:,}"] = fitted
        if d == _WIDTHS[1]:
            points = [[float(n), 1000 * spent] for n, spent in zip(_LENGTHS, taken, strict=True)]
    number = also.pop(f"exponent of n at d = {_WIDTHS[1]}, n = 256 to 2,048")
    return Finding(number, "exponent of n in the time at d = 256, n = 256 to 2,048; curve: milliseconds", also, points)
