"""Cutting texts into the parts that the model reads: sentences, and the white space between them, which is kept.

A sentence longer than any that the model was trained on is cut again. Every sentence is encoded once, and the sentences
of all texts together, which is faster than one by one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from transduce.text.placeholders import Protected
from transduce.text.sentence_form import in_small_letters
from transduce.text.sentences import Segment, segments, shorter_parts
from transduce.text.tokenizer import Tokenizer
from transduce.text.tokenizer_pair import TokenizerPair
from transduce.translator.searching import Sentence

# A sentence this many times longer than any that the model has seen is refused: its parts would be nonsense.
_REFUSED_FACTOR = 16


@dataclass(frozen=True)
class EncodedSentence:
    """A sentence with symbols for its placeholders, and its ids."""

    protected: Protected
    ids: tuple[int, ...]


@dataclass(frozen=True)
class TextPart:
    """A part of a text."""

    text: str
    encoded: EncodedSentence | None = None
    """None for white space, which is kept as it is."""


@dataclass(frozen=True)
class CutText:
    """The parts of a text, or the reason to refuse it."""

    parts: tuple[TextPart, ...] = ()
    refusal: str = ""


@dataclass(frozen=True)
class TextCutter:
    """Cuts texts for one model."""

    tokenizers: TokenizerPair
    language: str | None
    longest_sentence: int
    """In pieces, with the end token."""
    keep_form: bool = False
    """Let the model read sentences in capitals in small letters."""

    def cut(self, texts: Sequence[str]) -> list[CutText]:
        """Return the parts of each text; joined, they are the text."""
        cut = [segments(text, language=self.language) for text in texts]
        sentences = dict.fromkeys(segment.text for own in cut for segment in own if segment.is_sentence)
        encoded = dict(zip(sentences, self._encode(list(sentences)), strict=True))
        return [self._cut_text(text, own, encoded) for text, own in zip(texts, cut, strict=True)]

    def _cut_text(self, text: str, found: Sequence[Segment], encoded: dict[str, EncodedSentence]) -> CutText:
        longest = max((len(encoded[segment.text].ids) for segment in found if segment.is_sentence), default=0)
        most = _REFUSED_FACTOR * self.longest_sentence
        if len(text) > most and longest > most:
            return CutText(
                refusal=f"it holds a sentence of {longest:,} pieces where this model has seen at most "
                f"{self.longest_sentence:,}; cut it into sentences first"
            )
        parts: list[TextPart] = []
        for segment in found:
            if not segment.is_sentence:
                parts.append(TextPart(segment.text))
            elif len(encoded[segment.text].ids) <= self.longest_sentence:
                parts.append(TextPart(segment.text, encoded[segment.text]))
            else:
                parts += self._cut_sentence(segment.text, encoded[segment.text])
        return CutText(tuple(parts))

    def _cut_sentence(self, sentence: str, whole: EncodedSentence) -> list[TextPart]:
        encoded = {sentence.strip(): whole}

        def encode(part: str) -> EncodedSentence:
            if part not in encoded:
                encoded[part] = self._encode([part])[0]
            return encoded[part]

        parts: list[TextPart] = []
        longest = self.longest_sentence
        for part in shorter_parts(sentence, length=lambda part: len(encode(part.strip()).ids), longest=longest):
            inner = part.strip()
            start = part.find(inner)
            parts += [TextPart(space) for space in (part[:start],) if space]
            parts += [TextPart(inner, encode(inner))] if inner else []
            parts += [TextPart(space) for space in (part[start + len(inner) :],) if space]
        return parts

    def _encode(self, sentences: Sequence[str]) -> list[EncodedSentence]:
        if self.keep_form:
            sentences = [in_small_letters(sentence, self.tokenizers.source.encode) for sentence in sentences]
        return encode_sentences(sentences, self.tokenizers)


def encode_sentences(sentences: Sequence[str], tokenizers: TokenizerPair) -> list[EncodedSentence]:
    """Return each sentence as the model reads it."""
    protected = [tokenizers.protect(sentence) for sentence in sentences]
    encoded = tokenizers.encode_sources([own.text for own in protected])
    return [EncodedSentence(own, tuple(ids)) for own, ids in zip(protected, encoded, strict=True)]


def sentences_to_search(
    cut: Sequence[CutText], target: Tokenizer, *, numbers: Sequence[int] | None, prefixes: Sequence[str] | None
) -> list[Sentence]:
    """Return the sentences of all texts; `numbers` are the keys of the texts' random draws, unless given their places.

    The first sentence of a text must begin with the text's prefix.
    """
    sentences: list[Sentence] = []
    for text, own in enumerate(cut):
        prefix = target.encode(prefixes[text]) if prefixes else []
        for place, part in enumerate(own.parts):
            if part.encoded is not None:
                key = (numbers[text] if numbers else text) * 1_000_003 + place
                protected, ids = part.encoded.protected, part.encoded.ids
                sentences.append(Sentence(text, place, protected, ids, key=key, prefix=tuple(prefix)))
                prefix = []  # only the first sentence has it
    return sentences
