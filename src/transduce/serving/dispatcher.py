"""The dispatcher: queues jobs, sends them to the child in rounds, answers requests, and keeps a child running.

- A child that dies is replaced. Each job of its last round is tried once more, in a round by itself. A job that
  crashes a second child is refused, so that one malformed text cannot take the server down.
- To load new models or to free memory, a new child starts beside the old one and takes over once it has translated.
- With a limit of memory the child drops and loads models: a new child begins with those that the old one held.
- A request is answered by its deadline even if the child hangs.
"""

import asyncio
import contextlib
import logging
import math
from collections.abc import Coroutine, Sequence
from typing import Any

from transduce.errors import RunError, TransduceError
from transduce.serving.child import Child
from transduce.serving.config import ServingConfig, child_settings
from transduce.serving.job_queue import Job, JobQueue, QueuedJob
from transduce.serving.logs import log
from transduce.serving.metrics import Metrics
from transduce.serving.refusal import Refusal
from transduce.text.tokenizer_pair import TokenizerPair

_LONGEST_PAUSE = 30.0
_ANSWERED_AT_ONCE = 2
_CRASHES_ALLOWED = 1
_SECONDS_BETWEEN_RENEWALS = 60.0


class Dispatcher:
    """Connects requests to the child process."""

    def __init__(self, config: ServingConfig, metrics: Metrics) -> None:
        self._config = config
        self._child_settings = child_settings(config)
        self._metrics = metrics
        self._queue = JobQueue(most_jobs=config.queue_limit, budget=config.batch_tokens)
        self._running: list[QueuedJob] = []
        self._answering: list[QueuedJob] = []
        self._wake = asyncio.Event()
        self._child: Child | None = None
        self._successor: Child | None = None
        self._is_stopping = False
        self._cannot_load = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._tokens_per_second: float | None = None
        self._renewed_at = -math.inf
        self._replacing = asyncio.Lock()
        self.models: dict[str, dict[str, Any]] = {}
        """By name, the description of each model: `worker.describe`."""
        self.tokenizers: dict[str, TokenizerPair] = {}

    async def start(self) -> None:
        """Start the first child; raise RunError or ModelError if it cannot load the models or needs too much memory."""
        try:
            child = await self._start_child()
        except (ChildProcessError, TimeoutError) as fault:
            reason = str(fault) or f"it took longer than {self._config.load_seconds:g} seconds"
            raise RunError(
                f"The model process could not load the models: {reason}. Its own error message, if any, is printed "
                "above. If there is none, memory ran out or --load-seconds is too short."
            ) from None
        self._adopt(child)
        self._start_task(self._run())

    @property
    def is_up(self) -> bool:
        """Whether a child is ready to compute."""
        return self._child is not None and self._child.is_alive

    @property
    def child_process_id(self) -> int | None:
        """The process id of the current child."""
        return self._child.process_id if self._child is not None else None

    @property
    def loaded(self) -> list[str]:
        """The models in the child's memory, the least recently used first; the others are loaded on demand."""
        return self._child.loaded if self._child is not None else []

    async def submit(self, jobs: Sequence[Job], *, is_probe: bool = False, since: float | None = None) -> list[Any]:
        """Return the value of each job, or raise a Refusal. Cancelling this call withdraws the jobs.

        `since` is when the request arrived, on the event loop's clock; now unless given.
        """
        if not jobs:
            return []
        self._refuse_if_unable(jobs, is_probe=is_probe)
        loop = asyncio.get_running_loop()
        deadline = (loop.time() if since is None else since) + self._config.request_seconds
        futures: list[asyncio.Future[dict[str, Any]]] = [loop.create_future() for _ in jobs]
        for job, future in zip(jobs, futures, strict=True):
            self._queue.add(QueuedJob(job, deadline, future, is_probe))
        self._metrics.waiting.set(len(self._queue))
        self._wake.set()
        try:
            _, late = await asyncio.wait(futures, timeout=max(0.0, deadline - loop.time()))
            if late:
                message = f"No answer within {self._config.request_seconds:g} seconds."
                raise Refusal(503, message, retry_after=self._seconds_to_wait())
            return [_value(future.result()) for future in futures]
        finally:
            for future in futures:
                future.cancel()

    async def replace_child(self, reason: str, *, load: list[str] | None = None) -> None:
        """Start a child with the current files of the models; it takes over once it has translated."""
        async with self._replacing:
            child = await self._start_child(load)
            if self._successor is not None:
                await self._successor.end()
            self._successor = child
            self._renewed_at = asyncio.get_running_loop().time()
            self._metrics.child_renewals.inc()
            log("child replaced", reason=reason, process=child.process_id)
            self._wake.set()

    async def stop(self, *, seconds: float) -> None:
        """Refuse new jobs, wait up to `seconds` for the unfinished jobs, and end the child."""
        self._is_stopping = True
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while (self._running or self._answering or len(self._queue)) and loop.time() < end:
            await asyncio.sleep(0.02)
        for queued in [*self._running, *self._answering, *self._queue.empty()]:
            _refuse(queued, "The server is shutting down.", retry_after=5)
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for child in (self._child, self._successor):
            if child is not None:
                await child.end()
        self._child = self._successor = None

    def _refuse_if_unable(self, jobs: Sequence[Job], *, is_probe: bool) -> None:
        if self._is_stopping:
            raise Refusal(503, "The server is shutting down.", retry_after=5)
        if self._cannot_load:
            raise Refusal(503, "The models cannot be loaded at the moment.", retry_after=10)
        if not is_probe:
            self.refuse_if_full(len(jobs))

    def refuse_if_full(self, count: int = 1, *, admitted: int = 0) -> None:
        """Refuse a request of `count` jobs at once if the queue has no room or cannot serve it in time.

        `admitted` requests have passed the gate and are not yet answered. Those that have not reached the queue
        count as if they had: otherwise a burst of requests would pass the gate, and most would be refused later, at a
        higher cost.
        """
        waiting = len(self._queue)
        arriving = admitted - len(self._running) - len(self._answering) - waiting
        is_full = arriving > 0 and arriving + waiting >= self._queue.most_jobs
        is_too_slow = waiting > 0 and self._seconds_to_wait() > self._config.request_seconds
        if is_full or is_too_slow or not self._queue.has_room_for(count):
            raise Refusal(429, "Slowdown: too many requests are waiting.", retry_after=self._seconds_to_wait())

    def _seconds_to_wait(self) -> int:
        ahead = self._queue.tokens + sum(queued.job.tokens for queued in self._running)
        speed = self._tokens_per_second
        return 1 if speed is None else max(1, math.ceil(ahead / speed))

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            if self._successor is not None:
                self._switch_to_successor()
            if not self.is_up:
                await self._restart()
            chosen, unwanted = self._queue.next_round(loop.time())
            self._metrics.skipped.inc(len(unwanted))
            self._metrics.waiting.set(len(self._queue))
            if chosen:
                await self._compute(chosen)
                continue
            self._wake.clear()
            if not len(self._queue) and self._successor is None and self.is_up:
                await self._wake.wait()

    async def _compute(self, chosen: list[QueuedJob]) -> None:
        assert self._child is not None
        self._running = chosen
        loaded = set(self._child.loaded)
        loop = asyncio.get_running_loop()
        began = loop.time()
        is_crowded = len(self._queue) > 0
        first = chosen[0].job
        request = {"task": first.task, "model": first.model, "options": first.options}
        try:
            results = await asyncio.wait_for(
                self._child.compute({**request, "items": [queued.job.item for queued in chosen]}),
                2 * self._config.request_seconds,
            )
        except (ChildProcessError, TimeoutError) as fault:
            await self._give_up_child(chosen, fault)
            return
        finally:
            self._running = []
        self._metrics.loads.inc(len(set(self._child.loaded) - loaded))
        self._measure([queued.job for queued in chosen], loop.time() - began, is_crowded=is_crowded)
        self._answering += chosen
        self._start_task(self._answer(list(zip(chosen, results, strict=True))))
        self._renew_if_large()

    async def _answer(self, answers: Sequence[tuple[QueuedJob, dict[str, Any]]]) -> None:
        """Answer a few jobs at a time, so that requests that arrive meanwhile do not wait for all of them."""
        for start in range(0, len(answers), _ANSWERED_AT_ONCE):
            for queued, result in answers[start : start + _ANSWERED_AT_ONCE]:
                self._answering.remove(queued)
                if not queued.future.done():
                    queued.future.set_result(result)
            await asyncio.sleep(0)

    async def _give_up_child(self, chosen: list[QueuedJob], fault: Exception) -> None:
        """Kill a child that died or hung during a round; queue the jobs again, or refuse those that had their retry."""
        assert self._child is not None
        log("child lost", level=logging.WARNING, reason=str(fault) or "no answer in time", texts=len(chosen))
        await self._child.kill()
        retried = []
        for queued in chosen:
            queued.crashes += 1
            if queued.crashes > _CRASHES_ALLOWED:
                _refuse(queued, "The model process crashed twice on this text.", retry_after=None)
            else:
                retried.append(queued)
        self._queue.put_back(retried)

    async def _restart(self) -> None:
        """Start children until one is ready; each failure refuses all jobs in the queue."""
        self._metrics.child_deaths.inc()
        self._metrics.child_is_up.set(0)
        pause = 0.5
        while True:
            try:
                self._adopt(await self._start_child(self.loaded))
            except (TransduceError, TimeoutError, OSError) as fault:
                log("child cannot start", level=logging.ERROR, fault=type(fault).__name__, again_in=pause)
            else:
                self._cannot_load = False
                return
            self._cannot_load = True
            for queued in self._queue.empty():
                _refuse(queued, "The models cannot be loaded at the moment.", retry_after=math.ceil(pause))
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
            if self._successor is not None:
                self._cannot_load = False
                self._switch_to_successor()
                return

    async def _start_child(self, load: list[str] | None = None) -> Child:
        """Start a child that loads these models; unless given all, the first one last, so that it stays loaded."""
        settings = {**self._child_settings, "load": load or list(reversed(self._child_settings["models"]))}
        return await Child.start(settings, seconds_to_load=self._config.load_seconds)

    def _adopt(self, child: Child) -> None:
        self._child = child
        names = self._child_settings["models"]
        models, tokenizers = {**self.models, **child.models}, {**self.tokenizers, **child.tokenizers}
        self.models = {name: models[name] for name in names}
        self.tokenizers = {name: tokenizers[name] for name in names}
        self._metrics.child_is_up.set(1)
        self._metrics.child_bytes.set(child.resident_bytes or 0)
        self._start_task(self._wake_at_end_of(child))
        log("child ready", process=child.process_id, models=sorted(child.models))

    def _switch_to_successor(self) -> None:
        old, successor = self._child, self._successor
        assert successor is not None
        self._successor = None
        self._adopt(successor)
        if old is not None:
            self._start_task(old.end())

    async def _wake_at_end_of(self, child: Child) -> None:
        await child.wait()
        self._wake.set()

    def _start_task(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)  # the event loop holds only a weak reference
        task.add_done_callback(self._tasks.discard)

    def _measure(self, jobs: list[Job], seconds: float, *, is_crowded: bool) -> None:
        tokens = sum(job.tokens for job in jobs)
        # Only a round that left jobs waiting was as full as it can be; a smaller one would underestimate the speed.
        if is_crowded and jobs[0].task == "translate":
            speed, known = tokens / max(seconds, 1e-6), self._tokens_per_second
            self._tokens_per_second = speed if known is None else 0.8 * known + 0.2 * speed
        self._metrics.rounds.inc()
        self._metrics.round_texts.observe(len(jobs))
        self._metrics.round_seconds.observe(seconds)
        self._metrics.source_tokens.inc(tokens)

    def _renew_if_large(self) -> None:
        assert self._child is not None
        resident = self._child.resident_bytes or 0
        self._metrics.child_bytes.set(resident)
        limit = self._config.memory_limit
        now = asyncio.get_running_loop().time()
        is_due = limit is not None and resident > limit * 1e6
        if is_due and now - self._renewed_at > _SECONDS_BETWEEN_RENEWALS and not self._replacing.locked():
            self._renewed_at = now
            self._start_task(self._renew())

    async def _renew(self) -> None:
        with contextlib.suppress(TimeoutError, OSError, TransduceError):
            await self.replace_child("memory", load=self.loaded)


def _value(result: dict[str, Any]) -> Any:  # noqa: ANN401 - each task returns its own type
    if "unavailable" in result:
        log("a model cannot be loaded", level=logging.ERROR, fault=str(result["unavailable"]))
        raise Refusal(503, "The model cannot be loaded at the moment.", retry_after=10)
    if "error" not in result:
        return result["value"]
    if result.get("is_curable"):
        raise Refusal(400, str(result["error"]))
    log("the child failed", level=logging.ERROR, fault=str(result["error"]))
    raise Refusal(500, "The server failed on this request; other requests are not affected.")


def _refuse(queued: QueuedJob, message: str, *, retry_after: int | None) -> None:
    if not queued.future.done():
        queued.future.set_exception(Refusal(503, message, retry_after=retry_after))
        queued.future.exception()  # marks it as retrieved; else asyncio logs an error if the client has left
