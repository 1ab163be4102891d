"""Two tokenizers of one model, on disk and at work."""

from dataclasses import replace
from pathlib import Path

import pytest

from transduce.errors import ModelError
from transduce.special_tokens import SpecialTokens
from transduce.text.bpe_tokenizer import BpeTokenizer
from transduce.text.character_tokenizer import CharacterTokenizer
from transduce.text.tokenizer_files import read_tokenizer
from transduce.text.tokenizer_pair import TokenizerPair


class WithoutSymbols(CharacterTokenizer):
    """A vocabulary that has no symbols for placeholders, as those of other programs."""

    @property
    def symbols(self) -> range:
        return range(0)


class PaddedWithTheLastId(CharacterTokenizer):
    """A vocabulary whose padding is its last id."""

    @property
    def special(self) -> SpecialTokens:
        return replace(super().special, padding=self.vocabulary_size - 1)


@pytest.fixture
def characters(lines: list[str]) -> CharacterTokenizer:
    return CharacterTokenizer.learn(lines, vocabulary_size=400)


def test_each_side_has_its_own_ids_and_end(tokenizer: BpeTokenizer, characters: CharacterTokenizer) -> None:
    pair = TokenizerPair(characters, tokenizer)
    assert pair.encode_source("Tür") == [*characters.encode("Tür"), 3]
    assert pair.encode_sources(["Tür", ""]) == [[*characters.encode("Tür"), 3], [3]]
    assert pair.encode_targets(["Tür"]) == [[*tokenizer.encode("Tür"), 3]]
    assert (pair.vocabulary_size, pair.source_vocabulary_size) == (500, characters.vocabulary_size)
    assert pair.reversed() == TokenizerPair(tokenizer, characters)


def test_sources_may_have_no_end(characters: CharacterTokenizer) -> None:
    pair = TokenizerPair.shared(characters, source_end=False)
    assert pair.encode_source("Tür") == characters.encode("Tür")
    assert pair.encode_sources(["Tür"]) == [characters.encode("Tür")]
    assert pair.encode_targets(["Tür"]) == [[*characters.encode("Tür"), 3]]


def test_a_vocabulary_is_one_if_every_id_is_the_same_piece(tokenizer: BpeTokenizer, lines: list[str]) -> None:
    again = BpeTokenizer.from_bytes(tokenizer.to_bytes())
    other = BpeTokenizer.learn(lines[:20], vocabulary_size=310)
    same_size = BpeTokenizer.learn(lines[20:], vocabulary_size=other.vocabulary_size)
    assert same_size.vocabulary_size == other.vocabulary_size
    assert TokenizerPair(tokenizer, again).has_one_vocabulary
    assert not TokenizerPair(other, same_size).has_one_vocabulary
    assert TokenizerPair(tokenizer, again).source_vocabulary_size is None


def test_fingerprints_tell_pairs_apart(tokenizer: BpeTokenizer, characters: CharacterTokenizer) -> None:
    pairs = [
        TokenizerPair.shared(tokenizer),
        TokenizerPair.shared(tokenizer, source_end=False),
        TokenizerPair.shared(characters),
        TokenizerPair(tokenizer, characters),
        TokenizerPair(characters, tokenizer),
    ]
    assert len({pair.fingerprint for pair in pairs}) == len(pairs)
    assert pairs[0].fingerprint == tokenizer.fingerprint


def test_two_padding_ids_are_refused(characters: CharacterTokenizer) -> None:
    other = PaddedWithTheLastId(["a", "b"])
    with pytest.raises(ModelError, match="The padding token has id 0 in the source vocabulary and 278 in the target"):
        TokenizerPair(characters, other)


def test_what_was_written_is_read(tmp_path: Path, tokenizer: BpeTokenizer, characters: CharacterTokenizer) -> None:
    (tmp_path / "a").write_bytes(tokenizer.to_bytes())
    (tmp_path / "b").write_bytes(characters.to_bytes())
    assert [(read_tokenizer(tmp_path / name).kind) for name in "ab"] == ["bpe", "characters"]
    pair = TokenizerPair.read(tmp_path / "a", source=tmp_path / "b", source_end=False)
    assert pair.fingerprint == TokenizerPair(characters, tokenizer, source_end=False).fingerprint
    assert TokenizerPair.read(tmp_path / "b").is_shared


def test_a_file_too_large_for_any_tokenizer_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "huge.model").open("wb") as file:
        file.truncate(1 << 40)  # a terabyte of nothing, which takes no room on the disk
    with pytest.raises(ModelError, match=r"huge\.model has 1,099,511,627,776 bytes; a tokenizer has at most"):
        read_tokenizer(tmp_path / "huge.model")


def test_placeholders_are_symbols_only_if_both_vocabularies_have_them(characters: CharacterTokenizer) -> None:
    without = WithoutSymbols(["a", "b"])
    text = "a {b} a"
    assert TokenizerPair.shared(characters).protect(text).originals == ("{b}",)
    for pair in (TokenizerPair(characters, without), TokenizerPair(without, characters)):
        protected = pair.protect(text)
        assert (protected.text, protected.originals, protected.unprotected) == (text, (), ("{b}",))
        assert pair.protect_pair(text, text).source == text
