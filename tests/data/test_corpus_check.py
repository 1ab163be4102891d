"""What is said of a corpus before a run learns it."""

import itertools
from pathlib import Path

import pytest
from tests.data.test_preparation import Watcher

from transduce.data.config import DataConfig
from transduce.data.corpus_check import check_corpora, detect_language
from transduce.demo import corpus
from transduce.errors import ConfigError, DataError, TransduceError

PAIRS = corpus(pairs=600, held_out=1).train
ENGLISH = [english for english, _ in PAIRS]
GERMAN = [german for _, german in PAIRS]


def check(path: Path, *columns: list[str], adapts: bool = False, **data: object) -> Watcher:
    """Check a table of these columns, and return what was said."""
    path.write_text("".join("\t".join(row) + "\n" for row in zip(*columns, strict=True)), encoding="utf-8")
    watcher = Watcher()
    languages = {"source_language": "en", "target_language": "de"}
    config = DataConfig.model_validate({"train": [str(path)], **languages, **data})
    check_corpora(config, adapts=adapts, progress=watcher)
    return watcher


def test_three_pairs_and_the_languages_are_shown_and_good_text_gives_no_warning(tmp_path: Path) -> None:
    watcher = check(tmp_path / "a.tsv", ENGLISH, GERMAN)
    assert watcher.notes[0] == "sample pairs; languages as detected: English (en) to German (de)"
    assert [line.strip() for line in watcher.notes[1::2]] == [ENGLISH[0], ENGLISH[249], ENGLISH[499]]
    assert [line.strip(" →") for line in watcher.notes[2::2]] == [GERMAN[0], GERMAN[249], GERMAN[499]]
    assert watcher.warnings == []


def test_a_sample_is_one_line_of_a_terminal(tmp_path: Path) -> None:
    watcher = check(tmp_path / "a.tsv", [text * 9 for text in ENGLISH], GERMAN)
    assert max(map(len, watcher.notes)) <= 80
    assert watcher.notes[1].endswith("…")


def test_samples_of_trees_show_the_symbols_that_will_be_learned(tmp_path: Path) -> None:
    tree = tmp_path / "few.ptb"
    tree.write_text("(ROOT (S (NP (DT the) (NN cat)) (VP (VBZ sits))))\n" * 40, encoding="utf-8")
    watcher = Watcher()
    config = DataConfig.model_validate({"train": [str(tree)], "source_language": "en", "tree_keeps": ["tags"]})
    check_corpora(config, adapts=False, progress=watcher)
    assert watcher.notes[2].strip(" →") == "(S (NP DT NN )NP (VP VBZ )VP )S"


@pytest.mark.parametrize(
    ("columns", "fault"),
    [
        ((GERMAN, ENGLISH), r"a\.tsv: the sources are de and the targets en, .* Give --from de --to en"),
        (([str(n) for n in range(600)], ENGLISH, GERMAN), r"the source column counts its rows \(0, 1, 2 …\)"),
        (([f"s-{n:05d}" for n in range(600)], GERMAN), r"the source column counts its rows \(s-00000, s-00001"),
        ((ENGLISH, [str(n) for n in range(600)], GERMAN), "the target column counts its rows"),
        ((ENGLISH, ENGLISH), "the same text in 500 of the first 500 pairs, so there is no translation to de"),
        ((["\x01\x02 a\x03b"] * 9, ["\x04\x05"] * 9), "is not text: .* are control characters"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, columns: tuple[list[str], ...], fault: str) -> None:
    with pytest.raises(DataError, match=fault):
        check(tmp_path / "a.tsv", *columns)


@pytest.mark.parametrize(
    ("code", "offer"), [("english", "The code of English is en"), ("ENGLISH", "is en"), ("klingon", "two or three")]
)
def test_a_language_name_is_no_code(tmp_path: Path, code: str, offer: str) -> None:
    with pytest.raises(ConfigError, match=f"--from {code}: that is no language code.*{offer}"):
        check(tmp_path / "a.tsv", ENGLISH, GERMAN, source_language=code)


@pytest.mark.parametrize(
    ("columns", "settings", "warning"),
    [
        ((ENGLISH, GERMAN), {"target_language": "en"}, "Source and target are both English (en)"),
        ((ENGLISH, GERMAN), {"target_language": "fr"}, "the targets look like German (de), not French (fr)"),
        ((GERMAN, GERMAN), {"source_language": None}, "the same text in 500 of the first 500 pairs"),
        ((ENGLISH, [*ENGLISH[:150], *GERMAN[150:]]), {}, "the same text in 150 of the first 500 pairs"),
        ((ENGLISH[:5], GERMAN[:5]), {}, "5 pairs are too few to learn a language from"),
        ((ENGLISH[:99], GERMAN[:99]), {"adapts": True}, "99 pairs are too few"),
    ],
)
def test_what_is_unlikely_is_warned_of(
    tmp_path: Path, columns: tuple[list[str], ...], settings: dict[str, object], warning: str
) -> None:
    warnings = check(tmp_path / "a.tsv", *columns, **settings).warnings  # type: ignore[arg-type]
    assert any(warning in line for line in warnings), warnings


@pytest.mark.parametrize(
    ("columns", "settings"),
    [
        ((ENGLISH, GERMAN), {"source_language": None, "target_language": None}),
        ((ENGLISH, GERMAN), {"target_language": "hsb"}),  # a language that the detector does not know
        ((ENGLISH, GERMAN), {"source_language": "en-GB", "target_language": "de-AT"}),
        ((ENGLISH[:100], GERMAN[:100]), {"adapts": True}),
        (([str(n * 7 % 600) for n in range(600)], GERMAN), {"source_language": None}),  # numbers in words, say
    ],
)
def test_unusual_text_is_left_in_peace(
    tmp_path: Path, columns: tuple[list[str], ...], settings: dict[str, object]
) -> None:
    assert check(tmp_path / "a.tsv", *columns, **settings).warnings == []  # type: ignore[arg-type]


def test_little_text_proves_no_language() -> None:
    assert detect_language(["Guten Tag."]) is None


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 4])
def test_any_small_file_is_looked_at(tmp_path: Path, rows: int) -> None:
    for columns in itertools.product([ENGLISH[:rows], [""] * rows, ["7"] * rows], repeat=2):
        try:
            check(tmp_path / "a.tsv", *columns)
        except TransduceError as refusal:
            assert "is empty" in str(refusal)  # noqa: PT017
