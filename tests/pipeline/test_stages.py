"""The walk over a list of stages, with stages that leave a file each."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from transduce.pipeline.stages import RunStage, StageContext, StopRequested, run_stages
from transduce.progress import Silent
from transduce.training.distributed import World

CONTEXT = StageContext(World(), Silent())


@dataclass(frozen=True, eq=False)
class Joined:
    """Writes its name behind the texts of the stages that it needs."""

    name: str
    folder: Path
    needs: Sequence[RunStage]
    ran: list[str]

    @property
    def result(self) -> Path:
        return self.folder / self.name

    def text(self) -> str:
        return "".join(need.result.read_text(encoding="utf-8") for need in self.needs) + self.name

    def is_done(self) -> bool:
        needs_are_there = all(need.result.exists() for need in self.needs)
        return needs_are_there and self.result.exists() and self.result.read_text(encoding="utf-8") == self.text()

    def run(self, *, stop_requested: StopRequested) -> bool:
        if stop_requested():
            return False
        self.ran.append(self.name)
        self.result.write_text(self.text(), encoding="utf-8")
        return True


class Diamond:
    """Stages a; b and c, which need a; d, which needs b and c."""

    def __init__(self, folder: Path) -> None:
        self.ran: list[str] = []
        self.a = Joined("a", folder, (), self.ran)
        self.b, self.c = (Joined(name, folder, (self.a,), self.ran) for name in "bc")
        self.d = Joined("d", folder, (self.b, self.c), self.ran)

    def run(self, *, stop_at: int | None = None) -> RunStage | None:
        self.ran.clear()
        stages = (self.a, self.b, self.c, self.d)
        return run_stages(stages, context=CONTEXT, stop_requested=lambda: len(self.ran) == stop_at)


@pytest.fixture
def diamond(tmp_path: Path) -> Diamond:
    return Diamond(tmp_path)


def test_every_stage_is_run_once_in_order(diamond: Diamond) -> None:
    assert diamond.run() is None
    assert diamond.ran == ["a", "b", "c", "d"]
    assert diamond.d.result.read_text(encoding="utf-8") == "abacd"


def test_done_stages_are_skipped(diamond: Diamond) -> None:
    diamond.run()
    assert diamond.run() is None
    assert diamond.ran == []


def test_a_stage_that_stops_leaves_the_next_ones_untouched(diamond: Diamond) -> None:
    assert diamond.run(stop_at=2) is diamond.c
    assert diamond.ran == ["a", "b"]
    assert not diamond.c.result.exists()
    assert not diamond.d.result.exists()
    assert diamond.run() is None
    assert diamond.ran == ["c", "d"]


def test_what_a_missing_result_is_made_of_is_kept(diamond: Diamond) -> None:
    diamond.run()
    diamond.d.result.unlink()
    diamond.run()
    assert diamond.ran == ["d"]


def test_a_missing_result_that_turns_out_as_before_is_made_alone(diamond: Diamond) -> None:
    diamond.run()
    diamond.b.result.unlink()
    diamond.run()
    assert diamond.ran == ["b"]


def test_a_result_that_turns_out_otherwise_is_followed_by_what_needs_it(diamond: Diamond) -> None:
    diamond.run()
    diamond.c.result.write_text("damaged", encoding="utf-8")
    diamond.d.result.write_text("made of the damaged one", encoding="utf-8")
    diamond.run()
    assert diamond.ran == ["c", "d"]


def test_a_result_that_no_unfinished_stage_needs_may_be_deleted(diamond: Diamond) -> None:
    diamond.run()
    end = Joined("e", diamond.a.folder, (), diamond.ran)  # done or not without looking at the others
    run_stages((diamond.a, end), context=CONTEXT, stop_requested=lambda: False)
    diamond.ran.clear()
    diamond.a.result.unlink()
    run_stages((diamond.a, end), context=CONTEXT, stop_requested=lambda: False)
    assert diamond.ran == []


def test_what_killed_writers_left_is_swept_from_the_folders_of_stages(diamond: Diamond) -> None:
    for name in ("a.being-written-17-17", "b.being-replaced"):
        (diamond.a.folder / name).write_text("", encoding="utf-8")
    diamond.run()
    assert {path.name for path in diamond.a.folder.iterdir()} == {"a", "b", "c", "d"}
