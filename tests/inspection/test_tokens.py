"""Tokens know their share of the text and their word."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from transduce.inspection.tokens import tokens_of_ids, tokens_of_text, words_of
from transduce.special_tokens import OWN_SPECIAL_TOKENS
from transduce.text.bpe_tokenizer import BpeTokenizer
from transduce.text.placeholders import protect, restore

EOS = OWN_SPECIAL_TOKENS.end

TOKENIZER = BpeTokenizer.learn(["the dog runs, doesn't it?", "der Hund läuft über 狗跑"] * 3, vocabulary_size=340)
IDS = st.lists(st.integers(0, TOKENIZER.vocabulary_size - 1), max_size=12)
ORIGINALS = ("{name}", "https://a.example/b")


def check_spans(text: str, spans: list[tuple[int, int]]) -> None:
    assert all(0 <= start <= end <= len(text) for start, end in spans)
    assert all(before[0] <= after[0] and before[1] <= after[1] for before, after in pairwise(spans))
    covered = {place for start, end in spans for place in range(start, end)}
    assert covered == set(range(len(text)))


@given(st.text(max_size=30))
def test_spans_of_a_given_text_cover_it_in_order(text: str) -> None:
    protected = protect(text)
    tokens = tokens_of_text(TOKENIZER, protected, original=text)
    assert [token.id for token in tokens] == [*TOKENIZER.encode(protected.text), EOS]
    if len(tokens) > 1:
        check_spans(text, [(token.start, token.end) for token in tokens])


@given(IDS)
def test_spans_of_any_ids_cover_the_text_that_they_decode_to(ids: list[int]) -> None:
    text, tokens = tokens_of_ids(TOKENIZER, ids, originals=ORIGINALS)
    assert text == restore(TOKENIZER.decode(ids), ORIGINALS)
    assert [token.id for token in tokens] == ids
    check_spans(text, [(token.start, token.end) for token in tokens])


@given(st.text(alphabet="the dogrunläü?,' 狗跑é", max_size=30))
def test_found_and_given_tokens_agree_where_the_ids_do(text: str) -> None:
    ids = [*TOKENIZER.encode(text), EOS]
    written, found = tokens_of_ids(TOKENIZER, ids, originals=())
    given_tokens = tokens_of_text(TOKENIZER, protect(written), original=written)
    assert [(t.id, t.word) for t in found] == [(t.id, t.word) for t in given_tokens]
    # A space belongs to the word after it in both, but a mark that stands alone may take it alone.
    assert [t.end for t in found if t.text != "▁"] == [t.end for t in given_tokens if t.text != "▁"]


def test_a_placeholder_shows_what_it_stands_for() -> None:
    text = "the {name} runs"
    tokens = tokens_of_text(TOKENIZER, protect(text), original=text)
    (placeholder,) = [token for token in tokens if token.text == "{name}"]
    assert text[placeholder.start : placeholder.end].strip() == "{name}"
    assert tokens[-1].text == "<EOS>"
    assert tokens[-1].word is None


def words(text: str) -> list[int | None]:
    return words_of(TOKENIZER, TOKENIZER.encode(text))


def test_words_part_at_spaces_and_punctuation_but_not_within() -> None:
    pieces = TOKENIZER.pieces("the dogs")
    assert len(pieces) > 2
    assert words("the dogs") == [0, *[1] * (len(pieces) - 1)]
    assert words("runs?")[-1] == 1
    assert [piece.text for piece in TOKENIZER.pieces("跑狗")] == ["▁", "跑", "狗"]
    assert words("跑狗") == [0, 0, 1]
    assert words_of(TOKENIZER, [EOS]) == [None]
    # A character spelled in bytes is one word.
    assert set(words("🜚")) == {0}
