"""Learning a byte-pair vocabulary from text (section 5.1).

Byte-pair encoding depends on words and their counts alone. So we read the corpus once as a stream, count its words, and
let sentencepiece learn from the counts. This uses every line, needs memory for the different words only, and gives the
same vocabulary for the same lines on any number of cores.

Departures: a word is cut every 64 characters, because sentencepiece aborts on one of 65,536. Above two million
different words, the rarer half is dropped. A character gets no piece and is spelled in bytes if it is rarer than one in
ten million characters of the text, or if the vocabulary has no room for it.
"""

import io
from collections import Counter
from collections.abc import Iterable, Iterator

import sentencepiece

from transduce.errors import DataError
from transduce.progress import Progress
from transduce.special_tokens import OWN_SPECIAL_TOKENS
from transduce.text.normalization import WORD_MARK, normalize
from transduce.text.placeholders import RESERVED
from transduce.text.sentencepiece_file import LONGEST_PIECE
from transduce.text.vocabulary import FIRST_LEARNED, frequent_characters, require_possible_size

LONGEST_WORD = 64  # characters
MOST_WORDS = 2_000_000

# Symbols are not part of words. The trainer reserves U+2585 and would skip a word that contains it.
_WITHOUT_SYMBOLS = str.maketrans(dict.fromkeys([*RESERVED, "\u2585"], " "))


def learn_pieces(lines: Iterable[str], *, vocabulary_size: int, progress: Progress) -> list[str]:
    """Return the learned pieces of a vocabulary of `vocabulary_size` ids, or of the largest that the lines support."""
    require_possible_size(vocabulary_size)
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
    """Count the words of `lines`; when there are more than `most` different ones, drop the rarest half."""
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
    return set(frequent_characters(frequency, most=max(1, room // 2)))


def _as_lines(counts: Counter[str], alphabet: set[str]) -> Iterator[str]:
    """Yield each word with its count in the form that sentencepiece's trainer reads, most frequent first."""
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
        pad_id=OWN_SPECIAL_TOKENS.padding,
        unk_id=OWN_SPECIAL_TOKENS.unknown,
        bos_id=OWN_SPECIAL_TOKENS.start,
        eos_id=OWN_SPECIAL_TOKENS.end,
        user_defined_symbols=list(RESERVED),
        num_threads=1,
        minloglevel=2,
    )
    learned = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    pieces = [learned.id_to_piece(token) for token in range(FIRST_LEARNED, learned.get_piece_size())]
    assert WORD_MARK in pieces
    return pieces
