"""Which source word each word of a translation leans on, in Pharaoh's form: pairs of word numbers, as `0-0 1-2`.

Words are counted from 0 and separated by spaces, in the source text and in its translation. The network reads each
sentence with its finished translation once more; the layer and the words are those of the attention page
(`inspection/alignment.py`). A word with a comma or a quote leans where its longest part leans.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from transduce.engine import FrozenNetwork
from transduce.inspection.alignment import between_words, layer_for_alignment, strongest
from transduce.inspection.pair import TokenizedSentence, found_pair
from transduce.inspection.tokens import Token
from transduce.model.config import ModelConfig
from transduce.translator.translation import Translation

if TYPE_CHECKING:
    from transduce.translator.translator import Translator

WordPairs = tuple[tuple[int, int], ...]
"""Pairs of a source word and a target word, in the order of the target."""


class WordAligner:
    """Aligns the words of texts and translations, by a translator's first model in the precision that translates."""

    def __init__(self, translator: "Translator") -> None:
        self.translator, self.tokenizers = translator, translator.tokenizers
        own = translator.stepper
        self.network = own if isinstance(own, FrozenNetwork) else None
        if self.network is None and translator.is_frozen:  # an ensemble
            model = translator.models[0].read_again()
            config = model.description.architecture
            assert isinstance(config, ModelConfig), "the core runs no other network"
            self.network = FrozenNetwork(model.parameters, config, self.tokenizers.special)

    def pairs(self, translation: Translation) -> WordPairs:
        """Return the word pairs of a text and its best translation."""
        pairs: list[tuple[int, int]] = []
        written = 0
        for output in translation.alternatives[0].sentences:
            text = translation.source[output.start : output.end]
            source, target = found_pair(self.tokenizers, text, translate=partial(_given, output.tokens))
            before = len(translation.source[: output.start].split())
            own = between_spaced_words(source, target, self.strongest_words(source, target))
            pairs += [(before + s, written + t) for s, t in own]
            written += len(target.text.split())
        return tuple(pairs)

    def strongest_words(self, source: TokenizedSentence, target: TokenizedSentence) -> Sequence[int | None]:
        """Return the source word that each target word of a sentence leans on; words as `Token.word` numbers them."""
        if self.network is None:
            found = self.translator.attention(source.text, target=target.ids).alignment
            return found.hard if found else [None] * len(target.tokens)
        layer = layer_for_alignment(self.network.config.decoder_depth)
        soft = between_words(
            self.network.attention(source.ids, target.ids, layer=layer),
            source_words=[token.word for token in source.tokens],
            target_words=[token.word for token in target.tokens],
        )
        return strongest(soft)


def _given(tokens: Sequence[int], _: list[int]) -> Sequence[int]:
    return tokens


def pharaoh(pairs: WordPairs) -> str:
    """Return the pairs as text."""
    return " ".join(f"{source}-{target}" for source, target in pairs)


def between_spaced_words(
    source: TokenizedSentence, target: TokenizedSentence, hard: Sequence[int | None]
) -> Iterator[tuple[int, int]]:
    """Yield pairs of words separated by spaces, given what the words as tokens number them lean on."""
    starts = {word: start for word, start, _ in _spans(source.tokens)}
    best: dict[int, tuple[int, int]] = {}
    for word, start, end in _spans(target.tokens):
        leans_on = hard[word]
        if leans_on is None:
            continue
        place = _number_at(target.text, start)
        if end - start > best.get(place, (0, 0))[0]:
            best[place] = end - start, _number_at(source.text, starts[leans_on])
    return ((of_source, place) for place, (_, of_source) in sorted(best.items()))


def _spans(tokens: Sequence[Token]) -> list[tuple[int, int, int]]:
    """Return each word's number, start and end."""
    spans: dict[int, tuple[int, int]] = {}
    for token in tokens:
        if token.word is not None:
            start, _ = spans.get(token.word, (token.start, token.end))
            spans[token.word] = start, token.end
    return [(word, start, end) for word, (start, end) in spans.items()]


def _number_at(text: str, start: int) -> int:
    """Return the number of the word, separated by spaces, that begins at or contains this place."""
    while start < len(text) and text[start].isspace():
        start += 1
    return max(0, len(text[: start + 1].split()) - 1)
