"""A segment with markup in it: what the model sees of it, and whether its translation can be trusted with the tags.

Markup at the edges never reaches the model: a tag around the whole segment, or one before its first word, goes back
where it was. What is inside becomes symbols. A translation is refused unless every tag is there once, pairs open before
they close, elements nest, and a pair has words inside exactly if it had words inside before.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from transduce.documents.source import DoesNotFitError


@dataclass(frozen=True)
class Markup:
    """One tag of a segment."""

    text: str
    """As the model's placeholders see it."""
    raw: str
    """As it stands in the document."""
    kind: Literal["opens", "closes", "alone"]
    group: str = ""
    """What an opening and a closing tag have in common."""
    must_nest: bool = True
    """Elements must; pairs of codes, such as TMX's bpt and ept, may cross."""


Part = str | Markup


@dataclass(frozen=True)
class MarkedText:
    """A segment without the markup at its edges."""

    before: tuple[Part, ...]
    inside: tuple[Part, ...]
    after: tuple[Part, ...]

    @classmethod
    def of(cls, parts: Sequence[Part]) -> "MarkedText":
        """Take the markup off the edges of a segment."""
        before: list[Part] = []
        inside = [part for part in parts if part != ""]
        after: list[Part] = []
        while inside:
            first, last = inside[0], inside[-1]
            if _stands_alone(first):
                before.append(inside.pop(0))
            elif _stands_alone(last):
                after.insert(0, inside.pop())
            elif len(inside) > 1 and _are_pair(first, last):
                before.append(inside.pop(0))
                after.insert(0, inside.pop())
            elif len(inside) > 1 and _are_pair(first, inside[1]):
                before += [inside.pop(0), inside.pop(0)]
            elif len(inside) > 1 and _are_pair(inside[-2], last):
                after[:0] = [inside[-2], last]
                del inside[-2:]
            else:
                break
        return cls(tuple(before), tuple(inside), tuple(after))

    @property
    def text(self) -> str:
        """What is to be translated; empty if there are no words."""
        return "".join(part if isinstance(part, str) else part.text for part in self.inside)

    def with_translation(self, translation: str) -> list[Part]:
        """Return the segment in its translation; DoesNotFitError if the tags did not come back whole."""
        return [*self.before, *fit(self.inside, translation), *self.after]


def fit(parts: Sequence[Part], translation: str) -> list[Part]:
    """Return a translation cut into text and tags, which stand where the model has put them."""
    left: dict[str, list[Markup]] = {}
    for part in parts:
        if isinstance(part, Markup):
            left.setdefault(part.text, []).append(part)
    found: list[Part] = []
    opened: list[Markup] = []
    position = 0
    if left:
        pattern = re.compile("|".join(re.escape(text) for text in sorted(left, key=len, reverse=True)))
        for match in pattern.finditer(translation):
            markup = _take(left[match[0]], opened)
            found += [translation[position : match.start()], markup]
            position = match.end()
    found.append(translation[position:])
    if lost := [markup.text for rest in left.values() for markup in rest]:
        raise DoesNotFitError(f"{', '.join(lost)} got lost")
    if _groups_with_words(parts) != _groups_with_words(found):
        raise DoesNotFitError("a pair of tags no longer stands around its words")
    return [part for part in found if part != ""]


def _take(candidates: list[Markup], opened: list[Markup]) -> Markup:
    """Take the tag that is meant out of those that look like this one, and keep account of what is open."""
    if not candidates:
        raise DoesNotFitError("a tag is repeated")
    if candidates[0].kind == "closes":
        open_groups = [markup.group for markup in opened if markup.must_nest == candidates[0].must_nest]
        fitting = open_groups[-1:] if candidates[0].must_nest else open_groups
        markup = next((candidate for candidate in candidates if candidate.group in fitting), None)
        if markup is None:
            raise DoesNotFitError(f"{candidates[0].text} closes what is not open")
        opened[:] = [other for other in opened if other.group != markup.group]
    else:
        markup = candidates[0]
        if markup.kind == "opens":
            opened.append(markup)
    candidates.remove(markup)
    return markup


def _groups_with_words(parts: Sequence[Part]) -> dict[str, bool]:
    groups: dict[str, bool] = {}
    opened: set[str] = set()
    for part in parts:
        if isinstance(part, str):
            if part.strip():
                groups.update(dict.fromkeys(opened, True))
        elif part.kind == "opens":
            opened.add(part.group)
            groups[part.group] = False
        elif part.kind == "closes":
            opened.discard(part.group)
    return groups


def _stands_alone(part: Part) -> bool:
    return not part.strip() if isinstance(part, str) else part.kind == "alone"


def _are_pair(first: Part, last: Part) -> bool:
    return (
        isinstance(first, Markup)
        and isinstance(last, Markup)
        and (first.kind, last.kind) == ("opens", "closes")
        and first.group == last.group
    )
