"""One bit flipped anywhere in an unfinished run: its next start trains the same weights, or says what is wrong.

Most cases stop soon after they have loaded everything, and one step later; its weights are compared with those of the
same step of an undisturbed run. The others train to the end, and everything is compared.
"""

import hashlib
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tensorboardX
from tests.faults import small_run

from transduce.pipeline.run import opened_run
from transduce.progress import Silent

SETTINGS: small_run.Settings = {
    "training.teacher_steps": 2,
    "training.steps": 6,
    "training.checkpoint_every": 1,
    "training.keep_checkpoints": 9,
    "training.validate_every": 3,
}
BEGUN = 5
"""The step at which the run is left unfinished: its average is of this checkpoint, one before and one after it."""


def flip(file: Path, chance: random.Random) -> None:
    """Flip one bit of a file."""
    content = bytearray(file.read_bytes())
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    file.write_bytes(content)


def weights_by_step(run: Path) -> dict[str, str]:
    """Return the SHA-256 of the weights of each checkpoint."""
    files = sorted((run / "checkpoints").glob("step-????????/model.safetensors"))
    return {file.parent.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


class FlippedRuns:
    """Copies of one unfinished run, each with a flipped bit, and the run as it should end."""

    def __init__(self, folder: Path, *, seed: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.seed = folder, seed
        assert tensorboardX.__name__  # imported once, and not in each child
        self.corpus, self.complaints = small_run.write_text(folder / "corpus"), folder / "complaint.txt"
        self.base, self.run = folder / "base", folder / "run"
        assert self._train(self.base, steps=BEGUN) == small_run.FINISHED, self._complaint()
        whole = folder / "whole"
        shutil.copytree(self.base, whole)
        assert self._train(whole) == small_run.FINISHED, self._complaint()
        self.end, self.steps = small_run.fingerprint(whole), weights_by_step(whole)
        files = [file for file in sorted(self.base.rglob("*")) if file.is_file() and file.stat().st_size]
        self.files = [file.relative_to(self.base) for file in files if not file.name.endswith("lock")]

    def _train(self, run: Path, *, steps: int | None = None) -> int:
        def work() -> None:
            chosen = small_run.chosen(self.corpus, run, settings=SETTINGS)
            with opened_run(chosen, run, progress=Silent()) as one:
                one.train(stop_requested=lambda: False if steps is None else len(weights_by_step(run)) >= steps)

        return small_run.ended(small_run.forked(work, complaints=self.complaints))

    def _complaint(self) -> str:
        return self.complaints.read_text(encoding="utf-8", errors="replace") if self.complaints.exists() else "silent"

    @contextmanager
    def _flipped(self, number: int) -> Iterator[Path]:
        """Yield the name of the file in which a bit is flipped; folders are equally likely, then files."""
        chance = random.Random(f"{self.seed}-{number}")
        tops = sorted({name.parts[0] for name in self.files})
        top = chance.choice(tops)
        name = chance.choice([own for own in self.files if own.parts[0] == top])
        shutil.copytree(self.base, self.run)
        flip(self.run / name, chance)
        try:
            yield name
        finally:
            shutil.rmtree(self.run)

    def case(self, number: int, *, to_the_end: bool) -> str:
        """Start a run with a flipped bit; return how it ended. AssertionError if it has other weights or is a bug."""
        with self._flipped(number) as flipped:
            where, damaged = f"seed {self.seed}, case {number}, {flipped}", (self.run / flipped).read_bytes()
            code = self._train(self.run, steps=None if to_the_end else BEGUN)
            assert code in (small_run.FINISHED, small_run.REFUSED), f"{where}: {code}: {self._complaint()}"
            if code == small_run.REFUSED:
                return "clear error"
            found, expected = (
                (small_run.fingerprint(self.run), self.end) if to_the_end else (weights_by_step(self.run), self.steps)
            )
            if (self.run / flipped).exists() and (self.run / flipped).read_bytes() == damaged:
                found.pop(str(flipped) if to_the_end else flipped.parent.name, None)  # it was not needed
            other = [name for name in found if found[name] != expected.get(name)]
            assert not other, f"{where}: {other}"
            return "same weights"


def campaign(folder: Path, *, loads: int, ends: int, seed: int, told: Callable[[str], None]) -> dict[str, Any]:
    """Flip bits; return the figures."""
    runs = FlippedRuns(folder, seed=seed)
    faults: list[str] = []
    endings: dict[str, Counter[str]] = {"loaded": Counter(), "trained to the end": Counter()}
    for kind, count in (("loaded", loads), ("trained to the end", ends)):
        for number in range(count):
            try:
                endings[kind][runs.case(number, to_the_end=kind != "loaded")] += 1
            except AssertionError as fault:
                endings[kind]["fault"] += 1
                faults.append(str(fault)[-1000:])
            if (number + 1) % 100 == 0:
                told(f"{number + 1:,} of {count:,} {kind}, {len(faults)} faults")
    return {"files": len(runs.files), "endings": endings, "faults": faults[:20], "number of faults": len(faults)}
