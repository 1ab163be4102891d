"""Tags for a model that cannot copy them: translate a segment without its tags, and find the tagged words again.

The words between a pair of tags are also translated by themselves. In the segment's translation, the pair goes around
the words that are most like that translation, or like the source's own words (names, numbers). If no words are like it,
or if pairs would overlap, the translation is refused. Only pairs can be placed this way; a tag alone has no words.
"""

import re
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from transduce.documents.document import DoesNotFitError, Gap, Splice
from transduce.documents.marked_text import MarkedText, Markup, Part, has_words

_WORD = re.compile(r"\w+(?:[-'’]\w+)*+")
_LEAST_LIKENESS = 0.6
_WEIGHT_OF_PLACE = 0.2
_MOST_WORDS, _MOST_PAIRS = 300, 10


class _TagPair(NamedTuple):
    """A pair of tags: its two tags, the text between them, and where that text is in the segment without tags."""

    opening: Markup
    closing: Markup
    text: str
    start: int
    end: int


def untagged_gap(location: str, marked: MarkedText, write: Callable[[list[Part]], list[Splice]]) -> Gap | None:
    """Return the gap of a segment whose texts have no tags; None if it has no tags, or some that cannot be placed."""
    text, pairs = _pairs_of(marked.inside)
    if not 0 < len(pairs) <= _MOST_PAIRS or not all(has_words([pair.text]) for pair in pairs):
        return None

    def fill(translations: Sequence[str]) -> list[Splice]:
        whole, *pieces = translations
        places = _places(whole, pieces, pairs, length=len(text))
        return write([*marked.before, *_with_pairs(whole, pairs, places), *marked.after])

    return Gap(location, (text, *(pair.text for pair in pairs)), fill)


def _pairs_of(parts: Sequence[Part]) -> tuple[str, list[_TagPair]]:
    """Return a segment without its tags, and its pairs in order; no pairs if any tag is not in a pair."""
    text, pairs = "", []
    opened: list[tuple[Markup, int]] = []
    for part in parts:
        if isinstance(part, str):
            text += part
        elif part.kind == "opens":
            opened.append((part, len(text)))
        elif part.kind == "closes" and opened and opened[-1][0].group == part.group:
            opening, start = opened.pop()
            pairs.append(_TagPair(opening, part, text[start:], start, len(text)))
        else:
            return text, []
    # Outer pairs first, also around the same words: an outer pair closes after an inner one.
    pairs.reverse()
    return text, sorted(pairs, key=lambda pair: (pair.start, -pair.end))


def _places(whole: str, pieces: Sequence[str], pairs: Sequence[_TagPair], *, length: int) -> list[tuple[int, int]]:
    """Return the start and end of each pair in the translation `whole`; `pieces` are the pairs' own translations."""
    words = list(_WORD.finditer(whole))
    if len(words) > _MOST_WORDS:
        raise DoesNotFitError(f"it has tags and more than {_MOST_WORDS} words")
    places: list[tuple[int, int]] = []
    for pair, piece in zip(pairs, pieces, strict=True):
        best = (0.0, 0, 0)
        for wanted in (piece, pair.text):
            size = len(_WORD.findall(wanted))
            for start in range(len(words)):
                for end in range(start + max(1, size - 1), min(start + size + 1, len(words)) + 1):
                    place = words[start].start(), words[end - 1].end()
                    likeness = _likeness(whole[slice(*place)], wanted)
                    distance = abs(place[0] / max(1, len(whole)) - pair.start / max(1, length))
                    if likeness >= _LEAST_LIKENESS and _fits(place, pair, places, pairs):
                        best = max(best, (likeness - _WEIGHT_OF_PLACE * distance, *place))
        if best[2] == 0:
            raise DoesNotFitError(f"the place of {pair.opening.text} in the translation is not known")
        places.append(best[1:])
    return places


def _likeness(text: str, wanted: str) -> float:
    wanted = wanted.strip(" .,;:!?").casefold()
    text = text.casefold()
    if not wanted or len(text) > 2 * len(wanted) or len(wanted) > 2 * len(text):
        return 0.0
    return SequenceMatcher(None, text, wanted, autojunk=False).ratio()


def _fits(place: tuple[int, int], pair: _TagPair, places: Sequence[tuple[int, int]], pairs: Sequence[_TagPair]) -> bool:
    """Return whether a pair may be here: inside the pairs that enclose it in the source, not overlapping the others."""
    for taken, other in zip(places, pairs, strict=False):
        is_inside = other.start <= pair.start and pair.end <= other.end
        if is_inside and not (taken[0] <= place[0] and place[1] <= taken[1]):
            return False
        if not is_inside and place[0] < taken[1] and taken[0] < place[1]:
            return False
    return True


def _with_pairs(whole: str, pairs: Sequence[_TagPair], places: Sequence[tuple[int, int]]) -> list[Part]:
    """Return a translation with the pairs at their places; a tag closes before the next opens, the inner one first."""
    tags: list[tuple[int, int, int, int, Markup]] = []
    for number, (pair, (start, end)) in enumerate(zip(pairs, places, strict=True)):
        tags += [(start, 1, -end, number, pair.opening), (end, 0, -start, -number, pair.closing)]
    parts: list[Part] = []
    done = 0
    for position, _, _, _, markup in sorted(tags, key=lambda tag: tag[:4]):
        parts += [whole[done:position], markup]
        done = position
    return [part for part in [*parts, whole[done:]] if part != ""]
