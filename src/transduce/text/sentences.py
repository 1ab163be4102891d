"""Cutting a text into sentences, since models are trained on single sentences.

sentencex finds the sentences of a line; its rules cover the abbreviations of many languages. White space between
sentences, including indentation and line ends, is not translated and is put back unchanged. A sentence longer than the
model's limit is cut again: after punctuation if possible, else between words, else anywhere.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import sentencex

_SURROGATE = re.compile("[\ud800-\udfff]")
# sentencex 1.0.32 panics at one capital letter, white space beyond ASCII and a period, as in "plan B\u00a0...".
_WIDE_SPACE_BEFORE_PERIOD = re.compile(r"\b(\w\s*)[^\S\x00-\x7f](?=\.)")
_LINE_END = re.compile(r"\r\n|\n")
_AFTER_PUNCTUATION = re.compile(r"(?<=[.,;:!?…。，、；：！？)\]»”])\s+|(?<=[。，、；：！？])")


@dataclass(frozen=True)
class Segment:
    """A part of a text: a sentence to translate, or white space to keep."""

    text: str
    is_sentence: bool


def segments(text: str, *, language: str | None) -> list[Segment]:
    """Cut `text` into sentences and the white space between them; joined, the segments are `text`."""
    found: list[Segment] = []
    for line in _split_after(_LINE_END, text):
        for sentence in _sentences_of_line(line, language=language):
            inner = sentence.strip()
            before, _, after = sentence.partition(inner) if inner else (sentence, "", "")
            for part, is_sentence in ((before, False), (inner, True), (after, False)):
                if part:
                    found.append(Segment(part, is_sentence=is_sentence))
    return found


def shorter_parts(sentence: str, *, length: Callable[[str], int], longest: int) -> list[str]:
    """Cut a sentence into parts with a `length` of at most `longest`; joined, the parts are the sentence."""
    if length(sentence) <= longest:
        return [sentence]
    for pattern in (_AFTER_PUNCTUATION, re.compile(r"\s+")):
        parts = _split_after(pattern, sentence)
        if len(parts) > 1:
            packed = _packed(parts, length=length, longest=longest)
            return [shorter for part in packed for shorter in shorter_parts(part, length=length, longest=longest)]
    if len(sentence) == 1:
        return [sentence]
    # A single long word: halving it again and again takes n log n steps.
    middle = len(sentence) // 2
    return [
        shorter
        for half in (sentence[:middle], sentence[middle:])
        for shorter in shorter_parts(half, length=length, longest=longest)
    ]


def _packed(parts: list[str], *, length: Callable[[str], int], longest: int) -> list[str]:
    """Join neighbouring parts while they fit; the length of a join is estimated as the sum of both lengths plus one."""
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


def _sentences_of_line(line: str, *, language: str | None) -> list[str]:
    # sentencex takes only valid Unicode. Replacements of the same length keep the boundaries in place.
    valid = _WIDE_SPACE_BEFORE_PERIOD.sub(r"\1 ", _SURROGATE.sub("\ufffd", line))
    sentences = list(sentencex.segment((language or "en").partition("-")[0], valid))
    if "".join(sentences) != valid:
        return [line]
    ends = [0]
    for sentence in sentences:
        ends.append(ends[-1] + len(sentence))
    return [line[start:end] for start, end in pairwise(ends)]
