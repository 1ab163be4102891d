"""Learning a byte-pair vocabulary from text, shared by source and target (section 5.1).

Byte-pair encoding looks at words and how often they occur, at nothing else. So the corpus is read once as a stream, its
words are counted here, and sentencepiece learns from the counts. That uses every line, needs memory for the different
words only, and gives the same vocabulary for the same lines on any number of cores.

Departures: a word is cut every 64 characters, for sentencepiece aborts on one of 65,536; once there are more than two
million different words, the rarer half of them is forgotten; and a character so rare that it makes up less than one in
ten million, or for which there is no room, is left to the bytes.
"""

import io
from collections import Counter
from collections.abc import Iterable, Iterator

import sentencepiece

from transduce.errors import ConfigError, DataError
from transduce.progress import Progress
from transduce.text.normalization import WORD_MARK, normalize
from transduce.text.placeholders import RESERVED
from transduce.text.vocabulary import BOS, EOS, FIRST_LEARNED, LARGEST_VOCABULARY, LONGEST_PIECE, PAD, UNK

LONGEST_WORD = 64  # characters
MOST_WORDS = 2_000_000
RAREST_CHARACTER = 1e-7  # of all characters
SMALLEST_VOCABULARY = FIRST_LEARNED + 2  # the mark of a word's beginning and one letter

# Symbols are no part of words; and the trainer, which keeps U+2585 for itself, would skip a word that holds it.
_WITHOUT_SYMBOLS = str.maketrans(dict.fromkeys([*RESERVED, "\u2585"], " "))


def learn_pieces(lines: Iterable[str], *, vocabulary_size: int, progress: Progress) -> list[str]:
    """Return the learned pieces of a vocabulary of `vocabulary_size` ids, or of the largest that the lines support."""
    if not SMALLEST_VOCABULARY <= vocabulary_size <= LARGEST_VOCABULARY:
        raise ConfigError(
            f"vocabulary_size = {vocabulary_size} is not possible: {FIRST_LEARNED} ids are special, reserved or bytes. "
            f"Choose from {SMALLEST_VOCABULARY} to {LARGEST_VOCABULARY}; some thousands are usual."
        )
    counts = count_words(lines, progress=progress)
    if not counts:
        raise DataError("There is no text to learn a vocabulary from: every line is empty. Check the training files.")
    alphabet = _alphabet(counts, room=vocabulary_size - FIRST_LEARNED)
    with progress.stage("learning the vocabulary"):
        pieces = _train(_as_lines(counts, alphabet), vocabulary_size=vocabulary_size)
    if FIRST_LEARNED + len(pieces) < vocabulary_size:
        progress.note(f"The text supports a vocabulary of {FIRST_LEARNED + len(pieces)}, not {vocabulary_size}.")
    return pieces


def count_words(lines: Iterable[str], *, progress: Progress, most: int = MOST_WORDS) -> Counter[str]:
    """Count the words of `lines`, forgetting the rarest whenever there are more than `most` different ones."""
    counts: Counter[str] = Counter()
    with progress.stage("counting words", unit="lines") as stage:
        for number, line in enumerate(lines, start=1):
            words = normalize(line).translate(_WITHOUT_SYMBOLS).split()
            if any(len(word) > LONGEST_WORD for word in words):
                words = [part for word in words for part in _parts(word)]
            counts.update(words)
            if len(counts) > most:
                counts = _without_the_rarest(counts, at_most=most // 2)
            if number % 1000 == 0:
                stage.advance(1000)
    return counts


def _parts(word: str) -> Iterator[str]:
    return (word[start : start + LONGEST_WORD] for start in range(0, len(word), LONGEST_WORD))


def _without_the_rarest(counts: Counter[str], *, at_most: int) -> Counter[str]:
    return Counter(dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:at_most]))


def _alphabet(counts: Counter[str], *, room: int) -> set[str]:
    """Return the characters that become pieces: the most frequent ones, in at most half of the `room`."""
    frequency: Counter[str] = Counter()
    for word, count in counts.items():
        for character in word:
            frequency[character] += count
    enough = frequency.total() * RAREST_CHARACTER
    ranked = sorted(frequency, key=lambda character: (-frequency[character], character))
    return {character for character in ranked[: max(1, room // 2)] if frequency[character] >= enough}


def _as_lines(counts: Counter[str], alphabet: set[str]) -> Iterator[str]:
    """Write each word with its count as sentencepiece's trainer reads them, most frequent first."""
    for word, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        known = word if alphabet.issuperset(word) else "".join(char if char in alphabet else " " for char in word)
        for part in known.split():
            yield f"{part}\t{count}"


def _train(lines: Iterable[str], *, vocabulary_size: int) -> list[str]:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        model_type="bpe",
        vocab_size=vocabulary_size,
        hard_vocab_limit=False,
        input_format="tsv",
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        byte_fallback=True,
        character_coverage=1.0,
        max_sentencepiece_length=LONGEST_PIECE,
        pad_id=PAD,
        unk_id=UNK,
        bos_id=BOS,
        eos_id=EOS,
        user_defined_symbols=list(RESERVED),
        num_threads=1,
        minloglevel=2,
    )
    learned = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    pieces = [learned.id_to_piece(token) for token in range(FIRST_LEARNED, learned.get_piece_size())]
    assert WORD_MARK in pieces
    return pieces
