"""Inline markup of translation units as text: every element in a sentence becomes a tag that `protect` recognises.

    Click <g id="1">here</g><x id="2"/>          becomes  Click <g id="1">here</g><x id="2"/>
    Click <bpt i="1">&lt;a&gt;</bpt>here…        becomes  Click <bpt i="1"/>here…

A tag keeps only its name and the attribute that links it to its partner in the translation, so that it is written the
same in source and target, whatever other attributes the tools wrote.
"""

from dataclasses import dataclass
from typing import Literal
from xml.sax.saxutils import escape

from transduce.data.formats.xml_units import Element

# Elements of TMX 1.4, XLIFF 1.2 and XLIFF 2 whose content is code of another format, not text.
_CODES = frozenset(["bpt", "ept", "ph", "it", "ut", "x", "bx", "ex", "cp", "sc", "ec", "sm", "em"])
_MARKS = frozenset({"mrk"})
_LINKS = ("id", "rid", "i", "x", "startRef", "hex")
_LONGEST_CODE = 40


@dataclass(frozen=True)
class InlineTag:
    """One tag in a segment's text: its written form, its element, and whether it opens, closes or stands alone."""

    text: str
    element: Element
    kind: Literal["opens", "closes", "alone"]


def inline_text(element: Element) -> str:
    """Return the text of a segment with its inline elements as tags; annotations (`mrk`) are left out."""
    return "".join(part if isinstance(part, str) else part.text for part in inline_parts(element, keeps_marks=False))


def inline_parts(element: Element, *, keeps_marks: bool) -> list[str | InlineTag]:
    """Return a segment's text and tags, in order."""
    parts: list[str | InlineTag] = []
    for child in element.children:
        if isinstance(child, str):
            parts.append(child)
        elif child.name in _CODES:
            parts.append(InlineTag(f"<{child.name}{_link(child)}/>", child, "alone"))
        else:
            inner = inline_parts(child, keeps_marks=keeps_marks)
            if child.name in _MARKS and not keeps_marks:
                parts += inner
            else:
                opening = InlineTag(f"<{child.name}{_link(child)}>", child, "opens")
                parts += [opening, *inner, InlineTag(f"</{child.name}>", child, "closes")]
    return parts


def _plain_text(element: Element) -> str:
    return "".join(child if isinstance(child, str) else _plain_text(child) for child in element.children)


def _link(element: Element) -> str:
    for name in _LINKS:
        if name in element.attributes:
            return f' {name}="{_quoted(element.attributes[name])}"'
    code = _plain_text(element).strip() if element.name in _CODES else ""
    return f' code="{_quoted(code[:_LONGEST_CODE])}"' if code else ""


def _quoted(value: str) -> str:
    """Return an attribute's value, escaped and on one line."""
    return " ".join(escape(value, {'"': "&quot;"}).split())
