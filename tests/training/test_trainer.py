import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
import torch

from transduce.data.batching import PLAN_VERSION
from transduce.errors import ConfigError, RunError
from transduce.files import write_manifest
from transduce.machine import Compute
from transduce.progress import Silent
from transduce.training.averaging import average_last
from transduce.training.checkpoint import Checkpoints
from transduce.training.config import TrainingConfig
from transduce.training.distributed import World
from transduce.training.metrics import read_metrics
from transduce.training.resumption import compute_of_run, recorded_machine
from transduce.training.trainer import Ending, Outcome, Trainer, Validated
from transduce.training.validation import Validation

MakeTrainer = Callable[..., Trainer]
MakeConfig = Callable[..., TrainingConfig]


@dataclass
class Listener(Silent):
    warnings: list[str] = field(default_factory=list)

    def warn(self, message: str) -> None:
        self.warnings.append(message)


def steps_on_disk(run: Path) -> list[int]:
    return [checkpoint.step for checkpoint in Checkpoints(run / "checkpoints").all()]


def weights(trainer: Trainer) -> torch.Tensor:
    return trainer.stepper.parameters.values.clone()


def stop_after(steps: int) -> Callable[[], bool]:
    """Return a stop_requested that is first asked when training begins and then once in every step."""
    answers: Iterator[bool] = iter([False] * steps)
    return lambda: next(answers, True)


def test_training_learns(make_trainer: MakeTrainer, make_config: MakeConfig, tmp_path: Path) -> None:
    outcome = make_trainer(config=make_config(steps=90, report_every=10, peak=1e-2, checkpoint_every=100)).run()
    assert (outcome.ending, outcome.progress.step) == (Ending.STEPS, 90)
    losses = [float(str(report["nll"])) for report in read_metrics(tmp_path / "run" / "metrics.jsonl")]
    assert len(losses) == 12, "every 10 steps, and at 1, 2 and 5"
    assert losses[-1] < 0.85 * losses[0]


def test_metrics_hold_what_a_user_wants_to_see(make_trainer: MakeTrainer, tmp_path: Path) -> None:
    make_trainer().run()
    reports = list(read_metrics(tmp_path / "run" / "metrics.jsonl"))
    assert [report["step"] for report in reports] == [1, 2, 4, 6, 8, 10, 12]
    expected = {"loss", "nll", "perplexity", "learning_rate", "gradient_norm", "tokens_per_second", "padding", "epoch"}
    assert expected <= reports[0].keys()
    assert reports[1]["learning_rate"] == pytest.approx(3e-3 * 2 / 3)


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
@pytest.mark.parametrize("stops", [[1], [4], [5], [7, 3], [2, 2, 2, 2]])
def test_a_stopped_and_resumed_run_equals_one_never_stopped(
    make_trainer: MakeTrainer, make_config: MakeConfig, tmp_path: Path, stops: list[int], optimizer: str
) -> None:
    make_trainer = partial(make_trainer, config=make_config(optimizer=optimizer))
    whole = make_trainer(folder=tmp_path / "whole")
    whole.run()
    for steps in stops:
        outcome = make_trainer(stop_requested=stop_after(steps)).run()
        assert outcome.ending == Ending.STOPPED
    last = make_trainer()
    assert last.run().ending == Ending.STEPS
    assert torch.equal(weights(last), weights(whole))
    assert torch.equal(last.stepper.optimizer.mean, whole.stepper.optimizer.mean)
    averages = [average_last(tmp_path / name, last=2) for name in ("run", "whole")]
    assert averages[0].steps == averages[1].steps == (10, 12)
    assert all(torch.equal(averages[0].weights[name], tensor) for name, tensor in averages[1].weights.items())
    steps_reported = [report["step"] for report in read_metrics(tmp_path / "run" / "metrics.jsonl")]
    assert len(steps_reported) == len(set(steps_reported))


def test_a_stop_finishes_its_step_and_saves(make_trainer: MakeTrainer, tmp_path: Path) -> None:
    outcome = make_trainer(stop_requested=stop_after(3)).run()
    assert (outcome.ending, outcome.progress.step) == (Ending.STOPPED, 3)
    assert steps_on_disk(tmp_path / "run") == [3]


