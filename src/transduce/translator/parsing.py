"""Parsing: a tree for each line of words, always well-formed and over exactly these words (section 6.3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from transduce.decoding.config import DecodingConfig
from transduce.decoding.tree_search import TreeSymbols
from transduce.errors import DataError, ModelError
from transduce.text.placeholders import Protected
from transduce.text.trees import Tree, tree_of, words_of
from transduce.text.word_tokenizer import WordTokenizer
from transduce.translator.searching import Searcher, Sentence

if TYPE_CHECKING:
    from transduce.translator.translator import Translator

LONGEST_FACTOR, ALWAYS_PARSED = 4, 512
"""A line this many times longer than any that the model was trained on is refused, but never one of so few pieces."""


@dataclass(frozen=True)
class ParsedLine:
    """The tree of a line, and the symbols that the search found."""

    tree: Tree
    symbols: tuple[str, ...]
    log_probability: float
    score: float

    def as_json(self) -> dict[str, Any]:
        """Return the tree as values of JSON."""
        return {
            "words": self.tree.words(),
            "tree": self.tree.brackets(),
            "symbols": list(self.symbols),
            "log_probability": self.log_probability,
            "score": self.score,
        }


def writes_trees(translator: "Translator") -> bool:
    """Return whether the model was trained on trees."""
    return isinstance(translator.tokenizers.target, WordTokenizer)


def parse_all(translator: "Translator", lines: Sequence[str], config: DecodingConfig) -> list[ParsedLine | None]:
    """Return the tree of each line, whose words are what spaces separate; None for a line without words."""
    tokenizer = translator.tokenizers.target
    if not isinstance(tokenizer, WordTokenizer):
        raise ModelError("This model writes no trees. Train one: transduce train --train trees.ptb --output runs/trees")
    words = [words_of(line) for line in lines]
    places = [place for place, own in enumerate(words) if own]
    encoded = translator.tokenizers.encode_sources([" ".join(words[place]) for place in places])
    longest = max(LONGEST_FACTOR * translator.longest_sentence, ALWAYS_PARSED)
    for place, ids in zip(places, encoded, strict=True):
        if len(ids) > longest:
            raise DataError(
                f"Line {place + 1} has {len(ids):,} pieces, and this model parses up to {longest:,}. Split it."
            )
    sentences = [Sentence(n, 0, Protected("", ()), tuple(ids), key=n) for n, ids in enumerate(encoded)]
    searcher = Searcher(translator.stepper, tokenizer.decode, threads=translator.threads if translator.is_frozen else 1)
    counts = [len(words[place]) for place in places]
    with translator.computing():
        found = searcher.search_trees(sentences, config, symbols=TreeSymbols.of(tokenizer), words=counts)
    parsed: list[ParsedLine | None] = [None] * len(lines)
    for place, (best, *_) in zip(places, found, strict=True):
        symbols = tuple(tokenizer.decode(best.tokens).split())
        parsed[place] = ParsedLine(tree_of(words[place], symbols), symbols, best.log_probability, best.score)
    return parsed
