"""Where sentences begin and end in a paragraph, so that each is translated by itself and the rest stays as it was.

Models learn from sentences. A paragraph is cut by sentencex, whose rules know the abbreviations of many languages;
the white space between sentences, indentation and line ends included, is kept and put back. What is still longer
than a model has seen is cut again, after punctuation where there is some, else between words, else anywhere.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import sentencex

_SURROGATE = re.compile("[\ud800-\udfff]")
# sentencex 1.0.32 panics at a capital, such white space and a period, as in "plan B\u00a0...".
_WIDE_SPACE_BEFORE_PERIOD = re.compile(r"(?<=[\w\s])[^\S\x00-\x7f](?=\.)")
_LINE_END = re.compile(r"\r\n|\n")
_AFTER_PUNCTUATION = re.compile(r"(?<=[.,;:!?…。，、；：！？)\]»”])\s+|(?<=[。，、；：！？])")


@dataclass(frozen=True)
class Segment:
    """A stretch of a text: one to translate, or white space to keep."""

    text: str
    is_sentence: bool


def segments(text: str, *, language: str | None) -> list[Segment]:
    """Cut `text` into sentences and what stands between them; joined again they are `text`."""
    found: list[Segment] = []
    for line in _pieces_with_ends(text):
        for sentence in _sentences_of_line(line, language=language):
            inner = sentence.strip()
            if not inner:
                found.append(Segment(sentence, is_sentence=False))
                continue
            start = sentence.index(inner)
            for part, is_sentence in (
                (sentence[:start], False),
                (inner, True),
                (sentence[start + len(inner) :], False),
            ):
                if part:
                    found.append(Segment(part, is_sentence=is_sentence))
    return found


def shorter_parts(sentence: str, *, length: Callable[[str], int], longest: int) -> list[str]:
    """Cut a sentence into parts of at most `longest` by `length`, at the best places; joined again they are it."""
    if length(sentence) <= longest:
        return [sentence]
    for pattern in (_AFTER_PUNCTUATION, re.compile(r"\s+")):
        parts = _split_after(pattern, sentence)
        if len(parts) > 1:
            packed = _packed(parts, length=length, longest=longest)
            return [shorter for part in packed for shorter in shorter_parts(part, length=length, longest=longest)]
    if len(sentence) == 1:
        return [sentence]
    # One word without an end: halves of halves, so that the work stays linear but for a logarithm.
    middle = len(sentence) // 2
    return [
        shorter
        for half in (sentence[:middle], sentence[middle:])
        for shorter in shorter_parts(half, length=length, longest=longest)
    ]


def _packed(parts: list[str], *, length: Callable[[str], int], longest: int) -> list[str]:
    """Join neighbours again as long as they stay short enough; lengths are taken to add up, one more for each join."""
    packed: list[str] = []
    taken = longest + 1
    for part in parts:
        size = length(part)
        if taken + size + 1 <= longest:
            packed[-1] += part
            taken += size + 1
        else:
            packed.append(part)
            taken = size
    return packed


def _split_after(pattern: re.Pattern[str], text: str) -> list[str]:
    cuts = [0, *(match.end() for match in pattern.finditer(text) if 0 < match.end() < len(text)), len(text)]
    return [text[start:end] for start, end in pairwise(cuts)]


def _pieces_with_ends(text: str) -> list[str]:
    return [part for part in _split_after(_LINE_END, text) if part]


def _sentences_of_line(line: str, *, language: str | None) -> list[str]:
    # sentencex takes valid Unicode alone; a stand-in of the same length gives the same boundaries.
    valid = _WIDE_SPACE_BEFORE_PERIOD.sub(" ", _SURROGATE.sub("\ufffd", line))
    sentences = list(sentencex.segment((language or "en").partition("-")[0], valid))
    if "".join(sentences) != valid:
        return [line]
    ends = [0]
    for sentence in sentences:
        ends.append(ends[-1] + len(sentence))
    return [line[start:end] for start, end in pairwise(ends)]
