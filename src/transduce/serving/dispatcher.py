"""The dispatcher: takes units of work, sends rounds to the child, answers, and keeps a child alive.

- A child that dies is replaced. The units it died over are tried again, each alone; who kills a second child is
  refused, so that one poisonous text cannot take the server down.
- A child is replaced on purpose (new models, too much memory) by one that has translated before the old one goes.
- Nobody waits without end: a unit's own deadline answers its request whatever the child does.
"""

import asyncio
import contextlib
import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transduce.errors import ModelError, RunError, TransduceError
from transduce.serving.batching import Unit, WaitingUnits
from transduce.serving.child import Child, ChildOrder
from transduce.serving.config import ServingConfig
from transduce.serving.logs import log
from transduce.serving.metrics import Metrics
from transduce.serving.refusal import Refusal
from transduce.text.tokenizer_pair import TokenizerPair

_LONGEST_PAUSE = 30.0
_ANSWERED_AT_ONCE = 2
_DEATHS_ALLOWED = 1
_SECONDS_BETWEEN_RENEWALS = 60.0


@dataclass(frozen=True)
class Work:
    """What a request asks of the child: one unit of it."""

    task: str
    model: str
    item: Any
    tokens: int
    options: dict[str, Any]


class Dispatcher:
    """Stands between requests and the child."""

    def __init__(self, order: ChildOrder, config: ServingConfig, metrics: Metrics) -> None:
        self._order = order
        self._config = config
        self._metrics = metrics
        self._waiting = WaitingUnits(most_units=config.queue_limit, budget=config.batch_tokens)
        self._running: list[Unit] = []
        self._answering: list[Unit] = []
        self._wake = asyncio.Event()
        self._child: Child | None = None
        self._successor: Child | None = None
        self._is_stopping = False
        self._cannot_load = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop_task: asyncio.Task[None] | None = None
        self._tokens_per_second: float | None = None
        self._renewed_at = -math.inf
        self._change = asyncio.Lock()
        self.models: dict[str, dict[str, Any]] = {}
        """What each model says of itself."""
        self.tokenizers: dict[str, TokenizerPair] = {}

    async def start(self) -> None:
        """Start the first child; what is wrong with the models is the user's to cure."""
        try:
            child = await self._start_child()
        except (ChildProcessError, TimeoutError) as fault:
            reason = str(fault) or f"it took longer than {self._order.seconds_to_load:g} seconds"
            raise RunError(
                f"The model process could not load the models: {reason}. What it said itself stands above; without "
                "any word of its own, memory may have run out, or --load-seconds is too short."
            ) from None
        limit = self._config.memory_limit
        if limit is not None and (child.resident_bytes or 0) > limit * 1e6:
            await child.end()
            raise ModelError(
                f"memory_limit = {limit} MB, but the models alone take {(child.resident_bytes or 0) / 1e6:,.0f} MB. "
                "Raise the limit, or serve fewer models."
            )
        self._adopt(child)
        self._loop_task = asyncio.create_task(self._run())

    @property
    def is_up(self) -> bool:
        """Whether a child can compute now."""
        return self._child is not None and self._child.is_alive

    @property
    def child_process_id(self) -> int | None:
        """The child's number, while there is one."""
        return self._child.process_id if self._child is not None else None

    async def submit(self, works: Sequence[Work], *, is_probe: bool = False) -> list[Any]:
        """Return the value of each piece of work, or raise a Refusal; cancelled, it takes its work back."""
        if not works:
            return []
        self._refuse_if_unable(works, is_probe=is_probe)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._config.request_seconds
        units = [
            Unit(work.task, work.model, work.options, work.item, work.tokens, deadline, loop.create_future(), is_probe)
            for work in works
        ]
        for unit in units:
            self._waiting.add(unit)
        self._metrics.waiting.set(len(self._waiting))
        self._wake.set()
        futures = [unit.future for unit in units]
        try:
            _, late = await asyncio.wait(futures, timeout=self._config.request_seconds)
            if late:
                raise Refusal(
                    503,
                    f"No answer within {self._config.request_seconds:g} seconds.",
                    retry_after=self._seconds_to_wait(),
                )
            return [self._value(future.result()) for future in futures]
        finally:
            for future in futures:
                future.cancel()

    async def replace_child(self, reason: str) -> None:
        """Start a child with what is now in the models' folders; it takes over once it has translated."""
        async with self._change:
            child = await self._start_child()
            if self._successor is not None:
                await self._successor.end()
            self._successor = child
            self._renewed_at = asyncio.get_running_loop().time()
            self._metrics.child_renewals.inc()
            log("child replaced", reason=reason, process=child.process_id)
            self._wake.set()

    async def stop(self, *, seconds: float) -> None:
        """Refuse new work, give what runs and waits some time, and end the child."""
        self._is_stopping = True
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while (self._running or self._answering or len(self._waiting)) and loop.time() < end:
            await asyncio.sleep(0.02)
        for unit in [*self._running, *self._answering, *self._waiting.empty()]:
            _refuse(unit, "The server stops.", retry_after=5)
        tasks = [task for task in (self._loop_task, *self._tasks) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for child in (self._child, self._successor):
            if child is not None:
                await child.end()
        self._child = self._successor = None

    def _refuse_if_unable(self, works: Sequence[Work], *, is_probe: bool) -> None:
        if self._is_stopping:
            raise Refusal(503, "The server stops.", retry_after=5)
        if self._cannot_load:
            raise Refusal(503, "The model cannot be loaded at the moment.", retry_after=10)
        if not is_probe:
            self.refuse_if_full(len(works))

    def refuse_if_full(self, count: int = 1, *, inside: int = 0) -> None:
        """Refuse whoever would not fit, or could not be answered in time, at once: no work is wasted on them.

        Of requests `inside` the server, those that are still on their way to the queue take places in it too: a crowd
        that comes at once would otherwise be let in whole, and most of it refused later, at a higher price.
        """
        entering = inside - len(self._running) - len(self._answering) - len(self._waiting)
        if entering > 0 and entering + len(self._waiting) >= self._waiting.most_units:
            raise Refusal(429, "Slowdown: too many requests wait already.", retry_after=self._seconds_to_wait())
        is_hopeless = len(self._waiting) > 0 and self._seconds_to_wait() > self._config.request_seconds
        if not self._waiting.has_room_for(count) or is_hopeless:
            raise Refusal(429, "Slowdown: too many requests wait already.", retry_after=self._seconds_to_wait())

    def _seconds_to_wait(self) -> int:
        ahead = self._waiting.tokens + sum(unit.tokens for unit in self._running)
        speed = self._tokens_per_second
        return 1 if speed is None else max(1, math.ceil(ahead / speed))

    def _value(self, result: dict[str, Any]) -> Any:  # noqa: ANN401 - whatever the task returns
        if "error" not in result:
            return result["value"]
        if result.get("is_curable"):
            raise Refusal(400, str(result["error"]))
        log("the child failed", level=logging.ERROR, fault=str(result["error"]))
        raise Refusal(500, "This request met a fault of the server; others are not affected.")

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            if self._successor is not None:
                self._succeed()
            if not self.is_up:
                await self._restart()
            units, gone = self._waiting.next_round(loop.time())
            self._metrics.skipped.inc(len(gone))
            self._metrics.waiting.set(len(self._waiting))
            if units:
                await self._compute(units)
                continue
            self._wake.clear()
            if not len(self._waiting) and self._successor is None and self.is_up:
                await self._wake.wait()

    async def _compute(self, units: list[Unit]) -> None:
        assert self._child is not None
        self._running = units
        loop = asyncio.get_running_loop()
        began = loop.time()
        is_crowded = len(self._waiting) > 0
        first = units[0]
        request = {"task": first.task, "model": first.model, "options": first.options}
        try:
            results = await asyncio.wait_for(
                self._child.compute({**request, "items": [unit.item for unit in units]}),
                2 * self._config.request_seconds,
            )
        except (ChildProcessError, TimeoutError) as fault:
            await self._lose_child(units, fault)
            return
        finally:
            self._running = []
        self._measure(units, loop.time() - began, is_crowded=is_crowded)
        self._answering += units
        self._keep(self._answer(list(zip(units, results, strict=True))))
        self._renew_if_large()

    async def _answer(self, answers: Sequence[tuple[Unit, dict[str, Any]]]) -> None:
        """Answer a round a few at a time, so that who comes meanwhile does not wait behind all of it."""
        for start in range(0, len(answers), _ANSWERED_AT_ONCE):
            for unit, result in answers[start : start + _ANSWERED_AT_ONCE]:
                self._answering.remove(unit)
                if not unit.future.done():
                    unit.future.set_result(result)
            await asyncio.sleep(0)

    async def _lose_child(self, units: list[Unit], fault: Exception) -> None:
        assert self._child is not None
        log("child lost", level=logging.WARNING, reason=str(fault) or "no answer in time", texts=len(units))
        await self._child.kill()
        again = []
        for unit in units:
            unit.deaths += 1
            if unit.deaths > _DEATHS_ALLOWED:
                _refuse(unit, "The model process ended over this text, twice.", retry_after=None)
            else:
                again.append(unit)
        self._waiting.put_back(again)

    async def _restart(self) -> None:
        """Start children until one lives; the first failure answers everybody who waits."""
        self._metrics.child_deaths.inc()
        self._metrics.child_is_up.set(0)
        pause = 0.5
        while True:
            try:
                self._adopt(await self._start_child())
            except (TransduceError, TimeoutError, OSError) as fault:
                log("child cannot start", level=logging.ERROR, fault=type(fault).__name__, again_in=pause)
            else:
                self._cannot_load = False
                return
            self._cannot_load = True
            for unit in self._waiting.empty():
                _refuse(unit, "The model cannot be loaded at the moment.", retry_after=math.ceil(pause))
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
            if self._successor is not None:
                self._cannot_load = False
                self._succeed()
                return

    async def _start_child(self) -> Child:
        child = await Child.start(self._order)
        try:
            child.tokenizers = {name: _tokenizers_of(model) for name, model in child.models.items()}
        except BaseException:
            await child.kill()
            raise
        return child

    def _adopt(self, child: Child) -> None:
        self._child = child
        self.models, self.tokenizers = child.models, child.tokenizers
        self._metrics.child_is_up.set(1)
        self._metrics.child_bytes.set(child.resident_bytes or 0)
        self._keep(self._watch(child))
        log("child ready", process=child.process_id, models=sorted(child.models))

    def _succeed(self) -> None:
        old, successor = self._child, self._successor
        assert successor is not None
        self._successor = None
        self._adopt(successor)
        if old is not None:
            self._keep(old.end())

    async def _watch(self, child: Child) -> None:
        await child.wait()
        self._wake.set()

    def _keep(self, work: Any) -> None:  # noqa: ANN401 - a coroutine
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _measure(self, units: list[Unit], seconds: float, *, is_crowded: bool) -> None:
        tokens = sum(unit.tokens for unit in units)
        if (
            is_crowded and units[0].task == "translate"
        ):  # rounds that left others waiting are as full as they get; small ones would belie the speed
            speed, known = tokens / max(seconds, 1e-6), self._tokens_per_second
            self._tokens_per_second = speed if known is None else 0.8 * known + 0.2 * speed
        self._metrics.rounds.inc()
        self._metrics.round_texts.observe(len(units))
        self._metrics.round_seconds.observe(seconds)
        self._metrics.source_tokens.inc(tokens)

    def _renew_if_large(self) -> None:
        assert self._child is not None
        resident = self._child.resident_bytes or 0
        self._metrics.child_bytes.set(resident)
        limit = self._config.memory_limit
        now = asyncio.get_running_loop().time()
        is_due = limit is not None and resident > limit * 1e6
        if is_due and now - self._renewed_at > _SECONDS_BETWEEN_RENEWALS and not self._change.locked():
            self._renewed_at = now
            self._keep(self._renew())

    async def _renew(self) -> None:
        with contextlib.suppress(TimeoutError, OSError, TransduceError):
            await self.replace_child("memory")


def _refuse(unit: Unit, message: str, *, retry_after: int | None) -> None:
    if not unit.future.done():
        unit.future.set_exception(Refusal(503, message, retry_after=retry_after))
        unit.future.exception()  # read here, so that one whose client has gone meanwhile is not complained of


def _tokenizers_of(model: dict[str, Any]) -> TokenizerPair:
    source = None if model["source_tokenizer"] is None else Path(model["source_tokenizer"])
    return TokenizerPair.read(Path(model["tokenizer"]), source=source, source_end=model["source_end"])
