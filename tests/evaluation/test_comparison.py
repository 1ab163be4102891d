"""Runs side by side, by values worked out by hand."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from transduce.evaluation.comparison import (
    ComparedRun,
    curves,
    differences_from_first,
    scores_side_by_side,
    settings_that_differ,
    spread_over_seeds,
)
from transduce.evaluation.protocols import detokenised
from transduce.evaluation.record import Evaluation, EvaluationRecord
from transduce.evaluation.scores import Score, score


def settings(*, seed: int = 1, heads: int = 8, **training: object) -> dict[str, object]:
    return {"model": {"heads": heads, "layers": 6}, "training": {"seed": seed, **training}}


def evaluation(
    value: float, *, test: str = "test.de", text: str = "a", day: int = 1, signature: str = "s"
) -> Evaluation:
    record = EvaluationRecord(
        date=datetime(2026, 11, day, tzinfo=UTC),
        system="run",
        test=test,
        data={"sources": text},
        sentences=1,
        protocol="detokenised",
        scores=(Score(name="BLEU", value=value, signature=signature),),
    )
    return Evaluation(folder=Path("x"), record=record, hypotheses=["a"], references=[["a"]])


def test_only_settings_that_differ_are_shown_and_a_missing_one_is_none() -> None:
    runs = [
        ComparedRun("one", settings(heads=8)),
        ComparedRun("two", settings(heads=4)),
        ComparedRun("three", settings(heads=8, steps=9)),
    ]
    found = {row.key: row.values for row in settings_that_differ(runs)}
    assert found == {"model.heads": (8, 4, 8), "training.steps": (None, None, 9)}


def test_runs_alike_differ_in_nothing() -> None:
    assert settings_that_differ([ComparedRun("one", settings()), ComparedRun("two", settings())]) == ()


def test_the_newest_score_of_the_same_text_stands_in_one_row_whatever_the_file_was_called() -> None:
    runs = [
        ComparedRun("one", {}, [evaluation(20, day=2), evaluation(10, day=1)]),
        ComparedRun("two", {}, [evaluation(30, test="copy/test.de")]),
        ComparedRun("three", {}, [evaluation(40, text="b", test="other.de")]),
    ]
    first, second = scores_side_by_side(runs)
    assert (first.test, first.values) == ("test.de", (20, 30, None))
    assert (second.test, second.values) == ("other.de", (None, None, 40))


def test_scores_with_different_signatures_are_never_in_one_row() -> None:
    runs = [
        ComparedRun("one", {}, [evaluation(20, signature="tok:13a")]),
        ComparedRun("two", {}, [evaluation(30, signature="tok:zh")]),
    ]
    assert [row.values for row in scores_side_by_side(runs)] == [(20, None), (None, 30)]


def test_mean_and_range_are_taken_over_runs_that_differ_in_their_seed_alone() -> None:
    runs = [
        ComparedRun("a1", settings(seed=1), [evaluation(27.0)]),
        ComparedRun("b1", settings(seed=1, heads=4), [evaluation(25.5)]),
        ComparedRun("a2", settings(seed=2), [evaluation(27.6)]),
        ComparedRun("a3", settings(seed=3), [evaluation(26.7)]),
        ComparedRun("a4", settings(seed=4)),
    ]
    (spread,) = spread_over_seeds(runs)
    assert spread.runs == ("a1", "a2", "a3"), "b1 is another experiment, and a4 has no score"
    assert [spread.mean, spread.lowest, spread.highest] == pytest.approx([27.1, 26.7, 27.6])


def test_later_runs_are_tested_against_the_first(
    references: list[str], hypotheses: list[str], worse_hypotheses: list[str]
) -> None:
    def run(name: str, lines: list[str]) -> ComparedRun:
        scores = score(lines, [references], protocol=detokenised())
        record = evaluation(0).record.model_copy(update={"scores": scores})
        return ComparedRun(name, {}, [Evaluation(Path("x"), record, hypotheses=lines, references=[references])])

    found = differences_from_first(
        [run("good", hypotheses), run("same", hypotheses), run("worse", worse_hypotheses)], samples=200
    )
    bleu = {row.system: row for row in found if row.difference.name == "BLEU"}
    assert set(bleu) == {"same", "worse"}
    assert {row.baseline for row in found} == {"good"}
    assert bleu["worse"].difference.is_significant
    assert bleu["worse"].difference.system < bleu["worse"].difference.baseline
    assert not bleu["same"].difference.is_significant


def test_runs_scored_on_different_text_are_not_tested_against_each_other() -> None:
    runs = [ComparedRun("one", {}, [evaluation(20, text="a")]), ComparedRun("two", {}, [evaluation(20, text="b")])]
    assert differences_from_first(runs, samples=10) == ()
    assert differences_from_first([], samples=10) == ()


def test_curves_are_taken_from_the_reports_that_hold_them() -> None:
    metrics = [
        {"kind": "train", "step": 100, "loss": 5.0},
        {"kind": "valid", "step": 200, "loss": 4.0, "samples": ["x"]},
        {"kind": "train", "step": 200, "loss": 4.5},
        {"kind": "valid", "step": 400, "loss": 3.5, "bleu": 12},
    ]
    runs = [ComparedRun("one", {}, metrics=metrics), ComparedRun("two", {})]
    loss, bleu = curves(runs, ["valid/loss", "valid/bleu", "valid/samples", "valid/none"])
    assert (loss.run, loss.name, loss.steps, loss.values) == ("one", "valid/loss", (200, 400), (4.0, 3.5))
    assert (bleu.steps, bleu.values) == ((400,), (12.0,))
