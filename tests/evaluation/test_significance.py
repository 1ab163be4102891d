"""Paired bootstrap: sacrebleu's, so its command line is the oracle."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from transduce.errors import DataError
from transduce.evaluation.protocols import detokenised, paper
from transduce.evaluation.scores import score
from transduce.evaluation.significance import SAMPLES, intervals_of_differences, paired_bootstrap


@pytest.fixture(autouse=True)
def usual_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SACREBLEU_SEED", raising=False)


def test_values_are_the_command_lines(
    tmp_path: Path, references: list[str], hypotheses: list[str], worse_hypotheses: list[str]
) -> None:
    paths = []
    for name, lines in (("reference", references), ("one", hypotheses), ("two", worse_hypotheses)):
        paths.append(tmp_path / name)
        paths[-1].write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    arguments = [
        *map(str, (paths[0], "-i", *paths[1:])),
        "--paired-bs",
        "-m",
        "bleu",
        "chrf",
        "-f",
        "text",
        "-w",
        "8",
        "-q",
    ]
    command = [sys.executable, "-m", "sacrebleu", *arguments]
    shown = subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout
    # Each cell is `score (mean ± half_width)`, the second system's followed by `(p = …)`.
    cells = re.findall(r"([\d.]+) \(([\d.]+) ± ([\d.]+)\)", shown)
    p_values = [float(value) for value in re.findall(r"\(p = ([\d.]+)\)", shown)]
    found = paired_bootstrap(hypotheses, worse_hypotheses, [references], protocol=detokenised())[:2]
    for column, difference in enumerate(found):
        intervals = difference.baseline_interval, difference.system_interval
        values = difference.baseline, difference.system
        for row, (value, interval) in enumerate(zip(values, intervals, strict=True)):
            expected = tuple(float(part) for part in cells[2 * row + column])
            assert (value, interval.mean, interval.half_width) == pytest.approx(expected, abs=1e-8)
        assert difference.p_value == pytest.approx(p_values[column], abs=1e-4)
        assert "|bs:1000|seed:12345|" in difference.signature


def test_a_large_difference_is_significant_and_none_is_not(
    references: list[str], hypotheses: list[str], worse_hypotheses: list[str]
) -> None:
    for difference in paired_bootstrap(hypotheses, worse_hypotheses, [references], protocol=detokenised(), samples=300):
        assert difference.is_significant
    for same in paired_bootstrap(hypotheses, hypotheses, [references], protocol=detokenised(), samples=300):
        assert same.baseline == same.system
        assert same.p_value == 1  # where sacrebleu says 0.003: it does not call a difference of zero chance


def test_two_systems_that_are_equally_useless_do_not_differ() -> None:
    (bleu,) = paired_bootstrap(["a b", "c"], ["d", "e f"], [["x y z w", "u v"]], protocol=paper("de"), samples=100)
    assert (bleu.baseline, bleu.system, bleu.p_value) == (0, 0, 1)


def test_the_answer_is_always_the_same_and_its_scores_are_those_of_scoring_alone(
    references: list[str], hypotheses: list[str], worse_hypotheses: list[str]
) -> None:
    protocol = paper("de")
    first = paired_bootstrap(hypotheses, worse_hypotheses, [references], protocol=protocol, samples=200)
    assert paired_bootstrap(hypotheses, worse_hypotheses, [references], protocol=protocol, samples=200) == first
    assert first[0].name == "BLEU (paper)"
    assert first[0].baseline == score(hypotheses, [references], protocol=protocol)[0].value
    assert first[0].system == score(worse_hypotheses, [references], protocol=protocol)[0].value
    assert "tok:moses-de-atat" in first[0].signature
    assert "bs:200" in first[0].signature


def test_systems_of_unequal_length_are_refused() -> None:
    with pytest.raises(DataError, match="the first system has 1, the second system has 2, reference 1 has 2"):
        paired_bootstrap(["a"], ["a", "b"], [["a", "b"]], protocol=detokenised())
    with pytest.raises(DataError, match="no reference was given"):
        paired_bootstrap(["a"], ["a"], [], protocol=detokenised())


def test_nothing_is_logged(capfd: pytest.CaptureFixture[str], references: list[str]) -> None:
    paired_bootstrap(references, references, [references], protocol=detokenised(), samples=10)
    assert capfd.readouterr() == ("", "")


def test_an_interval_is_that_of_test_sets_drawn_for_both_systems_at_once(
    references: list[str], hypotheses: list[str], worse_hypotheses: list[str]
) -> None:
    """The oracle scores every drawn test set from its text."""
    protocol, few = detokenised(), slice(0, 8)
    refs, one, two = references[few], worse_hypotheses[few], hypotheses[few]
    draws = np.random.default_rng(12345).choice(len(refs), size=(SAMPLES, len(refs)), replace=True)
    chrf = protocol.make_metrics()["chrF2"]

    def drawn(lines: list[str], draw: list[int]) -> float:
        return float(chrf.corpus_score([lines[n] for n in draw], [[refs[n] for n in draw]]).score)

    gaps = [drawn(two, draw) - drawn(one, draw) for draw in draws.tolist()]
    found = intervals_of_differences(one, two, [refs], protocol=protocol)
    assert found["chrF2"] == pytest.approx(np.quantile(gaps, [0.025, 0.975]), abs=1e-3)
    assert set(found) == set(protocol.make_metrics())
    same = intervals_of_differences(one, one, [refs], protocol=protocol)
    assert set(same.values()) == {(0.0, 0.0)}
