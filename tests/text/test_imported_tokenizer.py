"""Tokenizers of imported models. sentencepiece, which trained the files, is the judge."""

from itertools import pairwise
from typing import NamedTuple

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st
from tests.text.foreign_pieces import KINDS, imported, trained_pieces

from transduce.errors import ModelError
from transduce.text.characters_map import CharactersMap
from transduce.text.imported_tokenizer import ImportedTokenizer
from transduce.text.imported_vocabulary import ImportedVocabulary
from transduce.text.normalization import normalize
from transduce.text.piece_cutting import PieceCutter
from transduce.text.piece_file import read_piece_file

ODD = (
    "", " ", "  two  spaces ", "tab\there", "ﬁne ½ ＡＢＣ", "e\u0301 Å", "...... 000000 aaaaaaa ------", "日本語です",
    "\x1f", "\u00a8x", "▁mark ▁▁", ">>deu<< the other", "then%sthe", "\u3000wide", "zero\u200bwidth", "x" * 700,
    "👩‍🚀👩‍🚀",
)  # fmt: skip


class Foreign(NamedTuple):
    """A piece file in both programs."""

    judge: sentencepiece.SentencePieceProcessor
    cutter: PieceCutter


@pytest.fixture(scope="session", params=KINDS)
def foreign(request: pytest.FixtureRequest, lines: list[str]) -> Foreign:
    content = trained_pieces(lines, request.param)
    return Foreign(
        sentencepiece.SentencePieceProcessor(model_proto=content),
        PieceCutter(read_piece_file(content, name="x"), name="x"),
    )


def test_pieces_are_those_of_sentencepiece(foreign: Foreign, lines: list[str]) -> None:
    for text in (*lines[:1500], *ODD, " ".join(lines[:40])):
        assert foreign.cutter.pieces(text) == foreign.judge.encode(text, out_type=str), text


@given(text=st.lists(st.one_of(st.sampled_from(ODD), st.text(max_size=5))).map("".join))
def test_pieces_of_any_text_are_those_of_sentencepiece(foreign: Foreign, text: str) -> None:
    assert foreign.cutter.pieces(text) == foreign.judge.encode(text, out_type=str)


@given(text=st.text(st.characters(exclude_categories=()), max_size=40))
def test_spans_cover_the_text_and_decoded_text_is_normal(lines: list[str], text: str) -> None:
    tokenizer = _TOKENIZERS.setdefault("one", imported(trained_pieces(lines)))
    pieces = tokenizer.pieces(text)
    assert [piece.id for piece in pieces] == tokenizer.encode(text)
    if pieces:
        assert (pieces[0].start, pieces[-1].end) == (0, len(text))
    assert all(left.start <= right.start <= left.end <= right.end for left, right in pairwise(pieces))
    decoded = tokenizer.decode(tokenizer.encode(text))
    assert normalize(decoded) == decoded


_TOKENIZERS: dict[str, ImportedTokenizer] = {}


def test_vocabulary_gives_the_ids_and_the_file_keeps_everything(lines: list[str]) -> None:
    tokenizer = imported(trained_pieces(lines), tag=">>deu<<", extra=[">>deu<<", ">>fra<<"])
    ids = tokenizer.encode(lines[0])
    assert tokenizer.piece(ids[0]) == ">>deu<<"
    assert tokenizer.encode(f">>fra<< {lines[0]}") == [tokenizer.vocabulary.pieces.index(">>fra<<"), *ids[1:]]
    assert tokenizer.encode_inside("xyz")[0] != tokenizer.encode("xyz")[1]
    assert tokenizer.decode(ids) == normalize(lines[0])
    assert tokenizer.encode("") == []
    again = ImportedTokenizer.from_bytes(tokenizer.to_bytes())
    assert (again.fingerprint, again.encode(lines[0])) == (tokenizer.fingerprint, ids)


def test_codes_join_the_best_pair_first() -> None:
    """By hand: "lower" is l o w e r</w>; "e r</w>" first, then "l o", then "lo w"; "lo" has no code."""
    codes = (("e", "r</w>"), ("l", "o"), ("lo", "w"), ("w", "er</w>"))
    pieces = ("<s>", "<pad>", "</s>", "<unk>", "low@@", "er", "l@@", "o", "a")
    vocabulary = ImportedVocabulary(pieces=pieces, padding=1, unknown=3, start=2, end=2, codes=codes)
    tokenizer = ImportedTokenizer(vocabulary)
    assert [tokenizer.piece(token) for token in tokenizer.encode("lower lo x")] == ["low@@", "er", "l@@", "o", "<unk>"]
    assert tokenizer.decode(tokenizer.encode("lower a")) == "lower a"


def test_a_characters_map_beyond_all_sense_is_refused_before_it_takes_memory() -> None:
    with pytest.raises(ModelError, match="at most 4,194,304 are read"):
        CharactersMap((5 << 20).to_bytes(4, "little") + bytes(5 << 20), name="x")


@pytest.mark.parametrize("damage", ["padding", "twice", "json", "pieces"])
def test_a_damaged_file_is_refused(lines: list[str], damage: str) -> None:
    content = imported(trained_pieces(lines)).to_bytes()
    broken = {
        "padding": content.replace(b'"unknown": 1', b'"unknown": -7'),
        "twice": content.replace(b'"</s>", "<unk>"', b'"<unk>", "<unk>"'),
        "json": content.replace(b'"end"', b'"eval"'),
        "pieces": content[:-9000],
    }[damage]
    assert broken != content
    with pytest.raises(ModelError, match="damaged"):
        ImportedTokenizer.from_bytes(broken)
