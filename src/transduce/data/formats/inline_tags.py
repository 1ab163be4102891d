"""Inline markup of translation units as text: an element in a sentence becomes a tag that `protect` sees.

    Click <g id="1">here</g><x id="2"/>          is read as  Click <g id="1">here</g><x id="2"/>
    Click <bpt i="1">&lt;a&gt;</bpt>here…        is read as  Click <bpt i="1"/>here…

What a tag is written as is settled by its name and by the attribute that links it to its partner in the translation,
so the same tag is written alike on both sides whatever else the tools that wrote the file put into it.
"""

from dataclasses import dataclass
from typing import Literal

from transduce.data.formats.xml_units import Element

# Their content is another format's code, not text: TMX 1.4, XLIFF 1.2, XLIFF 2.
_CODES = frozenset(["bpt", "ept", "ph", "it", "ut", "x", "bx", "ex", "cp", "sc", "ec", "sm", "em"])
_MARKS = frozenset({"mrk"})
_LINKS = ("id", "rid", "i", "x", "startRef", "hex")
_LONGEST_CODE = 40


@dataclass(frozen=True)
class Tag:
    """One tag in a text: how it is written there, which element it is, and whether it opens, closes or stands alone."""

    text: str
    element: Element
    kind: Literal["opens", "closes", "alone"]


def inline_text(element: Element) -> str:
    """Return the text of a segment with its inline elements as tags; marks, such as a term's, leave no trace."""
    return "".join(part if isinstance(part, str) else part.text for part in inline_parts(element, keeps_marks=False))


def inline_parts(element: Element, *, keeps_marks: bool) -> list[str | Tag]:
    """Return the segment as its stretches of text and its tags, in order."""
    parts: list[str | Tag] = []
    for child in element.children:
        if isinstance(child, str):
            parts.append(child)
        elif child.name in _CODES:
            parts.append(Tag(f"<{child.name}{_link(child)}/>", child, "alone"))
        else:
            inner = inline_parts(child, keeps_marks=keeps_marks)
            if child.name in _MARKS and not keeps_marks:
                parts += inner
            else:
                opening = Tag(f"<{child.name}{_link(child)}>", child, "opens")
                parts += [opening, *inner, Tag(f"</{child.name}>", child, "closes")]
    return parts


def plain_text(element: Element) -> str:
    """Return all text inside an element."""
    return "".join(child if isinstance(child, str) else plain_text(child) for child in element.children)


def _link(element: Element) -> str:
    for name in _LINKS:
        if name in element.attributes:
            return f' {name}="{_quoted(element.attributes[name])}"'
    code = plain_text(element).strip() if element.name in _CODES else ""
    return f' code="{_quoted(code[:_LONGEST_CODE])}"' if code else ""


def _quoted(value: str) -> str:
    """Return a value that stands between quotes inside angle brackets without ending either."""
    for character, name in (("&", "&amp;"), ('"', "&quot;"), ("<", "&lt;"), (">", "&gt;")):
        value = value.replace(character, name)
    return " ".join(value.split())
