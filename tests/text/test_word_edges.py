"""Edges of words by what tokens add to an output."""

import re

import pytest

from transduce.special_tokens import OWN_SPECIAL_TOKENS
from transduce.text.bpe_tokenizer import BpeTokenizer
from transduce.text.word_edges import WordEdges, needs_edge

BOS = OWN_SPECIAL_TOKENS.start
EOS = OWN_SPECIAL_TOKENS.end
PAD = OWN_SPECIAL_TOKENS.padding
UNK = OWN_SPECIAL_TOKENS.unknown


@pytest.mark.parametrize(
    ("written", "is_open_after", "is_closed_by"),
    [
        ("▁Hund", False, True),
        ("s", False, False),
        ("▁„", True, True),
        ("▁", True, True),
        (".", True, True),
        ("-s", False, True),
        ("7", False, False),
        ("_", False, False),
        ("\u0301", False, False),  # an accent changes the letter before it
        ("\ufdd0", True, True),  # a placeholder
    ],
)
def test_edges_of_tokens_by_hand(written: str, is_open_after: bool, is_closed_by: bool) -> None:
    edges = WordEdges.of([b"", b"", b"", b"", written.encode("utf-8"), b"\xc3", b","], OWN_SPECIAL_TOKENS)
    assert (edges.is_open_after[4], edges.is_closed_by[4]) == (is_open_after, is_closed_by)
    assert (edges.is_open_after[5], edges.is_closed_by[5]) == (False, False)  # a part of a character
    assert (edges.is_open_after[6], edges.is_closed_by[6]) == (True, True)
    assert [edges.is_open_after[token] for token in (PAD, UNK, BOS, EOS)] == [False, False, True, False]
    assert [edges.is_closed_by[token] for token in (PAD, UNK, BOS, EOS)] == [False, False, False, True]


def test_a_word_stays_whole_in_the_text_exactly_if_the_token_after_it_closes_it(tokenizer: BpeTokenizer) -> None:
    word = tokenizer.encode("Tür")
    letters = range(tokenizer.vocabulary_size - 200, tokenizer.vocabulary_size)
    for token in letters:
        stands = re.search(r"Tür(?!\w)", tokenizer.decode([*word, token])) is not None
        assert stands == tokenizer.word_edges.is_closed_by[token], tokenizer.piece(token)


def test_symbols_that_stand_for_nothing_part_nothing(tokenizer: BpeTokenizer) -> None:
    edges = tokenizer.word_edges.without(tokenizer.symbols[3:])
    assert [edges.is_closed_by[4 + n] for n in range(16)] == [True] * 3 + [False] * 13
    assert [edges.is_open_after[4 + n] for n in range(16)] == [True] * 3 + [False] * 13
    assert edges.is_closed_by[20:] == tokenizer.word_edges.is_closed_by[20:]
    assert edges.is_closed_by[:4] == tokenizer.word_edges.is_closed_by[:4]


def test_a_text_inside_has_no_mark(tokenizer: BpeTokenizer) -> None:
    before = tokenizer.encode("«")
    assert tokenizer.decode([*before, *tokenizer.encode_inside("grüne Tür")]) == "«grüne Tür"
    assert tokenizer.decode([*before, *tokenizer.encode("grüne Tür")]) == "« grüne Tür"


def test_terms_need_edges_where_words_are_parted_by_spaces() -> None:
    assert [needs_edge(character) for character in "aß7+„犬か"] == [True, True, True, False, False, False, False]