def test_raising_the_budget_of_a_finished_run_goes_on(
    make_trainer: MakeTrainer, make_config: MakeConfig, tmp_path: Path
) -> None:
    make_trainer(config=make_config(steps=7)).run()
    raised = make_trainer(config=make_config(steps=12, report_every=3, patience=4, checkpoint_every=6))
    assert raised.run().progress.step == 12
    whole = make_trainer(folder=tmp_path / "whole")
    whole.run()
    assert torch.equal(weights(raised), weights(whole))


def test_a_finished_run_is_left_as_it_is(make_trainer: MakeTrainer, tmp_path: Path) -> None:
    first = make_trainer()
    first.run()
    files = {file: file.stat().st_mtime_ns for file in (tmp_path / "run").rglob("*")}
    again = make_trainer()
    assert again.run() == Outcome(Ending.STEPS, again.run().progress)
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "run").rglob("*")} == files
    assert torch.equal(weights(first), weights(again))


def test_what_alters_the_trajectory_is_refused_with_its_differences(
    make_trainer: MakeTrainer, make_config: MakeConfig
) -> None:
    make_trainer(identity={"model.d_model": 16, "data.train": ["a.tsv"]}).run()
    changed = make_trainer(
        config=make_config(seed=2, peak=1e-3), identity={"model.d_model": 16, "data.train": ["b.tsv"]}
    )
    with pytest.raises(RunError) as refusal:
        changed.run()
    message = str(refusal.value)
    assert "training.seed was 1 and is now 2" in message
    assert "training.peak was 0.003 and is now 0.001" in message
    assert "data.train was ['a.tsv'] and is now ['b.tsv']" in message
    assert "model.d_model" not in message
    assert "--start-from" in message


def test_what_older_checkpoints_took_for_a_part_of_the_trajectory_is_not_compared(make_trainer: MakeTrainer) -> None:
    make_trainer(identity={"data.train": ["a.tsv"], "data.expected_pairs": {"a.tsv": 7}}).run()
    assert make_trainer(identity={"data.train": ["a.tsv"]}).run().ending is Ending.STEPS


def test_other_threads_are_told_and_another_precision_refused(make_trainer: MakeTrainer) -> None:
    make_trainer(stop_requested=stop_after(2)).run()
    listener = Listener()
    other_threads = Compute(device="cpu", threads=2, precision="float32")
    make_trainer(compute=other_threads, progress=listener, stop_requested=stop_after(2)).run()
    (warning,) = listener.warnings
    assert "threads was 1 and is now 2" in warning
    with pytest.raises(RunError, match=r"training\.precision was 'float32' and is now 'bf16'"):
        make_trainer(compute=Compute(device="cpu", threads=2, precision="bf16")).run()


def test_a_run_of_another_batch_plan_goes_on_and_is_told(make_trainer: MakeTrainer, tmp_path: Path) -> None:
    make_trainer(stop_requested=stop_after(2)).run()
    (state,) = (tmp_path / "run/checkpoints").glob("*/state.json")
    content = json.loads(state.read_text(encoding="utf-8"))
    assert content.pop("batch_plan") == PLAN_VERSION
    state.write_text(json.dumps(content), encoding="utf-8")
    write_manifest(state.parent)
    listener = Listener()
    make_trainer(progress=listener).run()
    (warning,) = listener.warnings
    assert "begun by another version of transduce, which put other sentences into each step" in warning


def test_a_resume_computes_with_what_the_run_began_with(
    make_trainer: MakeTrainer, make_config: MakeConfig, tmp_path: Path
) -> None:
    config = make_config(threads=None, precision="auto")
    assert recorded_machine(tmp_path / "run") is None
    make_trainer(compute=Compute(device="cpu", threads=3, precision="float32"), stop_requested=stop_after(1)).run()
    chosen = compute_of_run(config, tmp_path / "run", world=World())
    assert (chosen.threads, chosen.precision) == (3, "float32")
    assert compute_of_run(make_config(threads=1), tmp_path / "run", world=World()).threads == 1


