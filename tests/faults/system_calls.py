"""A fault at every single system call by which a run writes: a kill, a full disk, a disk that fails.

strace attaches to a child before it begins and injects the fault at the n-th call of a kind. First a run is recorded
to know how many calls of each kind there are; then each of them is struck once, and the run is started again without
a fault: it must end with the weights of a run that met none.
"""

import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults import small_run

CALLS = ("write", "fsync", "rename", "renameat", "unlink", "unlinkat", "rmdir", "mkdir", "ftruncate")
FAULTS = {"SIGKILL": "signal=SIGKILL", "ENOSPC": "error=ENOSPC", "EIO": "error=EIO"}
_PR_SET_PTRACER, _ANY = 0x59616D61, -1
_CALL = re.compile(r"^(?:\d+ +)?(\w+)\(")


def attached(strace: Sequence[str], work: Callable[[], None], *, complaints: Path) -> int:
    """Run `work` in a child under strace; return how it ended, as `small_run.ended` does."""
    ready, go = os.pipe()

    def wait_then_work() -> None:
        os.close(go)
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PR_SET_PTRACER, _ANY)  # else a system may let only the parent watch
        os.read(ready, 1)
        work()

    child = small_run.forked(wait_then_work, complaints=complaints)
    os.close(ready)
    watcher = subprocess.Popen([*strace, "-f", "-p", str(child)], stderr=subprocess.PIPE)
    assert watcher.stderr is not None
    line = watcher.stderr.readline()
    assert b"attached" in line, line
    os.close(go)  # the child reads the end of the pipe and begins
    code = small_run.ended(child)
    watcher.communicate()
    return code


@dataclass(frozen=True)
class Scene:
    """Where a run stands when the fault comes: a copy of `base` goes on to its end."""

    name: str
    folder: Path
    corpus: Path
    strace: str
    base: Path | None
    """None for a run that has not begun."""

    @property
    def run(self) -> Path:
        """The run directory that is struck."""
        return self.folder / "struck"

    @property
    def complaints(self) -> Path:
        """What the last child said."""
        return self.folder / "complaint.txt"

    def train(self) -> None:
        """Train to the end; the work of a child."""
        small_run.train(self.corpus, self.run)

    @contextmanager
    def set_up(self) -> Iterator[None]:
        """Put the run where the scene begins, and clear it away afterwards."""
        shutil.rmtree(self.run, ignore_errors=True)
        if self.base is not None:
            shutil.copytree(self.base, self.run, symlinks=True)
        self.complaints.unlink(missing_ok=True)
        yield
        shutil.rmtree(self.run, ignore_errors=True)

    def record(self) -> tuple[Counter[str], dict[str, str]]:
        """Run without a fault; return how many calls of each kind it makes, and its fingerprint."""
        trace = self.folder / "trace.txt"
        with self.set_up():
            code = attached(
                [self.strace, "-e", f"trace={','.join(CALLS)}", "-o", str(trace)],
                self.train,
                complaints=self.complaints,
            )
            assert code == small_run.FINISHED, self.said()
            fingerprint = small_run.fingerprint(self.run)
        found = (_CALL.match(line) for line in trace.read_text(encoding="utf-8").splitlines())
        return Counter(match[1] for match in found if match), fingerprint

    def strike(self, call: str, number: int, fault: str, expected: dict[str, str]) -> str:
        """Inject a fault at the `number`-th call, start again without it; return how the struck run ended."""
        inject = f"inject={call}:{FAULTS[fault]}:when={number}"
        where = f"{self.name}: {fault} at {call} {number}"
        with self.set_up():
            code = attached(
                [self.strace, "-e", f"trace={call}", "-e", inject, "-o", os.devnull],
                self.train,
                complaints=self.complaints,
            )
            allowed = (-signal.SIGKILL, small_run.FINISHED, small_run.REFUSED)
            assert code in allowed, f"{where}: {self.said()}"
            ending = {-signal.SIGKILL: "killed", small_run.REFUSED: "clear error"}.get(code, "no effect")
            code = small_run.ended(small_run.forked(self.train, complaints=self.complaints))
            assert code == small_run.FINISHED, f"{where}, then: {self.said()}"
            assert not (other := small_run.difference(self.run, expected)), f"{where}: {other}"
            left = [path.name for mark in ("*.being-*", "*.pruned", "*.damaged") for path in self.run.rglob(mark)]
            assert not left, f"{where}: left behind {left}"
        return ending

    def said(self) -> str:
        """Return what the last child complained of."""
        return self.complaints.read_text(encoding="utf-8") if self.complaints.exists() else "nothing was said"


def scenes(folder: Path, *, strace: str) -> list[Scene]:
    """Return the scenes: a run from its beginning, and one that goes on to its last save and the averaging."""
    folder.mkdir(parents=True, exist_ok=True)
    corpus, base = small_run.write_text(folder / "corpus"), folder / "base"
    steps = int(small_run.SETTINGS["training.steps"])
    process = small_run.forked(
        lambda: small_run.train(corpus, base, settings={"training.steps": steps - 2}),
        complaints=folder / "complaint.txt",
    )
    assert small_run.ended(process) == small_run.FINISHED
    return [
        Scene("a save, a pruning and the averaging", folder, corpus, strace, base),
        Scene("a whole run", folder, corpus, strace, None),
    ]


def strikes(calls: Counter[str]) -> list[tuple[str, int, str]]:
    """Return every fault at every call."""
    return [(call, n, fault) for fault in FAULTS for call in CALLS for n in range(1, calls[call] + 1)]


def campaign(
    scene: Scene,
    chosen: Callable[[list[tuple[str, int, str]]], list[tuple[str, int, str]]],
    told: Callable[[str], None],
) -> dict[str, Any]:
    """Strike at the chosen calls of a scene; return the figures."""
    calls, expected = scene.record()
    endings: Counter[str] = Counter()
    faults: list[str] = []
    for done, (call, number, fault) in enumerate(chosen(strikes(calls)), start=1):
        try:
            endings[f"{fault}: {scene.strike(call, number, fault, expected)}"] += 1
        except AssertionError as failure:
            faults.append(str(failure))
            told(f"FAULT {failure}")
        if done % 20 == 0:
            told(f"{scene.name}: {done:,} calls struck")
    return {"calls": dict(calls), "struck": sum(endings.values()), "endings": dict(endings), "faults": faults}
