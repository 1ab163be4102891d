"""What a run is said to take."""

from pathlib import Path

import pytest
from tests.faults import small_run

from transduce.data.batch import Batch
from transduce.pipeline import estimate
from transduce.pipeline.estimate import announcement
from transduce.pipeline.run import opened_run
from transduce.progress import Silent
from transduce.training.loss import Loss
from transduce.training.step import Stepper


class Clock:
    """Tells the time as steps make it pass, the first of each stepper many times as long as any other."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, accumulate = 0.0, Stepper.accumulate
        warm: list[Stepper] = []

        def timed(stepper: Stepper, batch: Batch) -> Loss:
            self.now += 0.5 if stepper in warm else 30.0
            warm.append(stepper)
            return accumulate(stepper, batch)

        monkeypatch.setattr(Stepper, "accumulate", timed)
        monkeypatch.setattr(estimate, "time", self)

    def monotonic(self) -> float:
        return self.now


def test_the_first_step_which_loads_the_kernels_is_not_taken_for_a_usual_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the first step counted, Multi30k's 37 minutes were announced as 7.4 hours."""
    corpus, output = small_run.write_text(tmp_path / "corpus"), tmp_path / "run"
    settings = {"training.micro_batch_tokens": 160, "training.steps": 7_200}
    with opened_run(small_run.chosen(corpus, output, settings=settings), output, progress=Silent()) as run:
        Clock(monkeypatch)
        assert estimate.seconds_per_step(run.training.opened().trainer()) == 0.5
        assert any(line.startswith("about 60 min here at most") for line in announcement(run))
