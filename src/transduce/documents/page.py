"""HTML pages: translate the text between block elements, and put inline tags back around the right words.

Scripts, styles, code, comments, attributes and elements with translate="no" stay as they are. White space inside a
paragraph becomes single spaces, which a browser shows the same; white space around it is kept.
"""

import html
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from transduce.documents.document import Document, Gap, Splice
from transduce.documents.marked_gap import marked_gap
from transduce.documents.marked_text import Markup, Part, has_words, pair_tags
from transduce.documents.page_tokens import PageToken, page_tokens

UNCLOSED = "its tags are not closed within it"
_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?([\w.:-]{1,40})""", re.IGNORECASE)
_INLINE = frozenset(
    {"a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "del", "dfn", "em", "font", "i", "ins", "label", "mark"}
    | {"q", "ruby", "s", "small", "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "img", "wbr", "input"}
)
# Inline elements that become one tag together with their content.
_OPAQUE = frozenset(["code", "kbd", "samp", "var", "svg", "math", "button", "select", "object", "iframe"])
# Blocks whose content is not translated.
_UNTOUCHED = frozenset(
    ["script", "style", "pre", "textarea", "template", "noscript", "xmp", "noembed", "noframes", "plaintext"]
)
_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"}
)
_SPACE = re.compile(r"[ \t\r\n\f]+")


def html_encoding(content: bytes, *, path: Path) -> str:
    """Return the encoding that a page without a byte order mark declares."""
    found = _CHARSET.search(content[:4096])
    return found[1].decode("ascii", "replace") if found else "utf-8"


def html_gaps(document: Document) -> Iterator[Gap]:
    """Yield a gap for every segment that has words."""
    for start, end, parts in _segments(document.content):
        location = document.location(start)
        if not has_words(parts):
            continue
        if not pair_tags(parts):
            yield Gap(location, skip_reason=UNCLOSED)
            continue

        def write(parts: list[Part], place: tuple[int, int] = (start, end)) -> list[Splice]:
            text = "".join(html.escape(part, quote=False) if isinstance(part, str) else part.raw for part in parts)
            return [Splice(*place, text)]

        if gap := marked_gap(location, _with_single_spaces(parts), write):
            yield gap


def _segments(page: bytes) -> Iterator[tuple[int, int, list[Part]]]:
    """Yield the start, the end and the parts of every run of text and inline tags between blocks."""
    parts: list[Part] = []
    start = number = index = 0
    tokens = list(page_tokens(page))
    closings = _closing_tokens(tokens)
    while index < len(tokens):
        token = tokens[index]
        last = index
        if token.kind == "opens" and (token.is_kept or token.name in _OPAQUE | _UNTOUCHED) and token.name not in _VOID:
            last = closings.get(index, index)
        if token.kind in ("text", "comment") or token.name in _INLINE | _OPAQUE:
            if not parts:
                start = token.start
            number += 1
            raw = page[token.start : tokens[last].end].decode("utf-8")
            parts.append(_part(token, raw, number, is_whole=last > index))
        else:
            if parts:
                yield start, token.start, parts
            parts = []
        index = last + 1
    if parts:
        yield start, tokens[-1].end, parts


def _part(token: PageToken, raw: str, number: int, *, is_whole: bool) -> Part:
    """Return a token as a part of a segment; `is_whole` if `raw` is an element with its content."""
    if token.kind == "text":
        return html.unescape(raw)
    name = token.name or "comment"
    if is_whole or token.kind in ("alone", "comment") or token.name in _VOID:
        return Markup(f'<{name} id="{number}"/>', raw, "alone")
    if token.kind == "opens":
        return Markup(f'<{name} id="{number}">', raw, "opens", str(number))
    return Markup(f"</{name}>", raw, "closes")


def _closing_tokens(tokens: Sequence[PageToken]) -> dict[int, int]:
    """Return the index of the closing token for the index of each opening one; unclosed elements are left out."""
    opened: dict[str, list[int]] = {}
    closings: dict[int, int] = {}
    for index, token in enumerate(tokens):
        if token.kind == "opens":
            opened.setdefault(token.name, []).append(index)
        elif token.kind == "closes" and opened.get(token.name):
            closings[opened[token.name].pop()] = index
    return closings


def _with_single_spaces(parts: Sequence[Part]) -> list[Part]:
    """Reduce white space to single spaces, except at the two ends of the segment."""
    spaced: list[Part] = []
    for index, part in enumerate(parts):
        if isinstance(part, Markup):
            spaced.append(part)
            continue
        inner = part.strip(" \t\r\n\f")
        lead, _, rest = part.partition(inner) if inner else (part, "", "")
        before = lead if index == 0 else _SPACE.sub(" ", lead)
        after = rest if index == len(parts) - 1 else _SPACE.sub(" ", rest)
        spaced += [text for text in (before, _SPACE.sub(" ", inner), after) if text]
    return spaced
