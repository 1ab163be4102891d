"""Reads mutated files under watch: in a child that may be killed, with its time, its memory and its actions noted."""

import json
import mmap
import os
import resource
import signal
import struct
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from transduce.errors import TransduceError

MOST_SECONDS = 2.0
MOST_MEMORY = 256 << 20
_CASES_OF_A_CHILD = 5_000
# What a file must never bring about. Reading opens files, and nothing else.
FORBIDDEN = frozenset(
    {
        *("pickle.find_class", "code.__new__", "os.system", "os.exec", "os.fork", "os.posix_spawn"),
        *("subprocess.Popen", "socket.connect", "socket.bind", "ctypes.dlopen", "os.rename", "os.remove", "os.rmdir"),
        *("os.truncate", "os.symlink", "os.link", "shutil.rmtree", "urllib.Request"),
    }
)

Case = Callable[[int], str]
"""Makes and reads the file of this number and returns its kind; any other error than TransduceError is a fault."""


def watched(case: Case, *, count: int, folder: Path, told: Callable[[str], None]) -> dict[str, Any]:
    """Run the first `count` cases in children; return the figures. A child that dies or hangs costs one case."""
    shared = mmap.mmap(-1, 16)
    endings: Counter[str] = Counter()
    faults: list[str] = []
    slowest = memory = 0.0
    done = 0
    while done < count:
        report = folder / "report.json"
        report.unlink(missing_ok=True)
        child = os.fork()
        if child == 0:
            _read_all(case, shared, first=done, count=count, report=report)
        code = _supervise(child, shared)
        done = struct.unpack("qd", shared)[0]
        if report.exists():
            found = json.loads(report.read_text(encoding="utf-8"))
            endings.update(found["endings"])
            faults += found["faults"]
            slowest, memory = max(slowest, found["slowest"]), max(memory, found["memory"])
        if code:
            faults.append(f"case {done}: the reader ended with {code}")
            done += 1
        told(f"{done:,} of {count:,} read, {len(faults)} faults")
    figures = {"files": count, "endings": dict(endings), "faults": faults[:20], "number of faults": len(faults)}
    return {**figures, "slowest, CPU seconds": round(slowest, 3), "most memory over the start, MB": round(memory / 1e6)}


def _supervise(child: int, shared: mmap.mmap) -> int:
    """Wait for a child; kill it if one case takes far longer than it may, since it may be stuck outside Python."""
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        started = struct.unpack("qd", shared)[1]
        if started and time.monotonic() - started > 15 * MOST_SECONDS:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.05)


def _read_all(case: Case, shared: mmap.mmap, *, first: int, count: int, report: Path) -> None:
    """Read until the cases, or a part of them, are done; the work of a child, which ends here."""
    forbidden: list[str] = []
    is_on = [False]

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if is_on[0] and event in FORBIDDEN:
            forbidden.append(f"{event} {arguments!r:.100}")

    sys.addaudithook(watch)
    endings: Counter[str] = Counter()
    faults: list[str] = []
    slowest, number = 0.0, first
    most = before = _peak()
    for number in range(first, min(count, first + _CASES_OF_A_CHILD)):
        shared[:] = struct.pack("qd", number, time.monotonic())
        started, is_on[0] = time.thread_time(), True
        ending = _ending(case, number)
        is_on[0], seconds = False, time.thread_time() - started
        endings[ending.partition("\n")[0]] += 1
        peak = _peak()
        if "\n" in ending or forbidden or seconds > MOST_SECONDS or peak - most > MOST_MEMORY:
            faults.append(f"case {number}: {ending}, {seconds:.2f} s, {(peak - most) >> 20} MB, {forbidden}")
            forbidden.clear()
        most, slowest = max(most, peak), max(slowest, seconds)
    content = {"endings": endings, "faults": faults, "slowest": slowest, "memory": most - before}
    report.write_text(json.dumps(content), encoding="utf-8")
    shared[:] = struct.pack("qd", number + 1, 0.0)
    os._exit(0)


def _ending(case: Case, number: int) -> str:
    try:
        kind = case(number)
    except TransduceError as fault:
        text = str(fault)
        return "clear error" if len(text) > 20 and "\n" not in text else f"unclear error\n{text}"
    except Exception:
        return f"bug\n{traceback.format_exc()[-1500:]}"
    return f"read: {kind}"


def _peak() -> int:
    """Return the most memory that this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
