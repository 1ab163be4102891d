import io
import os
import random
import subprocess
import sys

import pytest
import sentencepiece

from transduce.errors import ConfigError, DataError
from transduce.progress import Silent
from transduce.text.bpe_learning import count_words
from transduce.text.bpe_tokenizer import BpeTokenizer
from transduce.text.normalization import normalize
from transduce.text.placeholders import RESERVED

LEARN = """
import sys
from transduce.text.bpe_tokenizer import BpeTokenizer
lines = sys.stdin.buffer.read().decode("utf-8").split("\\n")
print(BpeTokenizer.learn(lines, vocabulary_size=500).fingerprint)
"""


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_learning_gives_the_same_bytes_in_every_process(
    tokenizer: BpeTokenizer, lines: list[str], hash_seed: str
) -> None:
    environment = {
        **os.environ,
        "PYTHONHASHSEED": hash_seed,
        "OMP_NUM_THREADS": hash_seed,
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    finished = subprocess.run(
        [sys.executable, "-c", LEARN],
        input="\n".join(lines).encode("utf-8"),
        env=environment,
        capture_output=True,
        check=True,
    )
    assert finished.stdout.decode().strip() == tokenizer.fingerprint
    assert finished.stderr == b""


def test_learning_from_counts_is_what_sentencepiece_learns_from_lines(
    tokenizer: BpeTokenizer, lines: list[str]
) -> None:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=map(normalize, lines),
        model_writer=model,
        model_type="bpe",
        vocab_size=500 - 16 - 4 + 3,  # without our symbols, and with its own three special pieces
        normalization_rule_name="identity",
        byte_fallback=True,
        character_coverage=1.0,
        minloglevel=2,
    )
    theirs = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    learned = [theirs.id_to_piece(token) for token in range(3 + 256, theirs.get_piece_size())]
    assert learned == [tokenizer.piece(token) for token in range(276, 500)]


def test_the_order_of_the_lines_does_not_matter(tokenizer: BpeTokenizer, lines: list[str]) -> None:
    shuffled = random.Random(3).sample(lines, len(lines))
    assert BpeTokenizer.learn(iter(shuffled), vocabulary_size=500).to_bytes() == tokenizer.to_bytes()


def test_frequent_words_become_one_piece(tokenizer: BpeTokenizer) -> None:
    assert [tokenizer.piece(token) for token in tokenizer.encode("Meine Schwester")] == ["▁Meine", "▁Schwester"]


def test_more_than_the_text_supports_gives_all_that_it_supports(lines: list[str]) -> None:
    class Notes(Silent):
        def __init__(self) -> None:
            self.notes: list[str] = []

        def note(self, message: str) -> None:
            self.notes.append(message)

    notes = Notes()
    largest = BpeTokenizer.learn(lines, vocabulary_size=37_000, progress=notes)
    assert largest.vocabulary_size < 37_000
    assert notes.notes == [f"The text supports a vocabulary of {largest.vocabulary_size}, not 37000."]
    # Every word that is not cut by a change of script is one piece.
    assert all(len(largest.encode(word)) == 1 for word in ("baker", "Schwester", "Kraków", "grüne", "Ärztin"))
    exactly = BpeTokenizer.learn(lines, vocabulary_size=largest.vocabulary_size)
    assert exactly.to_bytes() == largest.to_bytes()


@pytest.mark.parametrize(
    "lines", [["a"], ["one", "two", "three"], ["x" * 5], ["😀"], [f"a{RESERVED[0]}b"], ["<unk> </s>", "<s>"]]
)
@pytest.mark.parametrize("vocabulary_size", [278, 279, 300, 8000])
def test_tiny_corpora_are_enough(lines: list[str], vocabulary_size: int) -> None:
    tokenizer = BpeTokenizer.learn(lines, vocabulary_size=vocabulary_size)
    assert 276 < tokenizer.vocabulary_size <= vocabulary_size
    text = " ".join([*lines, "Whatever else: ☃"])
    assert tokenizer.decode(tokenizer.encode(text)) == normalize(text)


def test_an_alphabet_larger_than_the_vocabulary_leaves_rare_characters_to_bytes() -> None:
    common, rare = "the cat sat " * 50, "".join(map(chr, range(0x4E00, 0x4E00 + 2000)))
    tokenizer = BpeTokenizer.learn([common, rare], vocabulary_size=400)
    assert tokenizer.vocabulary_size == 400
    assert len(tokenizer.encode("the cat")) == 2
    assert tokenizer.decode(tokenizer.encode(rare)) == rare


def test_characters_that_make_sentencepiece_skip_or_abort_are_learned_around() -> None:
    lines = ["\u2585bars\u2585", "nul\x00 and\ttab", "a" * 70_000, "mark\u2581", "half \ud800"]
    tokenizer = BpeTokenizer.learn(lines, vocabulary_size=400)
    assert len(tokenizer.encode("bars")) == 1
    for line in lines:
        assert tokenizer.decode(tokenizer.encode(line)) == normalize(line)


def test_words_are_counted_in_bounded_memory() -> None:
    lines = (f"often {number} often" for number in range(1000))
    counts = count_words(lines, progress=Silent(), most=100)
    assert len(counts) <= 100
    assert counts["often"] == 2000


def test_an_endless_word_is_counted_in_parts() -> None:
    counts = count_words(["ab" * 50_000 + "!"], progress=Silent())
    assert counts == {"ab" * 32: 1562, "ab" * 16 + "!": 1}


@pytest.mark.parametrize("lines", [[], ["", " \n"], [RESERVED[0], "\x00"]])
def test_no_text_is_an_error(lines: list[str]) -> None:
    with pytest.raises(DataError, match="no text to learn a vocabulary from"):
        BpeTokenizer.learn(lines, vocabulary_size=1000)


@pytest.mark.parametrize("size", [-1, 0, 277, 300_000])
def test_an_impossible_size_is_an_error(size: int) -> None:
    with pytest.raises(ConfigError, match=f"vocabulary_size = {size} is not possible.*from 278 to 262144"):
        BpeTokenizer.learn(["a"], vocabulary_size=size)
