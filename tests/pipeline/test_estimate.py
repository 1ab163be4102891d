"""What a run is said to take."""

from pathlib import Path

import pytest
from tests.faults import small_run

from transduce.data.batch import Batch
from transduce.pipeline import estimate
from transduce.pipeline.estimate import announcement
from transduce.pipeline.run import Run, opened_run
from transduce.progress import Silent
from transduce.training.loss import Loss


class Clock:
    """Tells the time as steps make it pass, the first of them many times as long as any other."""

    def __init__(self, run: Run) -> None:
        self.now, self.steps, self._accumulate = 0.0, 0, run.trainer.stepper.accumulate
        run.trainer.stepper.accumulate = self.accumulate  # type: ignore[method-assign]

    def accumulate(self, batch: Batch) -> Loss:
        self.steps += 1
        self.now += 30.0 if self.steps == 1 else 0.5
        return self._accumulate(batch)

    def monotonic(self) -> float:
        return self.now


def test_the_first_step_which_loads_the_kernels_is_not_taken_for_a_usual_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the first step counted, Multi30k's 37 minutes were announced as 7.4 hours."""
    corpus, output = small_run.write_text(tmp_path / "corpus"), tmp_path / "run"
    settings = {"training.micro_batch_tokens": 160, "training.steps": 7_200}
    with opened_run(small_run.chosen(corpus, output, settings=settings), output, progress=Silent()) as run:
        clock = Clock(run)
        monkeypatch.setattr(estimate, "time", clock)
        assert estimate.seconds_per_step(run) == 0.5
        clock.steps = 0
        assert any(line.startswith("about 60 min here at most") for line in announcement(run))
