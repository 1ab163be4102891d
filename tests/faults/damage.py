"""The newest checkpoint torn, cut or with a bit flipped: the run says so, goes on from the one before, ends alike."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.faults import small_run

from transduce.pipeline.run import opened_run
from transduce.progress import Silent


class Noted(Silent):
    """Keeps the warnings in a file, so that a parent can read them."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def warn(self, message: str) -> None:
        """Keep a warning."""
        with self.place.open("a", encoding="utf-8") as file:
            file.write(message + "\n")


def damage(file: Path, chance: random.Random) -> str:
    """Damage a file, and say how."""
    content = bytearray(file.read_bytes())
    how = chance.choice(("bit", "cut", "zeros", "gone"))
    place = chance.randrange(len(content))
    match how:
        case "bit":
            content[place] ^= 1 << chance.randrange(8)
        case "cut":
            del content[place:]
        case "zeros":
            length = min(len(content) - place, 4096)
            if not any(content[place : place + length]):
                content[place] ^= 1
            else:
                content[place : place + length] = bytes(length)
        case _:
            file.unlink()
            return "gone"
    file.write_bytes(content)
    return how


def campaign(
    folder: Path, *, trials: int, seed: int, told: Callable[[str], None] = lambda line: None
) -> dict[str, Any]:
    """Damage a file of the newest checkpoint of a run that goes on; return the figures."""
    folder.mkdir(parents=True, exist_ok=True)
    chance, corpus = random.Random(seed), small_run.write_text(folder / "corpus")
    base, run, complaints, warnings = (folder / name for name in ("base", "run", "complaint.txt", "warnings.txt"))
    steps = int(small_run.SETTINGS["training.steps"])

    def train(place: Path, settings: small_run.Settings | None = None) -> Callable[[], None]:
        def work() -> None:
            with opened_run(small_run.chosen(corpus, place, settings=settings), place, progress=Noted(warnings)) as one:
                one.train(stop_requested=lambda: False)

        return work

    assert small_run.ended(small_run.forked(train(base, {"training.steps": steps - 2}), complaints=complaints)) == 0
    shutil.copytree(base, run)
    assert small_run.ended(small_run.forked(train(run), complaints=complaints)) == 0
    expected = small_run.fingerprint(run)
    kinds: dict[str, int] = {}
    for trial in range(trials):
        shutil.rmtree(run)
        shutil.copytree(base, run)
        warnings.unlink(missing_ok=True)
        newest = sorted((run / "checkpoints").glob("step-????????"))[-1]
        file = chance.choice(sorted(newest.iterdir()))
        how = damage(file, chance)
        where = f"seed {seed}, trial {trial}: {file.name} {how}"
        code = small_run.ended(small_run.forked(train(run), complaints=complaints))
        assert code == 0, f"{where}: {complaints.read_text(encoding='utf-8')}"
        assert not (other := small_run.difference(run, expected)), f"{where}: {other}"
        said = warnings.read_text(encoding="utf-8") if warnings.exists() else ""
        assert f"The checkpoint of step {steps - 2:,} is damaged" in said, where
        kinds[f"{file.name}: {how}"] = kinds.get(f"{file.name}: {how}", 0) + 1
        told(f"{trial + 1:,} damaged checkpoints")
    return {"damaged": trials, "kinds": kinds}