def test_epochs_and_time_are_budgets(make_trainer: MakeTrainer, make_config: MakeConfig, tmp_path: Path) -> None:
    trainer = make_trainer(config=make_config(steps=None, epochs=2))
    outcome = trainer.run()
    steps_of_two_epochs = len(trainer.batches.steps(0)) + len(trainer.batches.steps(1))
    assert (outcome.ending, outcome.progress.step) == (Ending.EPOCHS, steps_of_two_epochs)
    timed = make_trainer(config=make_config(steps=None, time="0.2s"), folder=tmp_path / "timed").run()
    assert timed.ending == Ending.TIME
    assert timed.progress.step >= 1
    assert timed.progress.seconds >= 0.2
    again = make_trainer(config=make_config(steps=None, time="0.2s"), folder=tmp_path / "timed").run()
    assert again.progress == timed.progress


def test_checkpoints_by_time(make_trainer: MakeTrainer, make_config: MakeConfig, tmp_path: Path) -> None:
    make_trainer(config=make_config(checkpoint_every="0.001s", keep_checkpoints=5)).run()
    assert steps_on_disk(tmp_path / "run") == [8, 9, 10, 11, 12]


def test_nothing_would_end_a_run_without_budget_and_validation(
    make_trainer: MakeTrainer, make_config: MakeConfig
) -> None:
    with pytest.raises(ConfigError, match=r"Nothing would end this training: give training\.steps"):
        make_trainer(config=make_config(steps=None))


def validations(losses: list[float]) -> Callable[[], Validation]:
    remaining = iter(losses)
    return lambda: Validation(loss=next(remaining))


def test_training_ends_when_validation_stops_improving(
    make_trainer: MakeTrainer, make_config: MakeConfig, tmp_path: Path
) -> None:
    seen: list[Validated] = []
    config = make_config(steps=None, validate_every=3, patience=2, keep_checkpoints=5)
    validate = validations([3.0, 2.0, 2.5, 2.4, 9.9])
    outcome = make_trainer(config=config, validate=validate, after_validation=seen.append).run()
    assert (outcome.ending, outcome.progress.step) == (Ending.PATIENCE, 12)
    assert [(validated.progress.step, validated.is_best) for validated in seen] == [
        (3, True),
        (6, True),
        (9, False),
        (12, False),
    ]
    assert [validated.checkpoint is not None for validated in seen] == [True, True, False, False]
    assert 6 in steps_on_disk(tmp_path / "run")
    reports = [report for report in read_metrics(tmp_path / "run" / "metrics.jsonl") if report["kind"] == "valid"]
    assert [report["loss"] for report in reports] == [3.0, 2.0, 2.5, 2.4]


def test_patience_and_the_best_survive_a_resume(make_trainer: MakeTrainer, make_config: MakeConfig) -> None:
    config = make_config(steps=None, validate_every=2, patience=3)
    stopped = make_trainer(config=config, validate=validations([2.0, 2.5, 2.4]), stop_requested=stop_after(7 + 3)).run()
    assert (stopped.ending, stopped.progress.step) == (Ending.STOPPED, 7)
    resumed = make_trainer(config=config, validate=validations([2.3])).run()
    assert (resumed.ending, resumed.progress.step) == (Ending.PATIENCE, 8)
    assert resumed.progress.best is not None
    assert resumed.progress.best.step == 2


def test_the_best_by_bleu_needs_bleu(make_trainer: MakeTrainer, make_config: MakeConfig) -> None:
    config = make_config(validate_every=2, best_by="bleu")
    with pytest.raises(ConfigError, match="gives no BLEU"):
        make_trainer(config=config, validate=lambda: Validation(loss=1.0)).run()


def test_a_checkpoint_holds_only_tensors_and_json(make_trainer: MakeTrainer, tmp_path: Path) -> None:
    make_trainer().run()
    newest = Checkpoints(tmp_path / "run" / "checkpoints").all()[-1]
    names = {file.name for file in newest.folder.iterdir()}
    assert names == {"model.safetensors", "optimizer.safetensors", "state.json", "manifest.json"}
    state = json.loads((newest.folder / "state.json").read_text(encoding="utf-8"))
    assert state["progress"]["step"] == 12
    assert state["machine"] == {"device": "cpu", "threads": 1, "precision": "float32", "ranks": 1}
