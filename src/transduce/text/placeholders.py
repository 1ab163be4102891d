"""What must come through translation unchanged: format specifiers, variables, URLs, e-mail addresses, inline tags.

Before a text is cut into pieces each of them is replaced by a reserved symbol, and after translation put back:

    Hello {name}, see <b>https://example.org/a</b>   ->   Hello ⟨0⟩, see ⟨1⟩⟨2⟩⟨3⟩

The symbols are numbered in order of appearance; the same original has the same symbol wherever it stands. In a pair for
training (`protect_pair`) only what stands on both sides is replaced: what has no partner stays text, so that a symbol
in the source always means "copy me" and the model never learns to drop one or to invent one.

There are 16 symbols, sixteen of Unicode's noncharacters, which no text should hold. In one that does hold some, these
alone are replaced, by symbols like any other original, so `restore` undoes `protect` for every text. What is beyond the
sixteenth in one text stays text. Every pattern is bounded or possessive: matching takes time linear in the text.

A vocabulary without symbols leaves placeholders in the text; `missing` then lists those that a translation changed.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

RESERVED: tuple[str, ...] = tuple(map(chr, range(0xFDD0, 0xFDE0)))

SYMBOL = re.compile(f"[{RESERVED[0]}-{RESERVED[-1]}]")
# One pass of a cheap pattern spares ordinary sentences the dear one.
_HINT = re.compile(f"[%{{$<@{RESERVED[0]}-{RESERVED[-1]}]|://|www\\.")
# What a URL cannot hold, and what is part of it only if more of it follows.
_OUTSIDE = r"""\s<>"{}„“”‘’«»‹›。，、；：！？（）「」『』【】"""
_POINTS = r"""().,;:!?'\[\]…"""
_PLACEHOLDER = re.compile(
    rf"(?: (?<!\w) (?:https?|ftp):// | (?<![\w.]) www\. )"  # a URL, less the punctuation after it
    rf"(?: [^{_OUTSIDE}{_POINTS}]++ | \( [^{_OUTSIDE}()]*+ \) | [{_POINTS}]++ (?=[^{_OUTSIDE}{_POINTS}]) )++"
    r"""
    | (?<![\w.+-]) (?:mailto:)? [\w.+-]{1,64}+ @ [\w-]{1,63}+ (?: \. [\w-]{1,63}+ ){1,8}+     # an e-mail address
    | </? [A-Za-z][\w:.-]{0,40}+                                                              # <b> </b> <br/>
        (?: \s{1,8}+ [\w:.-]{1,40}+ \s{0,8}+ = \s{0,8}+                                       # <a href="…">
            (?: "[^"<>]{0,2000}+" | '[^'<>]{0,2000}+' | [^\s"'<>=]{1,200}+ ) ){0,40}+
        \s{0,8}+ /?>
    | \{\{ [^{}]{1,100}+ \}\}                                                                 # {{x}}
    | [$%\#]? \{ [\w.\[\]-]{0,64}+ (?: [!:,] [^{}\s]{0,32}+ )? \}                             # {} {0} {x:.2f} ${x}
    | \$ \d (?! \w | [.,]\d )                                                                 # $1, not $12 or $1.50
    | (?<![\d%]) % (?: \( \w{1,64}+ \) | \d{1,2}+ \$ )? [-+\#0]{0,3}+ \d{0,3}+ (?:\.\d{1,3}+)?  # %s %1$s %(name)s %.2f
        (?: hh? | ll? | [zjtLq] )?+ (?: [sd@] | [iufFeEgGxXoc] (?![A-Za-z]) )                 # not 100%s or 50 %ige
    """,
    re.VERBOSE,
)


