"""`transduce.train` from Python: it does what the command does."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.faults import small_run

import transduce
from transduce.errors import ConfigError
from transduce.pipeline.command import announce, request_of
from transduce.pipeline.command import train as train_run
from transduce.pipeline.run import TrainingResult
from transduce.progress import Silent
from transduce.training.trainer import Ending


class Notes(Silent):
    """Keeps what a user is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, message: str) -> None:
        self.lines.append(message)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_run.write_text(tmp_path_factory.mktemp("corpus"))


def train(corpus: Path, output: Path, **more: Any) -> TrainingResult:  # noqa: ANN401
    return transduce.train(corpus, output=output, preset="tiny", threads=1, settings=small_run.SETTINGS, **more)


@pytest.mark.slow
def test_it_trains_the_model_that_the_command_trains(corpus: Path, tmp_path: Path) -> None:
    by_command, by_call = tmp_path / "command", tmp_path / "call"
    command = small_run.command(corpus, by_command)
    subprocess.run(command, env=small_run.environment(), check=True, capture_output=True)
    result = train(corpus, by_call)
    assert not small_run.difference(by_call, small_run.fingerprint(by_command))
    assert (result.ending, result.step) == (Ending.STEPS, 12)
    assert (result.model, result.report) == (by_call / "model", by_call / "report.html")
    assert result.report.is_file()
    assert result.validation is not None
    assert result.validation.perplexity > 1
    assert result.averaged
    assert transduce.load(result.model).translate("A dog runs.").text is not None


@pytest.mark.slow
def test_it_goes_on_where_it_was_stopped(corpus: Path, tmp_path: Path) -> None:
    stopped, whole, notes = tmp_path / "stopped", tmp_path / "whole", Notes()
    result = train(corpus, stopped, stop_requested=small_run.stop_after(4), progress=notes)
    assert result.ending is Ending.STOPPED
    assert 0 < result.step < 12
    assert "preset tiny, because you named it" in notes.lines
    assert (
        notes.lines[-1] == f"stopped at step {result.step} and saved. Resume with: transduce train --output {stopped}"
    )
    again = Notes()
    result = transduce.train(output=stopped, progress=again)  # what to train on is in the run
    assert result.ending is Ending.STEPS
    assert not any(line.startswith("preset") for line in again.lines)
    assert again.lines[-4] == "training ended at step 12: its steps are done"
    train(corpus, whole)
    assert not small_run.difference(stopped, small_run.fingerprint(whole))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"settings": {"steps": 5}}, r"settings has the key 'steps'. Write section\.key"),
        ({"settings": {"training.stepz": 5}}, r"training\.stepz: unknown \(did you mean training\.steps\?\)"),
        ({"steps": 0}, r"training\.steps = 0"),
        ({"threads": 0}, r"training\.threads = 0"),
        ({"time": "soon"}, r"training\.time = 'soon'"),
        ({"preset": "tinny"}, r"There is no preset 'tinny'"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(tmp_path: Path, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        transduce.train("corpus.tsv", output=tmp_path / "run", **arguments)
    assert not (tmp_path / "run").exists()


def test_a_request_has_what_was_given_and_nothing_else() -> None:
    assert not request_of().names_something()
    assert not request_of(corpora={"train": None, "valid": []}, data={"source_language": None}).names_something()
    request = request_of(
        corpora={"train": [Path("a.tsv"), "b.en,b.de"], "valid": "c.tsv", "test": ()},
        training={"steps": 7, "threads": None},
        settings={"training.steps": 5, "training.seed": 2, "data.held_out_test": 0},
    )
    assert request.sections == {
        "data": {"train": ["a.tsv", "b.en,b.de"], "valid": ["c.tsv"], "held_out_test": 0},
        "training": {"steps": 7, "seed": 2},
    }


def test_a_run_can_be_announced_without_training(corpus: Path, tmp_path: Path) -> None:
    notes = Notes()
    settings = {**small_run.SETTINGS, "training.threads": 1}
    request = request_of(preset="tiny", settings=settings, corpora={"train": corpus})
    announce(request, tmp_path / "run", progress=notes)
    assert notes.lines.count("preset tiny, because you named it") == 1
    assert any(line.startswith("Ctrl-C finishes the step and saves") for line in notes.lines)
    assert not (tmp_path / "run/checkpoints").exists()
    # The run has its experiment by now, but the plan of its real start has not been shown.
    train_run(request, tmp_path / "run", progress=notes, stop_requested=lambda: True)
    assert sum(line.startswith("Ctrl-C finishes the step and saves") for line in notes.lines) == 2
    assert any(line.startswith("settings as in") for line in notes.lines)
