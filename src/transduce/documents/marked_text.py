"""A segment with tags in it: the text that the model sees, and its translation with the tags put back.

Tags at the edges never reach the model: a pair around the whole segment, or a tag before the first word, is put back
where it was. Tags inside become placeholders. A translation is refused unless it has every tag once, pairs open before
they close, elements nest, and a pair encloses words if and only if it did so in the source.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal

from transduce.documents.document import DoesNotFitError
from transduce.text.placeholders import protect

# Putting tags back takes quadratic time in their number, and no sentence for readers has so many.
_MOST_TAGS = 100
_TAG_NAME = re.compile(r"<(/?)([\w:-]{1,30}+)[^<>]*?(/?)>")


@dataclass(frozen=True)
class Markup:
    """One tag of a segment."""

    text: str
    """The tag in the text that is translated, in a form that becomes a placeholder."""
    raw: str
    """The tag as it is written in the document."""
    kind: Literal["opens", "closes", "alone"]
    group: str = ""
    """The identifier that an opening tag shares with its closing tag."""
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
        inside = [part for part in parts if part != ""]
        start, end = 0, len(inside)
        while start < end:
            if _is_space_or_alone(inside[start]):
                start += 1
            elif _is_space_or_alone(inside[end - 1]):
                end -= 1
            elif end - start == 1:
                break
            elif _are_pair(inside[start], inside[end - 1]):
                start, end = start + 1, end - 1
            elif _are_pair(inside[start], inside[start + 1]):
                start += 2
            elif _are_pair(inside[end - 2], inside[end - 1]):
                end -= 2
            else:
                break
        return cls(tuple(inside[:start]), tuple(inside[start:end]), tuple(inside[end:]))

    @property
    def text(self) -> str:
        """The text to translate; empty if the segment has no words."""
        return "".join(part if isinstance(part, str) else part.text for part in self.inside)

    def with_translation(self, translation: str) -> list[Part]:
        """Return the segment's parts in translation; DoesNotFitError if the tags in it are not as they must be."""
        return [*self.before, *_split_at_tags(translation, self.inside), *self.after]


def has_words(parts: Sequence[Part]) -> bool:
    """Return whether a segment has letters outside tags and placeholders."""
    return any(isinstance(part, str) and any(map(str.isalpha, protect(part).text)) for part in parts)


def joined_texts(parts: Sequence[Part]) -> list[Part]:
    """Return parts with neighbouring texts joined and empty ones left out."""
    joined: list[Part] = []
    for is_text, run in groupby((part for part in parts if part != ""), key=lambda part: isinstance(part, str)):
        members = list(run)
        joined += ["".join(map(str, members))] if is_text else members
    return joined


def pair_tags(parts: list[Part]) -> bool:
    """Give every closing tag the group of its opening tag, in place; return whether all tags have a partner."""
    opened: list[Markup] = []
    for index, part in enumerate(parts):
        if isinstance(part, Markup) and part.kind == "opens":
            opened.append(part)
        elif isinstance(part, Markup) and part.kind == "closes":
            if not opened or f"</{opened[-1].text[1:].split()[0]}>" != part.text:
                return False
            parts[index] = replace(part, group=opened.pop().group)
    return not opened


def tagged_parts(text: str, pattern: re.Pattern[str]) -> list[Part]:
    """Return a text cut at the tags that a pattern finds; if they are not in pairs, each stands alone."""
    parts: list[Part] = []
    done = 0
    for number, match in enumerate(pattern.finditer(text)):
        name = _TAG_NAME.fullmatch(match[0])
        kind: Literal["opens", "closes", "alone"] = "alone"
        shown = f'<x id="{number}"/>'
        if name is not None and name[1]:
            kind, shown = "closes", f"</g{name[2]}>"
        elif name is not None and not name[3]:
            kind, shown = "opens", f'<g{name[2]} id="{number}">'
        parts += [text[done : match.start()], Markup(shown, match[0], kind, str(number))]
        done = match.end()
    parts.append(text[done:])
    if pair_tags(parts):
        return parts
    numbers = range(len(parts))
    return [
        part if isinstance(part, str) else Markup(f'<x id="{number}"/>', part.raw, "alone")
        for number, part in zip(numbers, parts, strict=True)
    ]


def wrap(parts: Sequence[Part], *, width: int, write: Callable[[str], str], tag_width: bool) -> list[str]:
    """Return a segment as lines of at most `width` characters where it has spaces to break at.

    `write` turns text into the document's form; `tag_width` says whether tags count towards the width.
    """
    lines: list[list[str]] = [[]]
    used, word, size = 0, "", 0

    def end_word() -> None:
        nonlocal used, word, size
        if lines[-1] and used + 1 + size > width:
            lines.append([])
            used = 0
        used += size + bool(lines[-1])
        lines[-1].append(word)
        word, size = "", 0

    for part in parts:
        if isinstance(part, Markup):
            word, size = word + part.raw, size + len(part.raw) * tag_width
            continue
        for number, piece in enumerate(part.split(" ")):
            if number:
                end_word()
            word, size = word + write(piece), size + len(piece)
    end_word()
    return [" ".join(words) for words in lines]


def _split_at_tags(translation: str, source: Sequence[Part]) -> list[Part]:
    """Return a translation as text and the tags of its source, each tag where the model put it."""
    unused: dict[str, list[Markup]] = {}
    for part in source:
        if isinstance(part, Markup):
            unused.setdefault(part.text, []).append(part)
    if sum(map(len, unused.values())) > _MOST_TAGS:
        raise DoesNotFitError(f"it has more than {_MOST_TAGS} tags")
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
    """Remove and return the tag that fits here from `candidates`, which are written alike; update the open tags."""
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
