"""What a run is said to take."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.faults import small_run

from transduce.data.batch import Batch
from transduce.pipeline import estimate
from transduce.pipeline.estimate import TrainingCosts, announcement
from transduce.pipeline.run import opened_run
from transduce.progress import Silent
from transduce.training.config import TrainingConfig
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
    settings = {"training.micro_batch_tokens": 160, "training.steps": 7_200, "training.validate_every": 7_200}
    with opened_run(small_run.chosen(corpus, output, settings=settings), output, progress=Silent()) as run:
        Clock(monkeypatch)
        assert estimate.seconds_per_step(run.training.opened().trainer()) == 0.5
        assert any(line.startswith("about 60 min here at most (1 thread, ") for line in announcement(run))


class TestCosts:
    costs = TrainingCosts(step=0.1, validation=2.0, checkpoint=1.0, steps_in_epoch=900)

    def test_are_those_of_steps_validations_and_checkpoints(self) -> None:
        """1,000 steps, 10 validations and the last, 20 checkpoints, and one for each validation."""
        training = TrainingConfig(validate_every=100, checkpoint_every=50)
        assert self.costs.seconds(training, steps=1000) == pytest.approx(1000 * 0.1 + 11 * 2.0 + (20 + 11) * 1.0)

    def test_count_checkpoints_by_time(self) -> None:
        """1,200 seconds of steps and one validation of two seconds hold two intervals of ten minutes."""
        training = TrainingConfig(validate_every=10**6, checkpoint_every="10m")
        assert self.costs.seconds(training, steps=12_000) == pytest.approx(1200 + 2 + (2 + 1))

    @pytest.mark.parametrize(
        ("steps_in_epoch", "settings", "steps"),
        [
            (1, {"validate_every": 500}, 500 * (1 + 10)),  # five pairs never end before ten validations without a gain
            (900, {"validate_every": 500}, 500 * (36 + 10)),  # 60 epochs / √9 = 20 epochs of 900 steps
            (50, {"validate_every": 100, "patience": 5, "start_from": "en-de"}, 100 * (8 + 5)),
        ],
    )
    def test_steps_without_a_budget_include_patience(
        self, steps_in_epoch: int, settings: dict[str, object], steps: int
    ) -> None:
        costs = replace(self.costs, steps_in_epoch=steps_in_epoch)
        assert costs.usual_steps(TrainingConfig.model_validate(settings)) == steps


def test_a_mixture_is_announced(tmp_path: Path) -> None:
    corpus, output = small_run.write_text(tmp_path / "corpus"), tmp_path / "run"
    old = corpus.parent / "valid.tsv"
    settings = {"data.corpora": f"[{{files = ['{old}'], weight = 0.5}}]"}
    with opened_run(small_run.chosen(corpus, output, settings=settings), output, progress=Silent()) as run:
        assert "an epoch mixes the corpora: 117 pairs of 117, 4 pairs of 8" in announcement(run)