@dataclass(frozen=True)
class Protected:
    """A text whose placeholders are symbols. `originals[n]` is what symbol n stands for."""

    text: str
    originals: tuple[str, ...]
    unprotected: tuple[str, ...] = ()
    """Placeholders that stayed text because every symbol was taken, or because the vocabulary has no symbols."""

    def boundaries(self) -> list[int]:
        """Return where in the original text each character of `text` begins, and last where the text ends."""
        if not self.originals:  # a symbol in the text is then a character of its own
            return list(range(len(self.text) + 1))
        lengths = (len(original) for original in (_original(char, self.originals) for char in self.text))
        return [0, *accumulate(lengths)]


@dataclass(frozen=True)
class ProtectedPair:
    """A source and its translation with the placeholders that they share as symbols."""

    source: str
    target: str
    originals: tuple[str, ...]


def protect(text: str, *, has_symbols: bool = True) -> Protected:
    """Replace the placeholders of `text` by symbols; if the vocabulary has none, only list them as unprotected."""
    if not _HINT.search(text):
        return Protected(text, ())
    if not has_symbols:
        return Protected(text, (), tuple(dict.fromkeys(match[0] for match in _PLACEHOLDER.finditer(text))))
    pattern = _pattern(text)
    found = list(dict.fromkeys(match[0] for match in pattern.finditer(text)))
    originals, unprotected = tuple(found[: len(RESERVED)]), tuple(found[len(RESERVED) :])
    return Protected(_replace(pattern, text, originals), originals, unprotected)


def protect_pair(source: str, target: str) -> ProtectedPair:
    """Replace by symbols what stands in both `source` and `target`; the rest stays text."""
    if not _HINT.search(source) and not _HINT.search(target):
        return ProtectedPair(source, target, ())
    pattern = _pattern(source + target)
    in_source, in_target = ({match[0]: None for match in pattern.finditer(text)} for text in (source, target))
    if pattern is SYMBOL:  # a text's own symbols are replaced even without a partner: they must not pass for ours
        shared = tuple(in_source | in_target)
    else:
        shared = tuple(original for original in in_source if original in in_target)[: len(RESERVED)]
    return ProtectedPair(_replace(pattern, source, shared), _replace(pattern, target, shared), shared)


def restore(text: str, originals: Sequence[str]) -> str:
    """Put the originals back into `text`; a symbol that stands for nothing is dropped."""
    foreign = RESERVED[len(originals) :]
    if any(symbol in text for symbol in foreign):
        text = " ".join(re.sub(f"[{foreign[0]}-{foreign[-1]}]", "", text).split())
    return SYMBOL.sub(lambda match: _original(match[0], originals), text)


def missing(protected: Protected, translation: str) -> tuple[str, ...]:
    """Return the originals that `translation`, not yet restored, has lost: each as often as it is short."""
    return tuple((_inventory(protected, protected.text) - _inventory(protected, translation)).elements())


def surplus(protected: Protected, translation: str) -> tuple[str, ...]:
    """Return the originals that `translation`, not yet restored, repeats: each as often as it is too many."""
    return tuple((_inventory(protected, translation) - _inventory(protected, protected.text)).elements())


def _inventory(protected: Protected, text: str) -> Counter[str]:
    counts = Counter(_original(symbol, protected.originals) for symbol in SYMBOL.findall(text))
    counts.pop("", None)
    counts.update({original: text.count(original) for original in protected.unprotected})
    return counts


def _pattern(text: str) -> re.Pattern[str]:
    """Return what to look for in `text`: placeholders, or our own symbols if it holds any."""
    return SYMBOL if SYMBOL.search(text) else _PLACEHOLDER


def _replace(pattern: re.Pattern[str], text: str, originals: tuple[str, ...]) -> str:
    symbols = dict(zip(originals, RESERVED, strict=False))
    return pattern.sub(lambda match: symbols.get(match[0], match[0]), text)


def _original(character: str, originals: Sequence[str]) -> str:
    if not RESERVED[0] <= character <= RESERVED[-1]:
        return character
    number = ord(character) - ord(RESERVED[0])
    return originals[number] if number < len(originals) else ""
