"""A run as a whole: which stages it has, which of them a start runs, and what they leave behind."""

import gc
import json
import shutil
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.faults import small_run

from transduce.evaluation.comparison import ComparedRun, curves
from transduce.pipeline.averaging import AveragingStage, average_run
from transduce.pipeline.preparing import Preparation
from transduce.pipeline.run import TrainingResult, opened_run
from transduce.pipeline.stages import RunStage, StopRequested
from transduce.pipeline.teaching import TeachersCorpus
from transduce.pipeline.training_stage import OpenTraining, TrainingStage
from transduce.pipeline.translating import TranslationStage
from transduce.progress import Silent
from transduce.training.trainer import Ending, Trainer

SETTINGS: small_run.Settings = {
    "training.teacher_steps": 4,
    "training.optimizer": "muon",
    "data.source_language": "en",
    "data.target_language": "de",
}
CLASSES = (Preparation, TrainingStage, AveragingStage, TranslationStage, TeachersCorpus)
FORWARD, BACKWARD = "training the forward teacher", "training the backward teacher"
AVERAGED = ": averaging checkpoints"
NAMES = [
    "preparing the corpus",
    *(FORWARD, f"{FORWARD}{AVERAGED}", "the forward teacher translates"),
    *(BACKWARD, f"{BACKWARD}{AVERAGED}", "the backward teacher translates"),
    "collecting translations",
    *("training", f"training{AVERAGED}"),
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_run.write_text(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def finished(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("finished") / "run"
    small_run.train(corpus, output, settings=SETTINGS)
    return output


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "run"))


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the stages that are run, as they are."""
    names: list[str] = []
    for stage in CLASSES:

        def noted(one: RunStage, *, stop_requested: StopRequested, run: Callable[..., bool] = stage.run) -> bool:
            names.append(one.name)
            return run(one, stop_requested=stop_requested)

        monkeypatch.setattr(stage, "run", noted)
    return names


def train(corpus: Path, output: Path, *, stop_after: int | None = None, **more: int) -> TrainingResult:
    settings = {**SETTINGS, **{f"training.{key}": value for key, value in more.items()}}
    stop = small_run.stop_after(stop_after) if stop_after is not None else lambda: False
    with opened_run(small_run.chosen(corpus, output, settings=settings), output, progress=Silent()) as run:
        return run.train(stop_requested=stop)


def test_a_run_is_a_list_of_stages(corpus: Path, tmp_path: Path) -> None:
    output = tmp_path / "run"
    with opened_run(small_run.chosen(corpus, output, settings=SETTINGS), output, progress=Silent()) as run:
        assert [stage.name for stage in run.stages] == NAMES
        for place, stage in enumerate(run.stages):
            assert stage.result.parent == stage.folder
            assert set(stage.needs) <= set(run.stages[:place])
        assert len({stage.result for stage in run.stages}) == len(run.stages)
        assert [stage.is_done() for stage in run.stages] == [True] + [False] * (len(NAMES) - 1)


@pytest.mark.slow
class TestFinished:
    def test_nothing_is_run_again(self, run: Path, corpus: Path, ran: list[str]) -> None:
        before = small_run.fingerprint(run)
        first, again = train(corpus, run), train(corpus, run)
        assert ran == []
        assert first == again
        assert (first.ending, first.step) == (Ending.STEPS, small_run.SETTINGS["training.steps"])
        assert first.validation is not None
        assert first.averaged
        assert not small_run.difference(run, before)

    @pytest.mark.parametrize(
        ("deleted", "made"),
        [
            (["model"], [f"training{AVERAGED}"]),
            (["finished.json"], [f"training{AVERAGED}"]),
            (["teachers/corpus", "finished.json"], ["collecting translations", f"training{AVERAGED}"]),
            (
                ["teachers/forward/model", "teachers/corpus", "model"],
                [f"{FORWARD}{AVERAGED}", "collecting translations", f"training{AVERAGED}"],
            ),
            (
                ["teachers/backward/written/0000000000.json", "teachers/corpus", "model"],
                ["the backward teacher translates", "collecting translations", f"training{AVERAGED}"],
            ),
            (["teachers"], []),
            (["checkpoints"], []),
            (["data"], []),
        ],
    )
    def test_what_is_missing_and_needed_is_made_again_alone(
        self, run: Path, corpus: Path, ran: list[str], deleted: list[str], made: list[str]
    ) -> None:
        kept = small_run.fingerprint(run)
        for name in deleted:
            shutil.rmtree(run / name) if (run / name).is_dir() else (run / name).unlink()
        train(corpus, run)
        assert ran == made
        # What no unfinished stage needs stays deleted; all else is there again, to the bit.
        other = [name for name in small_run.difference(run, kept) if not name.startswith(tuple(deleted))]
        assert other == []
        assert (run / "model/weights.safetensors").exists()
        assert (run / "data/prepared.json").exists()

    def test_more_steps_are_taken_by_the_last_training_alone(self, run: Path, corpus: Path, ran: list[str]) -> None:
        assert train(corpus, run, steps=14).step == 14
        assert ran == ["training", f"training{AVERAGED}"]

    def test_the_closing_validation_is_in_metrics_report_and_comparison(self, run: Path, corpus: Path) -> None:
        """One line of metrics, also after the model was made again and after more steps."""
        (run / "finished.json").unlink()
        first = int(small_run.SETTINGS["training.steps"])
        for steps in (first, first + 1):
            result = train(corpus, run, steps=steps)
            assert result.validation is not None
            lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
            (final,) = [line for line in lines if line["kind"] == "final"]
            assert (final["step"], final["loss"], final["bleu"]) == (
                steps,
                result.validation.loss,
                result.validation.bleu,
            )
            assert "finished model" in (run / "report.html").read_text(encoding="utf-8")
            compared = ComparedRun("run", settings={}, metrics=lines)
            (curve,) = curves([compared], ["valid/loss"])
            assert (curve.steps[-1], curve.values[-1]) == (steps, result.validation.loss)
            trained = [line["step"] for line in lines if line["kind"] == "train"]
            assert trained[:2] == [1, 2], "a short run has a curve"
            assert trained[-1] == steps

    def test_another_average_needs_no_training(self, run: Path, corpus: Path, ran: list[str]) -> None:
        train(corpus, run, average_last=2)
        assert ran == [f"training{AVERAGED}"]

    def test_an_average_by_hand_is_replaced_when_training_is_started_again(
        self, run: Path, corpus: Path, ran: list[str]
    ) -> None:
        before = small_run.fingerprint(run)
        average_run(run, last=2)
        assert small_run.difference(run, before) == ["model/weights.safetensors"]
        train(corpus, run)
        assert ran == [f"training{AVERAGED}"]
        assert not small_run.difference(run, before)

    def test_a_run_of_an_earlier_version_goes_on(self, run: Path, corpus: Path, ran: list[str]) -> None:
        """Trainings had no finished.json, and every experiment.toml had the defaults of minimum risk training."""
        before = small_run.fingerprint(run)
        for record in run.rglob("finished.json"):
            record.unlink()
        for name in ("teachers/corpus", "teachers/forward/written"):
            shutil.rmtree(run / name)
        file = run / "experiment.toml"
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace("[training]\n", "[training]\nrisk_peak = 0.0005\nrisk_candidates = 8\n"), "utf-8")
        train(corpus, run)
        assert ran == [
            *(f"{FORWARD}{AVERAGED}", "the forward teacher translates"),
            *("collecting translations", f"training{AVERAGED}"),
        ]
        assert not small_run.difference(run, before)


@pytest.mark.slow
def test_stopped_among_the_teachers_the_stages_after_are_untouched(
    finished: Path, corpus: Path, tmp_path: Path, ran: list[str]
) -> None:
    output = tmp_path / "run"
    result = train(corpus, output, stop_after=3)
    assert ran == [FORWARD]
    assert (result.ending, result.step, result.validation, result.averaged) == (Ending.STOPPED, 0, None, ())
    assert "stopped; the same command resumes" in result.report.read_text(encoding="utf-8")
    assert not (output / "checkpoints").exists()
    assert [path.name for path in (output / "teachers").iterdir()] == ["forward"]
    train(corpus, output)
    assert ran == [FORWARD, *NAMES[1:]]
    assert not small_run.difference(output, small_run.fingerprint(finished))


@pytest.mark.slow
def test_a_training_stage_leaves_no_network_in_memory(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By reference counts alone: a network that waits for the collector would stay beside the next stage's."""
    networks: list[weakref.ref[object]] = []
    trainer = OpenTraining.trainer

    def noted(opened: OpenTraining, **options: object) -> Trainer:
        networks.append(weakref.ref(opened.network))
        return trainer(opened, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(OpenTraining, "trainer", noted)
    output = tmp_path / "run"
    choice = small_run.chosen(corpus, output, settings={"training.steps": 4})
    with opened_run(choice, output, progress=Silent()) as run:
        gc.collect()
        gc.disable()
        try:
            assert run.training.run(stop_requested=lambda: False)
            assert [network() for network in networks] == [None]
        finally:
            gc.enable()


def test_a_run_with_mixed_corpora_that_was_stopped_ends_as_an_undisturbed_one(corpus: Path, tmp_path: Path) -> None:
    small_run.write_text(tmp_path / "old")
    old = tmp_path / "old" / "valid.tsv"
    settings = {"data.corpora": f"[{{files = ['{old}'], weight = 0.4, tag = '>>old<<'}}]"}
    for name, calls in (("whole", None), ("stopped", 5)):
        output = tmp_path / name
        if calls is not None:
            with opened_run(small_run.chosen(corpus, output, settings=settings), output, progress=Silent()) as run:
                stopped = run.train(stop_requested=small_run.stop_after(calls))
            assert stopped.ending is Ending.STOPPED
        small_run.train(corpus, output, settings=settings)
    weights = [(tmp_path / name / "model" / "weights.safetensors").read_bytes() for name in ("whole", "stopped")]
    assert weights[0] == weights[1]
