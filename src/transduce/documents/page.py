"""HTML pages: translate the text between block elements, and put inline tags back around the right words.

Scripts, styles, code, comments, attributes and elements with translate="no" stay as they are. White space inside a
paragraph becomes single spaces, which a browser shows the same; white space around it is kept.
"""

import html
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from itertools import accumulate
from pathlib import Path

from transduce.documents.document import Document, Gap, Splice
from transduce.documents.marked_text import MarkedText, Markup, Part

UNCLOSED = "its tags are not closed within it"
_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?([\w.:-]{1,40})""", re.IGNORECASE)
_INLINE = frozenset(
    {"a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "del", "dfn", "em", "font", "i", "ins", "label", "mark"}
    | {"q", "ruby", "s", "small", "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "img", "wbr", "input"}
)
# Inline elements that go through as one tag, with their content.
_OPAQUE = frozenset(["code", "kbd", "samp", "var", "svg", "math", "button", "select", "object", "iframe"])
# Blocks whose content is left alone.
_UNTOUCHED = frozenset(["script", "style", "pre", "textarea", "template", "noscript"])
_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"}
)
_MOST_UNENDED = 20
_SPACE = re.compile(r"[ \t\r\n\f]+")


@dataclass
class _PageEvent:
    """A tag, a comment or a run of text, and its offsets in the page."""

    start: int
    kind: str
    name: str = ""
    is_kept: bool = False
    """Whether the tag says translate="no"."""
    end: int = -1


class _PageParser(HTMLParser):
    """Collects the events of a page in order."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=False)
        self.events: list[_PageEvent] = []
        self._line_starts = [0, *accumulate(len(line) + 1 for line in page.split("\n"))]
        end = _start_of_unended_comments(page)
        self.feed(page[:end])
        self.close()
        ends = [event.start for event in self.events[1:]] + [end]
        for event, end in zip(self.events, ends, strict=False):
            event.end = end

    def _add(self, kind: str, name: str = "", *, is_kept: bool = False) -> None:
        line, column = self.getpos()
        self.events.append(_PageEvent(self._line_starts[line - 1] + column, kind, name, is_kept))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._add("opens", tag, is_kept=("translate", "no") in attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._add("alone", tag)

    def handle_endtag(self, tag: str) -> None:
        self._add("closes", tag)

    def handle_comment(self, data: str) -> None:
        self._add("comment")

    def handle_data(self, data: str) -> None:
        self._add("text")

    def handle_entityref(self, name: str) -> None:
        self._add("text")

    def handle_charref(self, name: str) -> None:
        self._add("text")

    def handle_decl(self, decl: str) -> None:
        self._add("other")

    def handle_pi(self, data: str) -> None:
        self._add("other")

    def unknown_decl(self, data: str) -> None:
        self._add("other")

    def parse_marked_section(self, i: int, report: bool = True) -> int:
        # Python's parser asserts that it knows the section's name; to a browser "<![other[" begins a comment.
        try:
            return super().parse_marked_section(i, report)
        except AssertionError:
            return self.parse_bogus_comment(i)


def _start_of_unended_comments(page: str) -> int:
    """Return where the first of many comments that never end begins; the length of the page if there are few.

    For each such comment, the parser would search the whole rest of the page.
    """
    last = page.rfind("-->") + 1
    return page.index("<!--", last) if page.count("<!--", last) > _MOST_UNENDED else len(page)


def html_encoding(content: bytes, *, path: Path) -> str:
    """Return the encoding that a page without a byte order mark declares."""
    found = _CHARSET.search(content[:4096])
    return found[1].decode("ascii", "replace") if found else "utf-8"


def html_gaps(document: Document) -> Iterator[Gap]:
    """Yield every segment that has letters."""
    page = document.content.decode("utf-8")
    offsets = None if page.isascii() else [0, *accumulate(len(char.encode("utf-8")) for char in page)]
    line_ends = [match.start() for match in re.finditer("\n", page)]
    for start, end, parts in _segments(page):
        location = f"{document.path}:{bisect_right(line_ends, start) + 1}"
        if not any(isinstance(part, str) and any(map(str.isalpha, part)) for part in parts):
            continue
        if not _pair_tags(parts):
            yield Gap(location, skip_reason=UNCLOSED)
            continue
        marked = MarkedText.of(_with_single_spaces(parts))
        first, last = (start, end) if offsets is None else (offsets[start], offsets[end])

        def fill(
            translations: Sequence[str], marked: MarkedText = marked, place: tuple[int, int] = (first, last)
        ) -> list[Splice]:
            written = marked.with_translation(translations[0])
            text = "".join(html.escape(part, quote=False) if isinstance(part, str) else part.raw for part in written)
            return [Splice(*place, text)]

        yield Gap(location, (marked.text,), fill)


def _segments(page: str) -> Iterator[tuple[int, int, list[Part]]]:
    """Yield the start, the end and the parts of every run of text and inline tags between blocks."""
    parts: list[Part] = []
    start = number = index = 0
    events = _PageParser(page).events
    closings = _closing_events(events)
    while index < len(events):
        event = events[index]
        last = index
        if event.kind == "opens" and (event.is_kept or event.name in _OPAQUE | _UNTOUCHED) and event.name not in _VOID:
            last = closings.get(index, index)
        if event.kind in ("text", "comment") or event.name in _INLINE | _OPAQUE:
            if not parts:
                start = event.start
            number += 1
            parts.append(_part(event, page[event.start : events[last].end], number, is_whole=last > index))
        else:
            if parts:
                yield start, event.start, parts
            parts = []
        index = last + 1
    if parts:
        yield start, events[-1].end, parts


def _part(event: _PageEvent, raw: str, number: int, *, is_whole: bool) -> Part:
    """Return an event as a part of a segment; `is_whole` if `raw` is an element with its content."""
    if event.kind == "text":
        return html.unescape(raw)
    name = event.name or "comment"
    if is_whole or event.kind in ("alone", "comment") or event.name in _VOID:
        return Markup(f'<{name} id="{number}"/>', raw, "alone")
    if event.kind == "opens":
        return Markup(f'<{name} id="{number}">', raw, "opens", str(number))
    return Markup(f"</{name}>", raw, "closes")


def _closing_events(events: Sequence[_PageEvent]) -> dict[int, int]:
    """Return the index of the closing event for the index of each opening one; unclosed elements are left out."""
    opened: dict[str, list[int]] = {}
    closings: dict[int, int] = {}
    for index, event in enumerate(events):
        if event.kind == "opens":
            opened.setdefault(event.name, []).append(index)
        elif event.kind == "closes" and opened.get(event.name):
            closings[opened[event.name].pop()] = index
    return closings


def _pair_tags(parts: list[Part]) -> bool:
    """Give every closing tag the group of its opening tag, in place; return whether all tags have a partner."""
    opened: list[Markup] = []
    for index, part in enumerate(parts):
        if isinstance(part, Markup) and part.kind == "opens":
            opened.append(part)
        elif isinstance(part, Markup) and part.kind == "closes":
            if not opened or f"</{opened[-1].text[1:].split()[0]}>" != part.text:
                return False
            parts[index] = Markup(part.text, part.raw, "closes", opened.pop().group)
    return not opened


def _with_single_spaces(parts: Sequence[Part]) -> list[Part]:
    """Join neighbouring texts, and reduce white space to single spaces, except at the two ends of the segment."""
    joined: list[Part] = []
    for part in parts:
        if isinstance(part, str) and joined and isinstance(joined[-1], str):
            joined[-1] += part
        else:
            joined.append(part)
    spaced: list[Part] = []
    for index, part in enumerate(joined):
        if isinstance(part, Markup):
            spaced.append(part)
            continue
        inner = part.strip(" \t\r\n\f")
        lead, _, rest = part.partition(inner) if inner else (part, "", "")
        before = lead if index == 0 else _SPACE.sub(" ", lead)
        after = rest if index == len(joined) - 1 else _SPACE.sub(" ", rest)
        spaced += [text for text in (before, _SPACE.sub(" ", inner), after) if text]
    return spaced
