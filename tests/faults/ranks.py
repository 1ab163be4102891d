"""Ranks as forked children of a process that has imported torch: they meet, work and die within milliseconds.

    python -m tests.faults.ranks SCENE FOLDER

runs one of the scenes below and prints what came of it, for the tests to read. It needs a process of its own, since
forking one that has computed with several threads is not safe.
"""

import hashlib
import itertools
import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from tests.faults import small_run
from torch.distributed import TCPStore  # type: ignore[attr-defined]

from transduce.errors import TransduceError
from transduce.training import distributed
from transduce.training.distributed import World, join_world


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def start(work: Callable[[int], None], *, ranks: int, folder: Path, agent_port: int | None = None) -> list[int]:
    """Fork this many ranks; each gets torchrun's environment and calls `work` with its rank.

    Rank 0 opens the store on which they meet, unless one stands at `agent_port`, as torchrun's does.
    """
    port = agent_port or free_port()

    def as_rank(rank: int) -> Callable[[], None]:
        def begin() -> None:
            settings = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks}
            os.environ.update({name: str(value) for name, value in settings.items()})
            os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
            os.environ.update(TORCHELASTIC_USE_AGENT_STORE=str(agent_port is not None))
            work(rank)

        return begin

    return [small_run.forked(as_rank(rank), complaints=folder / f"said-{rank}.txt") for rank in range(ranks)]


def ended(processes: Sequence[int]) -> list[int]:
    """Wait for the ranks; return how each ended."""
    return [small_run.ended(process) for process in processes]


def said(folder: Path, ranks: int) -> list[str]:
    """Return what each rank complained of."""
    files = [folder / f"said-{rank}.txt" for rank in range(ranks)]
    return [file.read_text(encoding="utf-8") if file.exists() else "" for file in files]


def who_writes(folder: Path) -> dict[str, Any]:
    """Train on two ranks and tell which of them changed anything below the run directory."""
    corpus, run = small_run.write_text(folder / "corpus"), folder / "run"
    changes = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate", "os.symlink"}

    def work(rank: int) -> None:
        wrote: list[str] = []

        def watch(event: str, arguments: tuple[Any, ...]) -> None:
            is_write = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
            if (is_write or event in changes) and str(arguments[0]).startswith(str(run)):
                wrote.append(f"{event} {arguments[0]}")

        sys.addaudithook(watch)
        small_run.train(corpus, run)
        (folder / f"wrote-{rank}.json").write_text(json.dumps(wrote[:20]), encoding="utf-8")

    codes = ended(start(work, ranks=2, folder=folder))
    wrote = [json.loads((folder / f"wrote-{rank}.json").read_text(encoding="utf-8")) for rank in range(2)]
    return {"codes": codes, "said": said(folder, 2), "wrote": wrote}


def who_speaks(folder: Path) -> dict[str, Any]:
    """Train on two ranks through the command line and return what each of them printed."""
    corpus = small_run.write_text(folder / "corpus")

    def work(rank: int) -> None:
        file = os.open(folder / f"printed-{rank}.txt", os.O_WRONLY | os.O_CREAT)
        os.dup2(file, sys.stdout.fileno())
        os.dup2(file, sys.stderr.fileno())
        os.execve(sys.executable, small_run.command(corpus, folder / "run"), {**os.environ, **small_run.environment()})

    codes = ended(start(work, ranks=2, folder=folder))
    return {"codes": codes, "printed": [(folder / f"printed-{rank}.txt").read_text("utf-8") for rank in range(2)]}


def validations(folder: Path) -> dict[str, Any]:
    """Validate the same weights on one, two and three ranks; return what each rank of each world found."""
    corpus = small_run.write_text(folder / "corpus")
    found: dict[str, Any] = {}
    for ranks in (1, 2, 3):
        place = folder / str(ranks)
        place.mkdir()

        def work(rank: int, place: Path = place) -> None:
            from transduce.pipeline import validation
            from transduce.pipeline.run import opened_run
            from transduce.progress import Silent

            validation.TOKENS_AT_ONCE = 60
            choice = small_run.chosen(corpus, place / "run", settings={"data.held_out_valid": 23})
            with opened_run(choice, place / "run", progress=Silent()) as run:
                validator = run.training.opened().validator()
                assert validator is not None
                validator.tokens_at_once = 100
                result = validator()
            digest = hashlib.sha256(repr(result).encode()).hexdigest()
            numbers = [result.loss.hex(), result.accuracy, result.bleu, digest]
            (place / f"found-{rank}.json").write_text(json.dumps(numbers), encoding="utf-8")

        codes = ended(start(work, ranks=ranks, folder=place))
        assert codes == [0] * ranks, said(place, ranks)
        found[str(ranks)] = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(place.glob("found-*"))]
    return found


