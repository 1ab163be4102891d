"""Power cuts: a recorded run is replayed up to any of its calls, what was not flushed is lost or torn, and the run is
started again on what is left. It must end with the weights of a run that lost nothing; and what the run had saved
before it went on to other work must be there, whole, so that no more is lost than the steps since.
"""

import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.faults import small_run
from tests.faults.recorded_disk import STRACE_OPTIONS, Disk, PowerCut, lay_down, operations
from tests.faults.system_calls import attached

from transduce.files import manifest_fault, recover_directory

_PROMISES = re.compile(r"checkpoints/step-\d{8}|model")


class Blackouts:
    """A run recorded once, and cut short anywhere; a recording that is in the folder already is taken."""

    def __init__(self, folder: Path, *, strace: str, seed: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.seed, self.chance = folder, seed, random.Random(seed)
        self.corpus, self.run = small_run.write_text(folder / "corpus"), folder / "run"
        self.complaints = folder / "complaint.txt"
        self.trace = folder / "trace.txt"
        if not self.trace.exists():
            self._record(strace)
        self.operations = operations(self.trace, root=self.run)
        self.expected = small_run.fingerprint(self.run)

    def _record(self, strace: str) -> None:
        watch = [strace, *STRACE_OPTIONS, "-o", str(self.trace)]
        code = attached(watch, lambda: small_run.train(self.corpus, self.run), complaints=self.complaints)
        assert code == small_run.FINISHED, self.complaints.read_text(encoding="utf-8")

    def replayed(self, count: int) -> Disk:
        """Return the disk after the first `count` calls."""
        disk = Disk(self.run)
        for operation in self.operations[:count]:
            disk.apply(operation)
        return disk

    def assert_the_recording_is_true(self) -> None:
        """Compare the disk that all calls lead to with the one that the run really left."""
        place = self.folder / "replayed"
        disk = self.replayed(len(self.operations))
        lay_down(disk.top, place, names=lambda folder: folder.now, content=lambda file: file.now())
        files = {path.relative_to(place): path.read_bytes() for path in place.rglob("*") if path.is_file()}
        assert files == {
            path.relative_to(self.run): path.read_bytes() for path in self.run.rglob("*") if path.is_file()
        }
        shutil.rmtree(place)

    def promised(self, count: int) -> set[str]:
        """Return what must outlive a cut after `count` calls: the newest of what was saved before other work began."""
        changes = [operation for operation in self.operations[:count] if operation.kind != "flush"]
        renamed = (Path(change.other) for change in changes[:-1] if change.kind == "rename")
        saved = {name for path in renamed if _PROMISES.fullmatch(name := path.relative_to(self.run).as_posix())}
        return (saved & {"model"}) | set(sorted(saved - {"model"})[-1:])

    def cut(self, count: int, *, trial: str) -> Path:
        """Return what is left of the run after `count` calls, as `trial` decides; promises must be kept."""
        place = self.folder / "left"
        shutil.rmtree(place, ignore_errors=True)
        disk = self.replayed(count)
        cut = PowerCut(random.Random(trial), disk)
        lay_down(disk.top, place, names=cut.names, content=cut.content)
        for name in self.promised(count):
            recover_directory(place / name)
            fault = manifest_fault(place / name)
            assert fault is None, f"{self._where(count, trial)}: {name} had been saved, and {fault}"
        return place

    def _where(self, count: int, trial: str) -> str:
        last = self.operations[count - 1] if count else None
        return f"after {count} calls, the last {last and (last.kind, last.path)}, trial {trial!r}"

    def strike(self, count: int, *, trial: str) -> None:
        """Cut the power after `count` calls, go on with what is left, and compare."""
        place, where = self.cut(count, trial=trial), self._where(count, trial)
        work = lambda: small_run.train(self.corpus, place)  # noqa: E731
        code = small_run.ended(small_run.forked(work, complaints=self.complaints))
        try:
            assert code == small_run.FINISHED, f"{where}: {self.complaints.read_text(encoding='utf-8')}"
            assert not (other := small_run.difference(place, self.expected)), f"{where}: {other}"
        finally:
            shutil.rmtree(place)

    def campaign(self, cuts: int, told: Callable[[str], None]) -> dict[str, Any]:
        """Cut the power so many times, evenly over the recording; return the figures."""
        self.assert_the_recording_is_true()
        faults: list[str] = []
        for number in range(cuts):
            low = number * len(self.operations) // cuts
            high = max(low, (number + 1) * len(self.operations) // cuts - 1)
            try:
                self.strike(self.chance.randint(low, high), trial=f"{self.seed}-{number}")
            except AssertionError as failure:
                faults.append(str(failure))
                told(f"FAULT {failure}")
            if number % 20 == 19:
                told(f"{number + 1:,} power cuts over {len(self.operations):,} recorded calls")
        return {"cuts": cuts, "recorded calls": len(self.operations), "faults": faults, "seed": self.seed}
