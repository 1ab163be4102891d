"""Glossaries: terms that a translation should use, chosen at translation time and not in training.

Enforced: if a translation lacks a term, `enforcement.py` searches for the best one that has all terms. The model still
reads the source words of the terms. Terms that do not fit within the length limit are reported as missing, as lost
placeholders are.

Preferred: of the final hypotheses of beam search, the one with the most terms is taken; among equals, the one with the
best score. A term that no hypothesis has does not appear.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from transduce.decoding.hypothesis import Hypothesis
from transduce.errors import DataError
from transduce.text.normalization import normalize
from transduce.text.phrases import Phrases
from transduce.text.placeholders import protect
from transduce.text.word_edges import needs_edge

Mode = Literal["enforced", "preferred"]


@dataclass(frozen=True)
class Glossary:
    """Source terms and their translations."""

    terms: tuple[tuple[str, str], ...]
    mode: Mode = "enforced"

    @cached_property
    def _translations(self) -> dict[str, str]:
        return {source.casefold(): normalize(target) for source, target in self.terms}

    @cached_property
    def _sources(self) -> Phrases:
        return Phrases(self._translations)

    def wanted(self, text: str) -> list[str]:
        """Return the translation of every occurrence of a term in a text.

        Of overlapping terms, the one that begins first counts, then the longest. Text inside a placeholder, such as a
        URL, does not count.
        """
        return [target for _, target in self.occurrences(text)]

    def occurrences(self, text: str) -> list[tuple[str, str]]:
        """Return every occurrence of a term in a text, as it is written there, with its translation."""
        if not self.terms:
            return []
        written = protect(text).text
        folded, places = _folded(written)

        def fits(start: int, end: int) -> bool:
            first, last = places[start], places[end]
            if (start and places[start - 1] == first) or places[end - 1] == last:  # inside a folded character
                return False
            return not _continues(written, first, first - 1) and not _continues(written, last - 1, last)

        return [
            (written[places[start] : places[end]], self._translations[folded[start:end]])
            for start, end in self._sources.found(folded, fits=fits)
        ]

    def prefer(
        self, hypotheses: Sequence[Hypothesis], text: str, *, decode: Callable[[Sequence[int]], str]
    ) -> list[Hypothesis]:
        """Return the hypotheses of a sentence, those with the most of its terms first."""
        wanted = self.wanted(text)
        if not wanted:
            return list(hypotheses)
        return sorted(hypotheses, key=lambda hypothesis: -count_terms(wanted, decode(hypothesis.tokens)))

    def lost(self, text: str, translation: str) -> list[str]:
        """Return the terms that a translation lacks, if terms are enforced."""
        return self.absent(text, translation) if self.mode == "enforced" else []

    def absent(self, text: str, translation: str) -> list[str]:
        """Return the terms that a translation of a text lacks, each as often as it is missing."""
        wanted = self.wanted(text)
        return [
            term
            for term in dict.fromkeys(wanted)
            for _ in range(wanted.count(term) - count_terms([term] * wanted.count(term), translation))
        ]


def count_terms(wanted: Sequence[str], translation: str) -> int:
    """Return the number of wanted terms that a translation has; a term wanted twice counts twice if it occurs twice."""
    folded = translation.casefold()
    return sum(
        min(wanted.count(term), len(re.findall(_bounded(term.casefold()), folded))) for term in dict.fromkeys(wanted)
    )


def read_glossary(path: Path, *, mode: Mode = "enforced") -> Glossary:
    """Read a glossary: two columns in a .tsv, .csv or .jsonl file, or any other file of pairs."""
    from transduce.data.formats import Corpus, Selection  # the parsers of all formats take 20 ms to import

    terms: dict[str, tuple[str, str]] = {}
    for pair in Corpus(str(path), Selection()).pairs():
        source, target = " ".join(pair.source.split()), normalize(pair.target)
        if not source and not target:
            continue
        if not source or not target:
            raise DataError(
                f"{path}:{pair.line}: a term or its translation is missing. Write both, with a tab between them."
            )
        known = terms.setdefault(source.casefold(), (source, target))
        if known[1] != target:
            raise DataError(
                f"{path}:{pair.line}: {source!r} is translated as {target!r} here and as {known[1]!r} before. Keep one."
            )
    if not terms:
        raise DataError(
            f"{path} holds no terms. Write a term and its translation on each line, with a tab between them."
        )
    return Glossary(tuple(terms.values()), mode)


def _folded(text: str) -> tuple[str, list[int]]:
    """Return a text without case, each run of white space as one space, and the place of each sign in the text."""
    folded: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        signs = " " if character.isspace() else character.casefold()
        if signs == " " and folded and folded[-1] == " ":
            continue
        folded += signs
        places += [place] * len(signs)
    return "".join(folded), [*places, len(text)]


def _continues(text: str, inner: int, outer: int) -> bool:
    """Return whether the character at `outer` belongs to the word that begins or ends at `inner`."""
    if not 0 <= outer < len(text) or not needs_edge(text[inner]):
        return False
    return text[outer].isalnum() or text[outer] == "_"


def _bounded(term: str) -> str:
    """Return a pattern that matches a term with any white space in it, but not inside a longer word."""
    inner = r"\s+".join(map(re.escape, term.split()))
    before, after = (look if needs_edge(edge) else "" for edge, look in ((term[0], r"(?<!\w)"), (term[-1], r"(?!\w)")))
    return f"{before}{inner}{after}"
