"""The dispatcher with a real child: crashes, time limits, overload, replacement. Slow: each child loads torch."""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from transduce.errors import ModelError, RunError
from transduce.serving.child import child_environment
from transduce.serving.config import ServingConfig
from transduce.serving.dispatcher import Dispatcher
from transduce.serving.job_queue import Job
from transduce.serving.metrics import Metrics
from transduce.serving.refusal import Refusal

pytestmark = pytest.mark.slow
OPTIONS = {"beam": 1, "alternatives": 1}


def job(text: str = "the dog runs.", *, task: str = "translate") -> Job:
    return Job(task, "tiny", text, 5, OPTIONS)


def with_dispatcher(model: Path, scene: Callable[[Dispatcher], Awaitable[Any]], **options: object) -> Any:  # noqa: ANN401
    """Run a scene with a dispatcher that has a real child."""

    async def play() -> Any:  # noqa: ANN401
        settings = {"models": [str(model)], "threads": 1, "precision": "float32", **options}
        dispatcher = Dispatcher(ServingConfig.model_validate(settings), Metrics())
        await dispatcher.start()
        try:
            return await scene(dispatcher)
        finally:
            await dispatcher.stop(seconds=0)

    return asyncio.run(asyncio.wait_for(play(), 240))


def texts_of(values: list[dict[str, Any]]) -> list[str]:
    return [value["alternatives"][0]["text"] for value in values]


async def refusal_of(awaitable: Awaitable[Any]) -> Refusal:
    with pytest.raises(Refusal) as caught:
        await awaitable
    return caught.value


def test_requests_that_wait_together_are_computed_together(model: Path) -> None:
    async def scene(dispatcher: Dispatcher) -> None:
        texts = [f"the dog {number}" for number in range(12)]
        alone = [await dispatcher.submit([job(text)]) for text in texts]
        rounds = dispatcher._metrics.rounds._value.get()
        together = await asyncio.gather(*(dispatcher.submit([job(text)]) for text in texts))
        assert [texts_of(own) for own in together] == [texts_of(own) for own in alone], "a batch changes no translation"
        # The first round starts at once; the jobs that arrive while it is computed share the next ones.
        assert dispatcher._metrics.rounds._value.get() - rounds <= 3

    with_dispatcher(model, scene)


@pytest.mark.skipif(sys.platform == "win32", reason="stops a process with a signal")
def test_a_full_queue_refuses_at_once_and_still_serves_probes(model: Path) -> None:
    async def scene(dispatcher: Dispatcher) -> None:
        child = dispatcher.child_process_id
        assert child is not None
        os.kill(child, signal.SIGSTOP)
        first = asyncio.create_task(dispatcher.submit([job()]))
        await asyncio.sleep(0.05)  # it is with the child now
        waiting = [asyncio.create_task(dispatcher.submit([job()])) for _ in range(3)]
        await asyncio.sleep(0.05)
        began = asyncio.get_running_loop().time()
        refusal = await refusal_of(dispatcher.submit([job()]))
        assert asyncio.get_running_loop().time() - began < 0.05
        assert refusal.status_code == 429
        assert int((refusal.headers or {})["Retry-After"]) >= 1
        probe = asyncio.create_task(dispatcher.submit([job("a")], is_probe=True))
        waiting[0].cancel()
        os.kill(child, signal.SIGCONT)
        await asyncio.gather(first, *waiting[1:], probe)
        assert dispatcher._metrics.skipped._value.get() == 1, "a cancelled job is skipped"

    with_dispatcher(model, scene, queue_limit=3)


@pytest.mark.skipif(sys.platform == "win32", reason="stops a process with a signal")
def test_a_child_that_hangs_is_replaced_and_requests_are_answered_by_their_deadline(model: Path) -> None:
    async def scene(dispatcher: Dispatcher) -> None:
        child = dispatcher.child_process_id
        assert child is not None
        os.kill(child, signal.SIGSTOP)
        began = asyncio.get_running_loop().time()
        refusal = await refusal_of(dispatcher.submit([job()]))
        assert refusal.status_code == 503
        assert "No answer within 1 seconds" in refusal.detail
        assert asyncio.get_running_loop().time() - began < 2
        while dispatcher.child_process_id == child:
            await asyncio.sleep(0.05)
        while not dispatcher.is_up:
            await asyncio.sleep(0.05)
        for _ in range(3):  # a busy machine may need more than a second for a child's first round
            try:
                await dispatcher.submit([job()])
            except Refusal:
                continue
            return
        raise AssertionError("the new child does not answer")

    with_dispatcher(model, scene, request_seconds=1)


def test_a_job_that_crashes_two_children_is_refused_and_the_others_are_answered(model: Path) -> None:
    """An unknown task ends the child, as a text that makes a library crash would."""

    async def scene(dispatcher: Dispatcher) -> None:
        poison = asyncio.create_task(dispatcher.submit([job(task="no such task")]))
        others = [asyncio.create_task(dispatcher.submit([job()])) for _ in range(3)]
        refusal = await refusal_of(poison)
        assert refusal.status_code == 503
        assert "crashed twice on this text" in refusal.detail
        assert all(len(found) == 1 for found in await asyncio.gather(*others))
        assert dispatcher._metrics.child_deaths._value.get() == 2

    with_dispatcher(model, scene, request_seconds=60)


def test_a_child_killed_while_idle_is_replaced(model: Path) -> None:
    async def scene(dispatcher: Dispatcher) -> None:
        child = dispatcher.child_process_id
        assert child is not None
        os.kill(child, signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)
        while dispatcher.child_process_id == child or not dispatcher.is_up:
            await asyncio.sleep(0.05)
        assert len(await dispatcher.submit([job()])) == 1

    with_dispatcher(model, scene)


def test_a_child_beyond_its_memory_limit_is_replaced_while_requests_are_answered(model: Path) -> None:
    async def scene(dispatcher: Dispatcher) -> None:
        first = dispatcher.child_process_id
        assert dispatcher._child is not None
        object.__setattr__(dispatcher._config, "memory_limit", 1)  # the models passed the check at the start
        answered = 0
        while dispatcher.child_process_id == first:
            answered += len(await dispatcher.submit([job()]))
            await asyncio.sleep(0.02)
        assert answered > 1
        second = dispatcher.child_process_id
        await dispatcher.submit([job()])
        await asyncio.sleep(0.3)
        assert dispatcher.child_process_id == second, "at most one replacement a minute"
        assert dispatcher._metrics.child_deaths._value.get() == 0

    with_dispatcher(model, scene)


def test_errors_at_the_start_tell_the_operator_what_to_do(model: Path, tmp_path: Path) -> None:
    async def nothing(dispatcher: Dispatcher) -> None:
        raise AssertionError("it must not start")

    with pytest.raises(ModelError, match="There is no model at"):
        with_dispatcher(tmp_path / "none", nothing)
    with pytest.raises(ModelError, match=r"memory_limit = 1 MB, but the model process takes [\d,]+ MB with"):
        with_dispatcher(model, nothing, memory_limit=1)
    with pytest.raises(RunError, match="--load-seconds is too short"):
        with_dispatcher(model, nothing, load_seconds=0.01)


def test_a_child_does_not_get_the_server_s_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRANSDUCE_SERVE_API_KEY_FILE", "/secret")
    monkeypatch.setenv("PATH_LIKE", "kept")
    assert "TRANSDUCE_SERVE_API_KEY_FILE" not in child_environment()
    assert child_environment()["PATH_LIKE"] == "kept"
