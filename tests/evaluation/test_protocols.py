"""The paper's protocol and that of Multi30k, by values worked out by hand and by the published files."""

import gzip
import math
from importlib.metadata import version
from pathlib import Path

import pytest

from transduce.errors import ConfigError
from transduce.evaluation.protocols import lowercased, paper, protocol_named, split_compounds
from transduce.evaluation.scores import score


def test_the_papers_protocol_gives_the_value_worked_out_by_hand() -> None:
    """paper.md 9.1: matches 13, 10, 8, 6 of 14, 12, 10, 8; 14 tokens against 16."""
    references = ["the cat is on the mat today .", "there is a rich-text format here"]
    hypotheses = ["the cat is on the mat .", "there is a rich-text form"]
    (bleu,) = score(hypotheses, [references], protocol=paper("en"))
    by_hand = 100 * math.exp(1 - 16 / 14) * (13 / 14 * 10 / 12 * 8 / 10 * 6 / 8) ** 0.25
    assert bleu.value == pytest.approx(by_hand, abs=1e-9)
    assert f"{bleu.value:.4f}" == "71.5574"
    assert bleu.name == "BLEU (paper)"
    assert f"|case:mixed|eff:no|tok:moses-en-atat-{version('sacremoses')}|smooth:none|" in bleu.signature


def test_compounds_are_split_as_the_authors_expression_does() -> None:
    assert split_compounds("rich-text format") == "rich ##AT##-##AT## text format"
    assert split_compounds("a - b") == "a - b"
    assert split_compounds("-5 x-") == "-5 x-"
    assert split_compounds("state-of-the-art") == "state ##AT##-##AT## of ##AT##-##AT## the ##AT##-##AT## art"
    # A match takes the character behind the hyphen with it, so of parts one letter long every second is missed.
    assert split_compounds("a-b-c") == "a ##AT##-##AT## b-c"


def test_the_papers_protocol_keeps_case_and_treats_both_sides_alike() -> None:
    prepare = paper("de").prepare
    assert prepare("Der „Rich-Text“ kostet 1.100,50 €.") == "Der „ Rich ##AT##-##AT## Text &quot; kostet 1.100,50 € ."
    assert prepare("Es geht’s gut…") == "Es geht &apos; s gut ..."
    assert prepare("Herr Dr. Schmidt kam z.B. um 5 Uhr.") == "Herr Dr. Schmidt kam z.B. um 5 Uhr ."


def test_unsmoothed_bleu_is_zero_without_a_common_four_gram() -> None:
    for protocol in (paper("de"), lowercased("de")):
        (bleu,) = score(["ein Hund läuft da draußen"], [["ein Hund läuft hier draußen"]], protocol=protocol)
        assert bleu.value == 0


@pytest.mark.parametrize(
    ("language", "raw", "expected"),
    [
        ("en", "A Man's “BIG” dog, isn't it?", "a man &apos;s &quot; big &quot; dog , isn &apos;t it ?"),
        ("en", "A well-known & old T-shirt – torn", "a well-known &amp; old t-shirt - torn"),
        ("de", "Ein Mädchen in einem T-Shirt; es lächelt.", "ein mädchen in einem t-shirt ; es lächelt ."),
        ("de", "„Ja“, sagt er", "&quot; ja &quot; , sagt er"),
        ("de", "", ""),
    ],
)
def test_the_lowercased_protocol_on_lines_worked_out_by_hand(language: str, raw: str, expected: str) -> None:
    assert lowercased(language).prepare(raw) == expected


def test_the_lowercased_protocol_says_so_in_its_signature() -> None:
    (bleu,) = score(["EIN Hund läuft hier draußen"], [["ein hund läuft hier draußen"]], protocol=lowercased("de"))
    assert bleu.value == pytest.approx(100)
    assert f"|case:lc|eff:no|tok:moses-de-norm-{version('sacremoses')}|smooth:none|" in bleu.signature


@pytest.mark.parametrize("language", ["en", "de"])
def test_the_lowercased_protocol_reproduces_the_published_files_line_by_line(shared_data: Path, language: str) -> None:
    raw = read_gzip(shared_data / "multi30k" / f"test_2016_flickr.{language}.gz")
    published = read_gzip(shared_data / "multi30k" / "tok" / f"test_2016_flickr.lc.norm.tok.{language}.gz")
    assert len(raw) == len(published) == 1000
    assert lowercased(language).prepared(raw) == published


def read_gzip(path: Path) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        return file.read().removesuffix("\n").split("\n")


def test_a_protocol_that_needs_the_language_asks_for_it() -> None:
    with pytest.raises(ConfigError, match=r"protocol paper tokenises by the rules of the target language.*--to de"):
        protocol_named("paper", target_language=None)
    with pytest.raises(ConfigError, match="protocol lowercased"):
        protocol_named("lowercased", target_language="")


def test_an_unknown_protocol_is_answered_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match=r"There is no protocol 'bleu'\. There are: detokenised, paper, lowercased"):
        protocol_named("bleu", target_language="de")
