"""The numbers are sacrebleu's own: its command line is the oracle."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from transduce.errors import ConfigError, DataError
from transduce.evaluation.protocols import detokenised, paper
from transduce.evaluation.scores import lines_that_look_tokenised, require_equal_counts, score


def sacrebleu_command(*arguments: str | Path) -> list[dict[str, object]]:
    command = [sys.executable, "-m", "sacrebleu", *map(str, arguments), "--format", "json", "-w", "20", "--quiet"]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout)
    return found if isinstance(found, list) else [found]


def write_lines(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    return path


def test_scores_and_signatures_are_the_command_lines_to_the_last_digit(
    tmp_path: Path, hypotheses: list[str], references: list[str], worse_hypotheses: list[str]
) -> None:
    system = write_lines(tmp_path / "system", hypotheses)
    first, second = write_lines(tmp_path / "first", references), write_lines(tmp_path / "second", worse_hypotheses)
    for paths, lists in (((first,), [references]), ((first, second), [references, worse_hypotheses])):
        expected = sacrebleu_command(*paths, "-i", system, "-m", "bleu", "chrf", "ter")
        found = score(hypotheses, lists, protocol=detokenised())
        assert [s.name for s in found] == ["BLEU", "chrF2", "TER"] == [entry["name"] for entry in expected]
        assert [s.value for s in found] == [entry["score"] for entry in expected]
        assert [s.signature for s in found] == [entry["signature"] for entry in expected]
        assert found[0].detail == expected[0]["verbose_score"]


def test_chinese_is_tokenised_by_characters_as_the_command_line_does(tmp_path: Path) -> None:
    hypotheses, references = ["这是一个好测试。", "他喜欢猫和狗。"], ["这是一个测试。", "他喜欢狗和猫。"]
    reference, system = write_lines(tmp_path / "r", references), write_lines(tmp_path / "s", hypotheses)
    (expected,) = sacrebleu_command(reference, "-i", system, "-m", "bleu", "-tok", "zh")
    found = score(hypotheses, [references], protocol=detokenised("zh-Hans"))[0]
    assert (found.value, found.signature) == (expected["score"], expected["signature"])
    assert "tok:zh" in found.signature


def test_white_space_at_the_end_of_a_line_changes_nothing(hypotheses: list[str], references: list[str]) -> None:
    ragged = [f"{line} \r" for line in hypotheses]
    plain = score(hypotheses, [references], protocol=detokenised())
    assert score(ragged, [references], protocol=detokenised()) == plain


def test_a_perfect_translation_scores_perfectly(references: list[str]) -> None:
    bleu, chrf, ter = score(references, [references], protocol=detokenised())
    assert [bleu.value, chrf.value, ter.value] == pytest.approx([100, 100, 0])


def test_the_order_of_sentences_does_not_matter(hypotheses: list[str], references: list[str]) -> None:
    forward = score(hypotheses, [references], protocol=paper("de"))
    assert score(hypotheses[::-1], [references[::-1]], protocol=paper("de")) == forward


def test_unequal_counts_are_refused_with_each_count() -> None:
    with pytest.raises(DataError) as caught:
        score(["a", "b"], [["a", "b"], ["a"]], protocol=detokenised())
    assert str(caught.value) == (
        "The numbers of lines differ: the list of hypotheses has 2, reference 1 has 2, reference 2 has 1. Line n of "
        "each must belong to sentence n; look for a line that is missing or broken in two."
    )
    with pytest.raises(DataError, match=r"out\.txt has 1, test\.de has 2"):
        require_equal_counts({"out.txt": ["a"], "test.de": ["a", "b"]})


def test_nothing_cannot_be_scored() -> None:
    with pytest.raises(DataError, match="There is nothing to score: the list of hypotheses has no lines"):
        score([], [[]], protocol=detokenised())
    with pytest.raises(DataError, match="no reference was given"):
        score(["a"], [], protocol=detokenised())


def test_a_tokenizer_that_is_not_installed_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "MeCab", None)  # as if it were not there, on machines where it is
    monkeypatch.delitem(sys.modules, "sacrebleu.tokenizers.tokenizer_ja_mecab", raising=False)
    with pytest.raises(ConfigError, match=r"pip install 'sacrebleu\[ja\]'"):
        score(["猫"], [["猫"]], protocol=detokenised("ja"))


def test_text_that_was_left_tokenised_is_noticed() -> None:
    assert lines_that_look_tokenised(["a dog runs .", "a dog runs.", "a dog runs . "]) == 2
