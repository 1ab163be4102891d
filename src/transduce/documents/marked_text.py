"""A segment with tags in it: the text that the model sees, and its translation with the tags put back.

Tags at the edges never reach the model: a pair around the whole segment, or a tag before the first word, is put back
where it was. Tags inside become placeholders. A translation is refused unless it has every tag once, pairs open before
they close, elements nest, and a pair encloses words if and only if it did so in the source.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from transduce.documents.document import DoesNotFitError


@dataclass(frozen=True)
class Markup:
    """One tag of a segment."""

    text: str
    """The tag in the text that is translated, in a form that becomes a placeholder."""
    raw: str
    """The tag as it is written in the document."""
    kind: Literal["opens", "closes", "alone"]
    group: str = ""
    """What an opening tag and its closing tag have in common."""
    must_nest: bool = True
    """True for elements; pairs of codes, such as TMX's bpt and ept, may cross."""


Part = str | Markup


@dataclass(frozen=True)
class MarkedText:
    """A segment, split into the tags and spaces at its edges and what they enclose."""

    before: tuple[Part, ...]
    inside: tuple[Part, ...]
    after: tuple[Part, ...]

    @classmethod
    def of(cls, parts: Sequence[Part]) -> "MarkedText":
        """Split the edges off a segment."""
        before: list[Part] = []
        inside = [part for part in parts if part != ""]
        after: list[Part] = []
        while inside:
            first, last = inside[0], inside[-1]
            if _is_space_or_alone(first):
                before.append(inside.pop(0))
            elif _is_space_or_alone(last):
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
        """The text to translate; empty if the segment has no words."""
        return "".join(part if isinstance(part, str) else part.text for part in self.inside)

    def with_translation(self, translation: str) -> list[Part]:
        """Return the segment's parts in translation; DoesNotFitError if the tags in it are not as they must be."""
        return [*self.before, *_split_at_tags(translation, self.inside), *self.after]


def _split_at_tags(translation: str, source: Sequence[Part]) -> list[Part]:
    """Return a translation as text and the tags of its source, each tag where the model put it."""
    unused: dict[str, list[Markup]] = {}
    for part in source:
        if isinstance(part, Markup):
            unused.setdefault(part.text, []).append(part)
    found: list[Part] = []
    opened: list[Markup] = []
    position = 0
    if unused:
        pattern = re.compile("|".join(re.escape(text) for text in sorted(unused, key=len, reverse=True)))
        for match in pattern.finditer(translation):
            markup = _take_tag(unused[match[0]], opened)
            found += [translation[position : match.start()], markup]
            position = match.end()
    found.append(translation[position:])
    if lost := [markup.text for rest in unused.values() for markup in rest]:
        raise DoesNotFitError(f"{', '.join(lost)} got lost")
    if _groups_with_words(source) != _groups_with_words(found):
        raise DoesNotFitError("a pair of tags no longer encloses its words")
    return [part for part in found if part != ""]


def _take_tag(candidates: list[Markup], opened: list[Markup]) -> Markup:
    """Remove from `candidates`, tags that are written alike, the one that fits here, and update the open tags."""
    if not candidates:
        raise DoesNotFitError("a tag is repeated")
    markup = candidates[0]
    if markup.kind == "opens":
        opened.append(markup)
    elif markup.kind == "closes":
        groups = [other.group for other in opened if other.must_nest == markup.must_nest]
        closable = groups[-1:] if markup.must_nest else groups
        fitting = next((candidate for candidate in candidates if candidate.group in closable), None)
        if fitting is None:
            raise DoesNotFitError(f"{markup.text} closes a tag that is not open")
        markup = fitting
        opened[:] = [other for other in opened if other.group != markup.group]
    candidates.remove(markup)
    return markup


def _groups_with_words(parts: Sequence[Part]) -> dict[str, bool]:
    """Return for every pair of tags whether it encloses words."""
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


def _is_space_or_alone(part: Part) -> bool:
    return not part.strip() if isinstance(part, str) else part.kind == "alone"


def _are_pair(first: Part, last: Part) -> bool:
    return (
        isinstance(first, Markup)
        and isinstance(last, Markup)
        and (first.kind, last.kind) == ("opens", "closes")
        and first.group == last.group
    )
