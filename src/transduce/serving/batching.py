"""Who is served next: units of work from many clients, joined into rounds of a padded-token budget.

A request becomes units, one for each of its texts. A round is what the child computes at once: the unit that waits
longest, and every later one of the same kind that fits beside it. There is no timer: a round leaves as soon as the
child is free, so a lone request is never delayed and a crowd shares its batches by itself.

    units of a round × longest of them ≤ budget          (a unit longer than the budget goes alone)
"""

import asyncio
import json
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(eq=False)
class Unit:
    """A piece of work: one text, the future that its request waits for, and when waiting becomes pointless."""

    task: str
    model: str
    options: dict[str, Any]
    item: Any
    tokens: int
    """Its length, the end token included."""
    deadline: float
    """On the event loop's clock. [seconds]"""
    future: "asyncio.Future[dict[str, Any]]"
    is_probe: bool = False
    """A health probe: it has its own place and is never refused or kept waiting behind clients."""
    deaths: int = 0
    """How often the child died while computing it."""
    kind: str = field(init=False)
    """Units of one kind can share a round."""

    def __post_init__(self) -> None:
        self.kind = json.dumps([self.task, self.model, self.options], sort_keys=True)

    def is_wanted(self, now: float) -> bool:
        """Tell whether somebody still waits for it and can still be answered in time."""
        return not self.future.done() and self.deadline > now


class WaitingUnits:
    """The bounded queue: first come, first served, probes before all."""

    def __init__(self, *, most_units: int, budget: int) -> None:
        self.most_units = most_units
        self.budget = budget
        self._clients: deque[Unit] = deque()
        self._probes: deque[Unit] = deque()
        self.tokens = 0
        """How many tokens wait; kept, since everybody who comes asks for it."""

    def __len__(self) -> int:
        return len(self._clients) + len(self._probes)

    def __iter__(self) -> Iterator[Unit]:
        yield from self._probes
        yield from self._clients

    def has_room_for(self, count: int) -> bool:
        """Tell whether a request of `count` units fits; a lone large one always does where nothing waits."""
        return not self._clients or len(self._clients) + count <= self.most_units

    def add(self, unit: Unit) -> None:
        """Put a unit at the end of its queue."""
        (self._probes if unit.is_probe else self._clients).append(unit)
        self.tokens += unit.tokens

    def put_back(self, units: list[Unit]) -> None:
        """Put units of a round that was lost back at the front."""
        for unit in reversed(units):
            (self._probes if unit.is_probe else self._clients).appendleft(unit)
            self.tokens += unit.tokens

    def next_round(self, now: float) -> tuple[list[Unit], list[Unit]]:
        """Take the next round and, apart from it, the units that nobody waits for any more."""
        chosen, gone = self._next_round(now)
        self.tokens -= sum(unit.tokens for unit in (*chosen, *gone))
        return chosen, gone

    def _next_round(self, now: float) -> tuple[list[Unit], list[Unit]]:
        gone = [unit for unit in self if not unit.is_wanted(now)]
        self._probes = deque(unit for unit in self._probes if unit.is_wanted(now))
        self._clients = deque(unit for unit in self._clients if unit.is_wanted(now))
        if self._probes:
            return [self._probes.popleft()], gone
        if not self._clients:
            return [], gone
        first = self._clients.popleft()
        if first.deaths:  # it may be what killed the child: nobody else shall go down with it
            return [first], gone
        chosen, longest = [first], first.tokens
        left: deque[Unit] = deque()
        for unit in self._clients:
            longest_with = max(longest, unit.tokens)
            if unit.kind == first.kind and not unit.deaths and longest_with * (len(chosen) + 1) <= self.budget:
                chosen.append(unit)
                longest = longest_with
            else:
                left.append(unit)
        self._clients = left
        return chosen, gone

    def empty(self) -> list[Unit]:
        """Take everything out."""
        units = list(self)
        self._probes.clear()
        self._clients.clear()
        self.tokens = 0
        return units