def a_rank_that_stops(folder: Path) -> dict[str, Any]:
    """Freeze one of two ranks in the middle of a training; tell how the other ended, after how long, and its words."""
    corpus, run = small_run.write_text(folder / "corpus"), folder / "run"
    settings: small_run.Settings = {"training.steps": 100_000, "training.rank_timeout": "2s"}
    processes = start(lambda rank: small_run.train(corpus, run, settings=settings), ranks=2, folder=folder)
    while not (run / "checkpoints" / "step-00000004").exists():
        time.sleep(0.01)
    os.kill(processes[1], signal.SIGSTOP)
    started = time.monotonic()
    code = small_run.ended(processes[0])
    seconds = time.monotonic() - started
    os.kill(processes[1], signal.SIGKILL)
    small_run.ended(processes[1])
    return {"code": code, "seconds": seconds, "said": said(folder, 2)[0]}


def failing(world: World) -> None:
    """Let rank 0 fail at what it does for all."""

    def work() -> None:
        if world.is_main:
            raise TransduceError("there is no such corpus")

    world.in_turns(work, doing="preparing")


def a_long_preparation(folder: Path) -> dict[str, Any]:
    """Let rank 0 work three times as long as ranks wait for each other; then freeze it, and let it fail."""

    def told(work: Callable[[World], None]) -> dict[str, Any]:
        def begin(rank: int) -> None:
            with join_world(timeout="1s") as world:
                work(world)

        started = time.monotonic()
        processes = start(begin, ranks=3, folder=folder)
        watch = threading.Timer(20.0, os.kill, (processes[1], signal.SIGKILL))
        watch.start()
        codes = [small_run.ended(process) for process in processes[1:]]
        os.kill(processes[0], signal.SIGCONT)
        codes.insert(0, small_run.ended(processes[0]))
        watch.cancel()
        return {"codes": codes, "seconds": time.monotonic() - started, "said": said(folder, 3)}

    def slow(world: World) -> None:
        world.in_turns(lambda: time.sleep(3.0 if world.is_main else 0.0), doing="slow")

    def frozen(world: World) -> None:
        world.in_turns(lambda: os.kill(os.getpid(), signal.SIGSTOP) if world.is_main else None, doing="asleep")

    return {"slow": told(slow), "frozen": told(frozen), "failing": told(failing)}


def agent_store(folder: Path) -> tuple[int, int]:
    """Open a store in a process of its own, as torchrun's agent does; return that process and the store's port."""
    inlet, outlet = os.pipe()

    def host() -> None:
        store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        os.write(outlet, str(store.port).encode("ascii"))
        signal.pause()

    return small_run.forked(host, complaints=folder / "said-store.txt"), int(os.read(inlet, 16))


def ended_together(processes: Sequence[int]) -> list[int]:
    """Wait for the ranks; when one fails, or after two minutes, kill the others, as torchrun would."""
    codes: dict[int, int] = {}
    deadline = time.monotonic() + 120
    while left := set(processes) - set(codes):
        for process in left:
            if any(codes.values()) or time.monotonic() > deadline:
                os.kill(process, signal.SIGKILL)
            done, status = os.waitpid(process, os.WNOHANG)
            if done:
                codes[process] = os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    return [codes[process] for process in processes]


def strike(owner: object, name: str, *, call: int) -> None:
    """Let this process die when it calls a function for the n-th time."""
    function, calls = getattr(owner, name), itertools.count(1)

    def struck(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401
        if next(calls) == call:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **options)

    setattr(owner, name, struck)


