"""Terms that a translation should use, given when translating: no training knows of them.

Enforced: a term in the source becomes a reserved symbol, like a placeholder, and what is put back is the term's
translation. It is there whenever the model copies the symbol; the model does not see the word, so it cannot inflect it,
nor choose an article for it. Where a symbol got lost, as in a model that was never shown any, the text is translated
again with its terms preferred, and those that are still absent count as missing placeholders do.

Preferred: the model sees the words, and among the hypotheses that its beam search ends with the one that uses the most
of the wanted terms is taken, the better score deciding between equals. A term that no hypothesis has does not appear.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from transduce.data.formats import Corpus, Selection
from transduce.decoding.hypothesis import Hypothesis
from transduce.errors import DataError
from transduce.text.placeholders import RESERVED, Protected, protect

Mode = Literal["enforced", "preferred"]
# Scripts that set no space between words: there a term may begin anywhere.
_SPACELESS = "\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff"


@dataclass(frozen=True)
class Glossary:
    """Source terms and their translations."""

    terms: tuple[tuple[str, str], ...]
    mode: Mode = "enforced"

    @cached_property
    def _translations(self) -> dict[str, str]:
        return {source.casefold(): target for source, target in self.terms}

    def _translation(self, found: str) -> str:
        return self._translations[" ".join(found.split()).casefold()]

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        longest_first = sorted((source for source, _ in self.terms), key=len, reverse=True)
        return re.compile("|".join(map(_bounded, longest_first)), re.IGNORECASE)

    def wanted(self, text: str) -> list[str]:
        """Return the translations of the terms in a text, each as often as its term occurs; longer terms go first."""
        if not self.terms:
            return []
        return [self._translation(match[0]) for match in self._pattern.finditer(text)]

    def protect(self, text: str) -> Protected:
        """Do what `protect` does, and if enforced put a symbol for every term, as long as there are free ones."""
        protected = protect(text)
        if self.mode != "enforced" or not self.terms:
            return protected
        originals = list(protected.originals)

        def symbol(match: re.Match[str]) -> str:
            target = self._translation(match[0])
            if target not in originals:
                if len(originals) == len(RESERVED):
                    return match[0]
                originals.append(target)
            return RESERVED[originals.index(target)]

        text = self._pattern.sub(symbol, protected.text)
        return Protected(text, tuple(originals), protected.unprotected)

    def prefer(
        self, hypotheses: Sequence[Hypothesis], text: str, *, decode: Callable[[Sequence[int]], str]
    ) -> list[Hypothesis]:
        """Return a sentence's hypotheses with those that use more of its terms in front, if terms are preferred."""
        wanted = self.wanted(text) if self.mode == "preferred" else []
        if not wanted:
            return list(hypotheses)
        return sorted(hypotheses, key=lambda hypothesis: -appearing(wanted, decode(hypothesis.tokens)))

    def are_lost(self, missing: Sequence[str]) -> bool:
        """Return whether terms that are enforced are among the placeholders that a translation misses."""
        return self.mode == "enforced" and not set(missing).isdisjoint(self._translations.values())

    def absent(self, text: str, translation: str) -> list[str]:
        """Return the terms that a translation of a text should have and has not, each as often as it is short."""
        wanted = self.wanted(text)
        return [
            term
            for term in dict.fromkeys(wanted)
            for _ in range(wanted.count(term) - appearing([term] * wanted.count(term), translation))
        ]


def appearing(wanted: Sequence[str], translation: str) -> int:
    """Return how many of the wanted terms a translation has, each counted as often as it stands there."""
    folded = translation.casefold()
    return sum(
        min(wanted.count(term), len(re.findall(_bounded(term.casefold()), folded))) for term in dict.fromkeys(wanted)
    )


def read_glossary(path: Path, *, mode: Mode = "enforced") -> Glossary:
    """Read a glossary: two columns in a .tsv, .csv or .jsonl file, or any other file of pairs."""
    terms: dict[str, tuple[str, str]] = {}
    for pair in Corpus(str(path), Selection()).pairs():
        source, target = " ".join(pair.source.split()), " ".join(pair.target.split())
        if not source and not target:
            continue
        if not source or not target:
            raise DataError(f"{path}:{pair.line}: a term or its translation is missing. Write both, a tab between.")
        known = terms.setdefault(source.casefold(), (source, target))
        if known[1] != target:
            raise DataError(
                f"{path}:{pair.line}: {source!r} is to become {target!r} here and {known[1]!r} before. Keep one."
            )
    if not terms:
        raise DataError(f"{path} holds no terms. Write a term and its translation on each line, a tab between.")
    return Glossary(tuple(terms.values()), mode)


def _bounded(term: str) -> str:
    """Return a pattern for a term that does not stand inside a longer word; white space in it is any."""
    inner = r"\s+".join(map(re.escape, term.split()))
    before, after = (
        "" if not edge.isalnum() or re.match(f"[{_SPACELESS}]", edge) else look
        for edge, look in ((term[0], r"(?<!\w)"), (term[-1], r"(?!\w)"))
    )
    return f"{before}{inner}{after}"
