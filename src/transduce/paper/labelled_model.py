"""The bundled model, and the labelled sentences of the bundled corpus as it reads them.

The corpus was written by a grammar that knows number, gender, tense and role of each word, so that what a model encodes
and where its heads look can be compared with the truth. The model was trained on other text: Tatoeba.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files as package_files
from pathlib import Path

from transduce.demo import corpus
from transduce.demo.corpus import Constituent, LabelledSplit, labels
from transduce.model.transformer import Transformer
from transduce.model_directory import ModelDirectory, load_model


@dataclass(frozen=True)
class LabelledSentence:
    """A sentence's tokens, the tokens of each word, and what the grammar knows of its words."""

    words: list[str]
    source: list[int]
    target: list[int]
    tokens_of_word: list[list[int]]
    constituents: tuple[Constituent, ...]

    def tokens(self, constituent: Constituent) -> list[int]:
        """Return the places of a constituent's tokens."""
        return [place for word in constituent.english for place in self.tokens_of_word[word]]


def bundled_model() -> ModelDirectory:
    """Return the model that comes with the package."""
    return load_model(Path(str(package_files("transduce") / "models" / "en-de")))


def network_of(model: ModelDirectory) -> Transformer:
    """Return the model's network."""
    network = model.network()
    assert isinstance(network, Transformer)
    return network


def labelled_sentences(
    model: ModelDirectory, splits: Sequence[LabelledSplit] = ("test", "test_combinations", "test_long")
) -> Iterator[LabelledSentence]:
    """Yield the labelled sentences of the bundled corpus."""
    found, tokenizers = corpus(pairs=0), model.tokenizers
    end = tokenizers.target.special.end
    for split in splits:
        for (english, german), constituents in zip(getattr(found, split), labels(split), strict=True):
            source, words = _pieces(model, english)
            yield LabelledSentence(
                english.split(), source, [*tokenizers.target.encode(german), end], words, constituents
            )


def _pieces(model: ModelDirectory, text: str) -> tuple[list[int], list[list[int]]]:
    """Return the ids of a text with the end token, and the places of the tokens of each word between spaces."""
    tokenizer = model.tokenizers.source
    pieces = tokenizer.pieces(text)
    words: list[list[int]] = [[] for _ in text.split()]
    for place, piece in enumerate(pieces):
        if text[piece.start : piece.end].strip():
            last = piece.end - 1
            words[text[:last].count(" ")].append(place)
    return [*(piece.id for piece in pieces), tokenizer.special.end], words
