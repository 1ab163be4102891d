"""Calls of compiled kernels: made at once, or noted down and made together, as one, as often as wanted.

From Python a call costs some microseconds, and a position of a small network takes fifty of them: for one sentence,
more than its arithmetic. What a step calls, and with which addresses, stays the same while no table is moved. So the
calls of a step are noted once, as rows of integers, the kernel's address before its arguments; `run` in
`kernel_sources.py` makes them all. What does change from step to step lies in memory, at addresses that do not.
"""

from typing import Protocol

import torch
from torch import Tensor

from transduce.engine.machine_code import CODE, entry

MOST_ARGUMENTS = 16


class Calls(Protocol):
    """Where kernels are called, and where they find room."""

    def call(self, name: str, *arguments: int) -> None:
        """Call a kernel with addresses and sizes."""

    def output(self, rows: int, width: int) -> Tensor:
        """Return room for a product, which the next kernel but one may write over."""

    def room(self, size: int) -> Tensor:
        """Return room that a kernel needs while it runs."""


class AtOnce:
    """Every call when it is asked for, every room a new one."""

    def call(self, name: str, *arguments: int) -> None:
        """Call it."""
        entry(name, len(arguments))(*arguments)

    def output(self, rows: int, width: int) -> Tensor:
        """Return a new one."""
        return torch.empty(rows, width)

    def room(self, size: int) -> Tensor:
        """Return a new one."""
        return torch.empty(size)


class Program:
    """Calls in their order, to be made when it is run; all share one room and one place for products."""

    def __init__(self) -> None:
        self._calls: list[list[int]] = []
        self._output, self._room = torch.empty(0), torch.empty(0)
        self._kept: list[Tensor] = []  # whose addresses are noted
        self._table = torch.empty(0, dtype=torch.int64)

    def call(self, name: str, *arguments: int) -> None:
        """Note it."""
        assert len(arguments) <= MOST_ARGUMENTS, "make room for more arguments"
        unused = [0] * (
            MOST_ARGUMENTS - len(arguments)
        )  # callers clear up in C, so a kernel may be given more than it takes
        self._calls.append([CODE.address(name), *arguments, *unused])

    def output(self, rows: int, width: int) -> Tensor:
        """Return the beginning of the common one."""
        if self._output.numel() < rows * width:
            self._output = torch.empty(rows * width)
            self._kept.append(self._output)
        return self._output[: rows * width].view(rows, width)

    def room(self, size: int) -> Tensor:
        """Return the common one."""
        if self._room.numel() < size:
            self._room = torch.empty(size)
            self._kept.append(self._room)
        return self._room

    def run(self) -> None:
        """Make all calls."""
        if self._table.size(0) != len(self._calls):
            self._table = torch.tensor(self._calls, dtype=torch.int64)
        entry("run", 2)(self._table.data_ptr(), len(self._calls))
