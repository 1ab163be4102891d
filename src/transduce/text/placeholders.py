"""Placeholders, which a translation must copy unchanged: format specifiers, variables, URLs, e-mail addresses, tags.

`protect` replaces each placeholder with a reserved symbol before tokenization. `restore` puts it back afterwards.

    Hello {name}, see <b>https://example.org/a</b>   ->   Hello ⟨0⟩, see ⟨1⟩⟨2⟩⟨3⟩

The symbols are numbered in order of appearance, and equal placeholders of a text get the same symbol. In a training
pair (`protect_pair`) only placeholders on both sides are replaced and the others stay text, so that a symbol in the
source must always be copied and the model never learns to drop or to invent one.

There are 16 symbols, taken from Unicode's noncharacters, which no text should contain. If a text has more than 16
different placeholders, the others stay text. If a text does contain our symbols, only these are replaced, as if they
were placeholders, so that `restore` undoes `protect` for every text. Every pattern is bounded or possessive, so that
matching takes linear time.

A vocabulary without symbols leaves placeholders in the text; `missing` then lists those that a translation changed.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from transduce.text.phrases import Phrases

RESERVED: tuple[str, ...] = tuple(map(chr, range(0xFDD0, 0xFDE0)))

SYMBOL = re.compile(f"[{RESERVED[0]}-{RESERVED[-1]}]")
# A cheap pattern that every placeholder matches. Most sentences do not match it and skip the expensive pattern.
_HINT = re.compile(f"[%{{$<@{RESERVED[0]}-{RESERVED[-1]}]|://|www\\.")
# Characters that end a URL, and punctuation that belongs to a URL only if more of it follows.
_OUTSIDE = r"""\s<>"{}„“”‘’«»‹›。，、；：！？（）「」『』【】"""
_POINTS = r"""().,;:!?'\[\]…"""
_PLACEHOLDER = re.compile(
    rf"(?: (?<!\w) (?:https?|ftp):// | (?<![\w.]) www\. )"  # a URL without the punctuation after it
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
        (?: %%(?!%) )?                                                                        # %d%%
    | (?<![%\d]) (?: \d{1,9}+ )? %% (?! [%\w] )                                               # %% 50%%
    """,
    re.VERBOSE,
)


@dataclass(frozen=True)
class Protected:
    """A text with symbols in place of its placeholders; symbol n stands for `originals[n]`."""

    text: str
    originals: tuple[str, ...]
    unprotected: tuple[str, ...] = ()
    """Placeholders that stayed text because all symbols were taken, or because the vocabulary has no symbols."""

    @property
    def has_placeholders(self) -> bool:
        """Whether a translation must keep anything; most sentences have nothing."""
        return bool(self.originals or self.unprotected)

    @cached_property
    def phrases(self) -> Phrases:
        """The unprotected placeholders, to be found in a translation."""
        return Phrases(self.unprotected)

    def boundaries(self) -> list[int]:
        """Return the offset in the original text of each character of `text`, and of the end of `text`."""
        if not self.originals:  # a symbol in the text is then an ordinary character
            return list(range(len(self.text) + 1))
        return [0, *accumulate(len(_original(character, self.originals)) for character in self.text)]


@dataclass(frozen=True)
class ProtectedPair:
    """A source and its translation, with symbols in place of the placeholders that they share."""

    source: str
    target: str
    originals: tuple[str, ...]


def protect(text: str, *, has_symbols: bool = True) -> Protected:
    """Replace the placeholders of `text` with symbols; if the vocabulary has none, list them all as unprotected."""
    if not _HINT.search(text):
        return Protected(text, ())
    pattern = _pattern(text) if has_symbols else _PLACEHOLDER
    found = tuple(dict.fromkeys(match[0] for match in pattern.finditer(text)))
    count = len(RESERVED) if has_symbols else 0
    return Protected(_replace(pattern, text, found[:count]), found[:count], found[count:])


def protect_pair(source: str, target: str) -> ProtectedPair:
    """Replace the placeholders that are in both `source` and `target` with symbols; the others stay text."""
    if not _HINT.search(source) and not _HINT.search(target):
        return ProtectedPair(source, target, ())
    pattern = _pattern(source + target)
    in_source, in_target = ({match[0]: None for match in pattern.finditer(text)} for text in (source, target))
    if pattern is SYMBOL:  # replaced even on one side only: a user's symbol must not be read as a placeholder's
        shared = tuple(in_source | in_target)
    else:
        shared = tuple(original for original in in_source if original in in_target)[: len(RESERVED)]
    return ProtectedPair(_replace(pattern, source, shared), _replace(pattern, target, shared), shared)


def restore(text: str, originals: Sequence[str]) -> str:
    """Put the originals back into `text`; a symbol without an original is dropped."""
    if not SYMBOL.search(text):
        return text
    unused = RESERVED[len(originals) :]
    if any(symbol in text for symbol in unused):
        text = " ".join(re.sub(f"[{unused[0]}-{unused[-1]}]", "", text).split())
    return SYMBOL.sub(lambda match: _original(match[0], originals), text)


def split_at_placeholders(text: str) -> list[str]:
    """Return a text in parts, of which the second and every other one is a placeholder."""
    if not _HINT.search(text):
        return [text]
    found = list(_PLACEHOLDER.finditer(text))
    starts, ends = [0, *(match.end() for match in found)], [*(match.start() for match in found), len(text)]
    between = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    return [between[0], *(part for pair in zip(found, between[1:], strict=True) for part in (pair[0][0], pair[1]))]


def missing(protected: Protected, translation: str) -> tuple[str, ...]:
    """Return the originals that are missing from `translation` (before `restore`), each as often as it is missing."""
    if not protected.has_placeholders:
        return ()
    return tuple((_counts(protected, protected.text) - _counts(protected, translation)).elements())


def surplus(protected: Protected, translation: str) -> tuple[str, ...]:
    """Return the originals in excess in `translation` (before `restore`), each as often as it is in excess."""
    if not protected.has_placeholders:
        return ()
    return tuple((_counts(protected, translation) - _counts(protected, protected.text)).elements())


def _counts(protected: Protected, text: str) -> Counter[str]:
    counts = Counter(_original(symbol, protected.originals) for symbol in SYMBOL.findall(text))
    counts.pop("", None)
    counts.update(text[start:end] for start, end in protected.phrases.found(text))
    return counts


def _pattern(text: str) -> re.Pattern[str]:
    """Return the pattern to replace in `text`: our symbols if it contains any, else placeholders."""
    return SYMBOL if SYMBOL.search(text) else _PLACEHOLDER


def _replace(pattern: re.Pattern[str], text: str, originals: tuple[str, ...]) -> str:
    symbols = dict(zip(originals, RESERVED, strict=False))
    return pattern.sub(lambda match: symbols.get(match[0], match[0]), text)


def _original(character: str, originals: Sequence[str]) -> str:
    if not RESERVED[0] <= character <= RESERVED[-1]:
        return character
    number = ord(character) - ord(RESERVED[0])
    return originals[number] if number < len(originals) else ""
