"""The laws of `text/tokenizer.py`, for every tokenizer that transduce can learn."""

import hashlib
from itertools import pairwise
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.progress import Silent
from transduce.text.normalization import normalize
from transduce.text.placeholders import RESERVED
from transduce.text.tokenizer import LearnedKind, Tokenizer
from transduce.text.tokenizer_files import learn_tokenizer

FAMILIAR = ("The", " baker", "öffnet", " die grüne", "日本語", " ", "  ", "\n", "e\u0301", "\u2581", "\ud800", "👩‍🚀")
META = ("<s>", "</s>", "<unk>", "<pad>", "<0x0A>", *RESERVED[:3])
ANY_CHARACTER = st.characters(exclude_categories=())
ANY_TEXT = st.lists(st.one_of(st.sampled_from(FAMILIAR + META), st.text(ANY_CHARACTER, max_size=4))).map("".join)


@pytest.fixture(scope="session", params=get_args(LearnedKind))
def any_tokenizer(request: pytest.FixtureRequest, lines: list[str]) -> Tokenizer:
    return learn_tokenizer(request.param, lines, vocabulary_size=420, progress=Silent())


@given(text=ANY_TEXT)
def test_decoding_undoes_encoding(any_tokenizer: Tokenizer, text: str) -> None:
    ids = any_tokenizer.encode(text)
    assert any_tokenizer.decode(ids) == normalize(text)
    assert all(0 <= token < any_tokenizer.vocabulary_size for token in ids)
    assert not set(ids) & set(any_tokenizer.special.ids)
    assert any_tokenizer.encode_all([text, "", text]) == [ids, [], ids]


@given(data=st.data())
def test_decoded_ids_are_normalised_text_of_the_bytes_written(any_tokenizer: Tokenizer, data: st.DataObject) -> None:
    ids = data.draw(st.lists(st.integers(0, any_tokenizer.vocabulary_size - 1)))
    text = any_tokenizer.decode(ids)
    written = b"".join(map(any_tokenizer.written, ids)).decode("utf-8", "replace")
    assert text == normalize(text) == normalize(written.replace("▁", " "))
    assert all(any_tokenizer.written(token) == b"" for token in any_tokenizer.special.ids)


@given(text=ANY_TEXT)
def test_spans_tile_the_text(any_tokenizer: Tokenizer, text: str) -> None:
    pieces = any_tokenizer.pieces(text)
    assert [piece.id for piece in pieces] == any_tokenizer.encode(text)
    assert [piece.text for piece in pieces] == [any_tokenizer.piece(piece.id) for piece in pieces]
    if pieces:
        assert (pieces[0].start, pieces[-1].end) == (0, len(text))
    for left, right in pairwise(pieces):
        assert left.start <= right.start <= left.end <= right.end
        assert right.start < right.end


def test_a_symbol_is_one_token_and_written_as_itself(any_tokenizer: Tokenizer) -> None:
    assert len(any_tokenizer.symbols) == len(RESERVED)
    for token, symbol in zip(any_tokenizer.symbols, RESERVED, strict=True):
        assert any_tokenizer.encode(f"The{symbol}{symbol}baker {symbol}.").count(token) == 3
        assert any_tokenizer.written(token) == symbol.encode("utf-8")


def test_a_text_inside_is_written_without_a_space(any_tokenizer: Tokenizer) -> None:
    inside = any_tokenizer.encode_inside("grüne Tür")
    assert any_tokenizer.decode([*any_tokenizer.encode("«"), *inside]) == "«grüne Tür"


def test_the_fingerprint_is_that_of_the_file_and_changes_with_the_vocabulary(
    any_tokenizer: Tokenizer, lines: list[str]
) -> None:
    assert any_tokenizer.fingerprint == hashlib.sha256(any_tokenizer.to_bytes()).hexdigest()
    assert any_tokenizer.kind != "imported"
    assert any_tokenizer.kind != "byte_pieces"
    assert any_tokenizer.kind != "word_pieces"
    smaller = learn_tokenizer(any_tokenizer.kind, lines, vocabulary_size=300, progress=Silent())
    assert smaller.fingerprint != any_tokenizer.fingerprint


def test_word_edges_follow_from_the_text(any_tokenizer: Tokenizer) -> None:
    edges, end = any_tokenizer.word_edges, any_tokenizer.special.end
    assert len(edges.is_closed_by) == len(edges.is_open_after) == any_tokenizer.vocabulary_size
    assert edges.is_closed_by[end]
    (letter,) = any_tokenizer.encode_inside("e")
    assert not edges.is_closed_by[letter]
    assert not edges.is_open_after[letter]