def attempts_on_one_store(folder: Path) -> dict[str, Any]:
    """Let ranks die wherever they meet or wait, all on one store, as under torchrun; tell how those after them end.

    torchrun's agent keeps its store over all restarts, so an attempt finds what the dead have written there.
    """
    agent, port = agent_store(folder)
    alarm = "exception_dump"

    def attempt(work: Callable[[World], None], *, before: Callable[[int], None] = lambda rank: None) -> list[int]:
        def begin(rank: int) -> None:
            before(rank)
            with join_world(timeout="60s") as world:
                assert world.broadcast_text(f"from {rank}") == "from 0"
                work(world)

        for rank in range(2):
            (folder / f"said-{rank}.txt").unlink(missing_ok=True)
        return ended_together(start(begin, ranks=2, folder=folder, agent_port=port))

    def plain_store() -> TCPStore:
        return TCPStore("127.0.0.1", port, is_master=False, wait_for_workers=False)

    def living(world: World) -> None:
        world.in_turns(lambda: None, doing="preparing")
        assert not plain_store().check([alarm])

    def dying(world: World) -> None:
        world.in_turns(lambda: os.kill(os.getpid(), signal.SIGKILL) if world.is_main else None, doing="preparing")

    def alarming(world: World) -> None:
        plain_store().set(alarm, "as NCCL's watchdog does")
        raise TransduceError("a rank did not answer")

    def dies(rank: int, owner: object, name: str, *, call: int = 1) -> Callable[[int], None]:
        return lambda own: strike(owner, name, call=call) if own == rank else None

    def late(rank: int) -> Callable[[int], None]:
        return lambda own: time.sleep(0.3) if own == rank else None

    moments: tuple[tuple[object, str, int], ...] = (
        *((distributed._RankMeeting, "_read", call) for call in (1, 2)),
        (torch.distributed, "init_process_group", 1),
    )
    struck: dict[str, Callable[[], list[int]]] = {
        "none": lambda: attempt(living),
        "rank 0 at work": lambda: attempt(dying),
        "rank 0 fails": lambda: attempt(failing),
        "NCCL's alarm": lambda: attempt(alarming),
        **{
            f"rank {rank}, {name} {call}": partial(attempt, living, before=dies(rank, owner, name, call=call))
            for owner, name, call in moments
            for rank in range(2)
        },
    }
    found = {
        name: {
            "struck": own(),
            "after": [attempt(living, before=late(rank)) for rank in range(2)],
            "said": said(folder, 2),
        }
        for name, own in struck.items()
    }
    os.kill(agent, signal.SIGKILL)
    return {**found, "agent": small_run.ended(agent)}


def separate_disks(folder: Path, *, settings: small_run.Settings | None = None) -> dict[str, Any]:
    """Train on two machines with a disk each, then on one; then give the second machine another text."""
    corpus = small_run.write_text(folder / "corpus")
    other = folder / "other.tsv"
    other.write_text("".join(corpus.read_text(encoding="utf-8").splitlines(keepends=True)[:-9]), encoding="utf-8")

    def trained(name: str, texts: Sequence[Path], *, shares_a_disk: bool = False) -> list[int]:
        place = folder / name
        place.mkdir()

        def work(rank: int) -> None:
            os.environ["LOCAL_RANK"] = "0"
            run = place / f"machine-{0 if shares_a_disk else rank}" / "run"
            small_run.train(texts[rank], run, settings=settings)

        return ended(start(work, ranks=2, folder=place))

    codes = [trained("separate", (corpus, corpus)), trained("shared", (corpus, corpus), shares_a_disk=True)]
    runs = [folder / name / "machine-0" / "run" for name in ("separate", "shared")]
    differing = trained("differing", (corpus, other))
    return {
        "codes": codes,
        "said": said(folder / "separate", 2),
        "difference": small_run.difference(runs[0], small_run.fingerprint(runs[1])),
        "on the second machine": sorted(path.name for path in (folder / "separate" / "machine-1" / "run").iterdir()),
        "differing": [differing, said(folder / "differing", 2)],
    }


def teachers_on_separate_disks(folder: Path) -> dict[str, Any]:
    """The same with teachers, whose models only the first machine has; tell whether both learned from one corpus."""
    found = separate_disks(folder, settings={"training.teacher_steps": 4})
    return {**found, "same corpus": _is_the_same(folder, "teachers/corpus")}


def _is_the_same(folder: Path, name: str) -> bool:
    """Return whether a folder of the run holds the same bytes on both machines."""
    places = [next((folder / "separate" / f"machine-{rank}" / "run").glob(name)) for rank in range(2)]
    contents = [{file.name: file.read_bytes().hex() for file in place.iterdir()} for place in places]
    return contents[0] == contents[1]


SCENES = {
    scene.__name__: scene
    for scene in (
        who_writes,
        who_speaks,
        validations,
        a_rank_that_stops,
        a_long_preparation,
        attempts_on_one_store,
        separate_disks,
        teachers_on_separate_disks,
    )
}

if __name__ == "__main__":
    print(json.dumps(SCENES[sys.argv[1]](Path(sys.argv[2]))))
