import random
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from transduce.errors import ConfigError, DataError, ModelError
from transduce.text.character_tokenizer import HEADER, LARGEST_FILE, CharacterTokenizer
from transduce.text.placeholders import RESERVED
from transduce.text.vocabulary import FIRST_LEARNED, frequent_characters


def characters_of(tokenizer: CharacterTokenizer) -> list[str]:
    return [tokenizer.piece(token) for token in range(FIRST_LEARNED, tokenizer.vocabulary_size)]


def test_the_most_frequent_characters_come_first_and_equals_in_the_order_of_unicode() -> None:
    tokenizer = CharacterTokenizer.learn(["aab bba", "cab", f"d{RESERVED[0]}"], vocabulary_size=1000)
    assert characters_of(tokenizer) == ["▁", "a", "b", "c", "d"]
    assert characters_of(CharacterTokenizer.learn(["ba"], vocabulary_size=1000)) == ["▁", "a", "b"]


def test_a_text_by_hand() -> None:
    tokenizer = CharacterTokenizer(["a", "b"])
    a, b, mark = FIRST_LEARNED + 1, FIRST_LEARNED + 2, FIRST_LEARNED
    assert tokenizer.encode("  ab\n b ") == [a, b, mark, b]
    assert tokenizer.encode(f"a{RESERVED[1]}") == [a, tokenizer.symbols[1]]
    assert tokenizer.encode("ä") == [20 + 0xC3, 20 + 0xA4]  # no piece of its own: its two bytes
    assert [tokenizer.piece(token) for token in (0, 1, 2, 3, 4, 20, mark)] == [
        *("<pad>", "<unk>", "<s>", "</s>", "⟨0⟩", "<0x00>", "▁"),
    ]
    text = " ab\u00a0\u00a0b ä"
    assert [(piece.text, text[piece.start : piece.end]) for piece in tokenizer.pieces(text)] == [
        *(("a", " a"), ("b", "b"), ("▁", "\u00a0\u00a0"), ("b", "b")),
        *(("▁", " "), ("<0xC3>", "ä"), ("<0xA4>", "ä")),
    ]


def test_the_vocabulary_keeps_to_its_size_and_leaves_rare_characters_to_the_bytes() -> None:
    tokenizer = CharacterTokenizer.learn(["aaabbc"], vocabulary_size=FIRST_LEARNED + 3)
    assert characters_of(tokenizer) == ["▁", "a", "b"]
    assert tokenizer.decode(tokenizer.encode("abc")) == "abc"
    counts = Counter({"a": 10_000_001, "b": 1, "c": 2})
    assert frequent_characters(counts, most=9) == ["a", "c"]  # b is less than one in ten million
    assert frequent_characters(counts, most=1) == ["a"]


def test_what_cannot_be_learned_is_refused() -> None:
    with pytest.raises(ConfigError, match="vocabulary_size = 277 is not possible"):
        CharacterTokenizer.learn(["a"], vocabulary_size=277)
    with pytest.raises(DataError, match="every line is empty"):
        CharacterTokenizer.learn(["", " \n"], vocabulary_size=1000)


def test_a_file_by_hand() -> None:
    content = "transduce characters 1\nab狗\n".encode()
    tokenizer = CharacterTokenizer.from_bytes(content)
    assert characters_of(tokenizer) == ["▁", "a", "b", "狗"]
    assert tokenizer.to_bytes() == content


@given(st.text(st.characters(exclude_categories=()), max_size=6))
@example("a\u2581")
@example("a\ufdd3")
@example("aa")
@example("a\n")
@example("")
def test_a_file_of_any_characters_is_refused_or_read_as_it_is(characters: str) -> None:
    content = HEADER + characters.encode("utf-8", "surrogatepass") + b"\n"
    try:
        tokenizer = CharacterTokenizer.from_bytes(content)
    except ModelError:
        return
    assert characters_of(tokenizer) == ["▁", *characters]
    assert [tokenizer.decode(tokenizer.encode(own)) for own in characters] == list(characters)


@pytest.mark.parametrize("characters", ["", "aa", "a b", "a\n", "a▁", "a\ufdd3", "a\x00", "\xad"])
def test_a_file_with_unsound_characters_is_refused(characters: str) -> None:
    with pytest.raises(ModelError, match=r"tokenizer\.model is damaged"):
        CharacterTokenizer.from_bytes(HEADER + characters.encode() + b"\n")


def test_a_file_that_is_too_large_is_refused_before_it_is_looked_at() -> None:
    with pytest.raises(ModelError, match="a tokenizer has at most"):
        CharacterTokenizer.from_bytes(HEADER + b"\xff" * LARGEST_FILE)


def test_a_damaged_file_is_refused_or_whole(lines: list[str]) -> None:
    content, draw, refused = CharacterTokenizer.learn(lines, vocabulary_size=400).to_bytes(), random.Random(7), 0
    for _ in range(2000):
        damaged, at = bytearray(content), draw.randrange(len(content))
        if draw.random() < 0.5:
            damaged[at] ^= 1 << draw.randrange(8)
        elif draw.random() < 0.5:
            del damaged[at : at + draw.choice([1, 3, 40])]
        else:
            damaged[at:at] = draw.randbytes(draw.choice([1, 2, 5]))
        try:
            tokenizer = CharacterTokenizer.from_bytes(bytes(damaged))
        except ModelError:
            refused += 1
            continue
        assert tokenizer.to_bytes() == damaged
        assert tokenizer.decode(tokenizer.encode("Tür ☃.")) == "Tür ☃."
    assert refused > 1000  # a changed letter makes another sound vocabulary; the manifest of a model notices
