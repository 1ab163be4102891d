"""The queue of jobs, and how waiting jobs are grouped into rounds.

A request becomes jobs, one for each of its texts. A round is the batch that the child computes in one call: the job
that has waited longest, and every later job of the same task, model and options that fits the padded-token budget:

    jobs in the round × tokens of the longest ≤ budget          (a job longer than the budget is a round by itself)

There is no timer. A round starts as soon as the child is free, so a single request is never delayed, and the requests
that arrive while a round is computed share the next one.
"""

import asyncio
import json
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Job:
    """One item for the child to compute, such as a text to translate."""

    task: str
    """The name of a function in `worker.tasks_with`."""
    model: str
    item: Any
    tokens: int
    """Length of the item, the end token included; for a document, an estimate."""
    options: dict[str, Any]


@dataclass(eq=False)
class QueuedJob:
    """A job, its time limit, and the future that its request awaits."""

    job: Job
    deadline: float
    """On the event loop's clock. [seconds]"""
    future: "asyncio.Future[dict[str, Any]]"
    is_probe: bool = False
    """A health probe: it goes ahead of clients and takes none of their places in the queue."""
    crashes: int = 0
    """How many children died or hung while they computed it."""
    round_key: str = field(init=False)
    """Jobs with the same key can share a round."""

    def __post_init__(self) -> None:
        self.round_key = json.dumps([self.job.task, self.job.model, self.job.options], sort_keys=True)

    def is_wanted(self, now: float) -> bool:
        """Tell whether its request still waits and its deadline has not passed."""
        return not self.future.done() and self.deadline > now


class JobQueue:
    """A bounded queue: first in, first out, probes before clients."""

    def __init__(self, *, most_jobs: int, budget: int) -> None:
        self.most_jobs = most_jobs
        self.budget = budget
        self._clients: deque[QueuedJob] = deque()
        self._probes: deque[QueuedJob] = deque()
        self.tokens = 0
        """Tokens of all jobs in the queue; a running total, because every arriving request reads it."""

    def __len__(self) -> int:
        return len(self._clients) + len(self._probes)

    def __iter__(self) -> Iterator[QueuedJob]:
        yield from self._probes
        yield from self._clients

    def has_room_for(self, count: int) -> bool:
        """Tell whether a request of `count` jobs fits; an empty queue takes a request of any size."""
        return not self._clients or len(self._clients) + count <= self.most_jobs

    def add(self, queued: QueuedJob) -> None:
        """Append a job."""
        (self._probes if queued.is_probe else self._clients).append(queued)
        self.tokens += queued.job.tokens

    def put_back(self, lost: list[QueuedJob]) -> None:
        """Return the jobs of a lost round to the front, in their order."""
        for queued in reversed(lost):
            (self._probes if queued.is_probe else self._clients).appendleft(queued)
            self.tokens += queued.job.tokens

    def next_round(self, now: float) -> tuple[list[QueuedJob], list[QueuedJob]]:
        """Remove and return the next round, and the jobs dropped because the client left or the deadline passed."""
        unwanted = [queued for queued in self if not queued.is_wanted(now)]
        self._probes = deque(queued for queued in self._probes if queued.is_wanted(now))
        self._clients = deque(queued for queued in self._clients if queued.is_wanted(now))
        chosen = [self._probes.popleft()] if self._probes else self._take_clients()
        self.tokens -= sum(queued.job.tokens for queued in (*chosen, *unwanted))
        return chosen, unwanted

    def _take_clients(self) -> list[QueuedJob]:
        if not self._clients:
            return []
        first = self._clients.popleft()
        if first.crashes:  # it may have crashed the child: no other job may share its round
            return [first]
        chosen, longest = [first], first.job.tokens
        left: deque[QueuedJob] = deque()
        for queued in self._clients:
            longest_with = max(longest, queued.job.tokens)
            fits = longest_with * (len(chosen) + 1) <= self.budget
            if fits and queued.round_key == first.round_key and not queued.crashes:
                chosen.append(queued)
                longest = longest_with
            else:
                left.append(queued)
        self._clients = left
        return chosen

    def empty(self) -> list[QueuedJob]:
        """Remove and return all jobs."""
        removed = list(self)
        self._probes.clear()
        self._clients.clear()
        self.tokens = 0
        return removed
