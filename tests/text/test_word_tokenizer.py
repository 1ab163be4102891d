from pathlib import Path

import pytest

from transduce.errors import DataError, ModelError
from transduce.text.tokenizer_files import read_tokenizer
from transduce.text.vocabulary import FIRST_LEARNED
from transduce.text.word_tokenizer import HEADER, WordTokenizer

LINES = ["(NP XX )NP", "(S XX XX )S", "(NP XX )NP"]


def test_the_most_frequent_words_come_first_and_each_is_one_token() -> None:
    tokenizer = WordTokenizer.learn(LINES, vocabulary_size=1000)
    assert list(tokenizer.words) == ["XX", "(NP", ")NP", "(S", ")S"]
    assert tokenizer.encode("(S XX )S") == [FIRST_LEARNED + place for place in (3, 0, 4)]
    assert all(tokenizer.decode(tokenizer.encode(line)) == line for line in LINES)
    assert tokenizer.encode_all(LINES) == [tokenizer.encode(line) for line in LINES]
    assert tokenizer.encode("(S (VP") == [FIRST_LEARNED + 3, tokenizer.special.unknown]


def test_pieces_cover_the_text() -> None:
    tokenizer = WordTokenizer.learn(LINES, vocabulary_size=1000)
    text = " (S  XX )S "
    pieces = tokenizer.pieces(text)
    assert [(piece.text, text[piece.start : piece.end]) for piece in pieces] == [
        ("▁(S", " (S"),
        ("▁XX", "  XX"),
        ("▁)S", " )S "),
    ]


def test_a_file_is_read_by_its_header_and_is_the_same_again(tmp_path: Path) -> None:
    tokenizer = WordTokenizer.learn(LINES, vocabulary_size=1000)
    path = tmp_path / "tokenizer.model"
    path.write_bytes(tokenizer.to_bytes())
    again = read_tokenizer(path)
    assert isinstance(again, WordTokenizer)
    assert (again.words, again.fingerprint) == (tokenizer.words, tokenizer.fingerprint)


@pytest.mark.parametrize("words", [b"", b"a\na\n", b"a b\n", b"a\n\n", b"a", b"\xff\n", "\ufdd3\n".encode()])
def test_a_damaged_file_is_refused(words: bytes) -> None:
    with pytest.raises(ModelError, match=r"tokenizer\.model (is damaged|.* its words)"):
        WordTokenizer.from_bytes(HEADER + words)


def test_no_words_are_refused() -> None:
    with pytest.raises(DataError, match="every line is empty"):
        WordTokenizer.learn(["", " "], vocabulary_size=1000)
