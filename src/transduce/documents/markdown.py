"""Markdown: translate paragraphs, headings, list items and table cells in place.

Front matter, code blocks, HTML blocks, inline code, tags, images, link targets, reference definitions and the marks
of lists, quotes and tables stay. A paragraph of several lines is wrapped at the same width. A translation is written
only if it reads back as the same paragraph with the same markup, if need be with escaped punctuation.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

from markdown_it.token import Token

from transduce.documents.document import Document, DoesNotFitError, Gap, Splice
from transduce.documents.markdown_inlines import MarkdownParser
from transduce.documents.marked_gap import marked_gap
from transduce.documents.marked_text import Markup, Part, wrap

UNLOCATED = "its place in the file cannot be told for certain"
TOO_LONG = "it is longer than 20,000 characters"
_MOST_CHARACTERS = 20_000
_FRONT_MATTER = re.compile(r"(---|\+\+\+)[ \t]*+\r?\n")
_PUNCTUATION = re.compile(r"([\\`*_\[\]<>~&|])")
# The start of a line that begins another block: a heading, a quote, a list, an underline, a fence.
_BLOCK_START = re.compile(r"^(?:(\d{1,9})(?=[.)](?:\s|$))|(?=[#>=+*|~-]|`{3}))", re.MULTILINE)


def markdown_gaps(document: Document) -> Iterator[Gap]:
    """Yield every paragraph, heading, list item and table cell that has words."""
    text = re.sub(r"\r(?!\n)", " ", document.content.decode("utf-8"))
    parser = MarkdownParser()
    tokens = parser.blocks(_without_front_matter(text), is_whole=True)
    lines = list(document.lines())
    cursors: dict[int, int] = {}  # by line of a table: where to search for its next cell
    for before, token in pairwise(tokens):
        if token.type == "inline" and token.map is not None and token.content:
            place = _place(lines, token, cursors if before.type in ("th_open", "td_open") else None)
            gap = _gap(document, parser, token.content, place, block=before.type)
            if gap is not None:
                yield gap


def _gap(
    document: Document, parser: MarkdownParser, content: str, place: tuple[int, int, str] | int, *, block: str
) -> Gap | None:
    """Return the gap of a paragraph; `place` is its start, end and the prefix of its further lines, or only a start."""
    if isinstance(place, int):
        return Gap(document.location(place), skip_reason=UNLOCATED)
    start, end, prefix = place
    location = document.location(start)
    if len(content) > _MOST_CHARACTERS:
        return Gap(location, skip_reason=TOO_LONG)
    source_lines = content.split("\n")
    width = max(map(len, source_lines)) if len(source_lines) > 1 else _MOST_CHARACTERS * 100
    is_cell = block in ("th_open", "td_open")
    newline = "\r\n" if b"\r\n" in document.content[start:end] else "\n"

    def write(parts: list[Part]) -> list[Splice]:
        flat = [part if isinstance(part, Markup) else _on_one_line(part) for part in parts]
        for escape in (_as_it_is, _escaped):
            text = "\n".join(wrap(flat, width=width, write=escape, tag_width=True))
            if block == "paragraph_open":
                text = _BLOCK_START.sub(_escaped_start, text) if not _is_paragraph(parser, text) else text
            is_block = _is_paragraph(parser, text) if block == "paragraph_open" else "\n" not in text
            if is_block and _shown(parser.parts(text)) == _shown(flat):
                if is_cell:
                    text = re.sub(r"(?<!\\)\|", r"\\|", text)
                return [Splice(start, end, text.replace("\n", newline + prefix))]
        raise DoesNotFitError("it would be read as other Markdown")

    return marked_gap(location, parser.parts(content), write)


def _place(lines: list[tuple[int, bytes]], token: Token, cursors: dict[int, int] | None) -> tuple[int, int, str] | int:
    """Return where a token's content starts and ends, and the prefix of its second line; only the start if unsure."""
    assert token.map is not None
    first = token.map[0]
    found: list[tuple[int, int, str]] = []
    for number, wanted in enumerate(token.content.split("\n"), start=first):
        offset, line = lines[number]
        shown = line.decode("utf-8")
        if cursors is not None:
            wanted = wanted.replace("|", "\\|")
            column = shown.find(wanted, cursors.get(number, 0)) if cursors.get(number, 0) >= 0 else -1
            cursors[number] = column + len(wanted) if column >= 0 else -1
        elif shown.rstrip().endswith(wanted.rstrip()):
            column = len(shown.rstrip()) - len(wanted.rstrip())
        else:
            column = shown.find(wanted)
        if column < 0:
            return lines[first][0]
        start = offset + len(shown[:column].encode("utf-8"))
        found.append((start, start + len(wanted.rstrip().encode("utf-8")), shown[:column]))
    return found[0][0], found[-1][1], found[min(1, len(found) - 1)][2]


def _without_front_matter(text: str) -> str:
    """Return the text with blank lines in place of YAML (---) or TOML (+++) at its beginning."""
    opening = _FRONT_MATTER.match(text)
    if opening is None:
        return text
    closing = re.compile(rf"^{re.escape(opening[1])}[ \t]*+\r?$", re.MULTILINE).search(text, opening.end())
    if closing is None:
        return text
    return "\n" * text.count("\n", 0, closing.end()) + text[closing.end() :]


def _is_paragraph(parser: MarkdownParser, text: str) -> bool:
    """Return whether a text is one paragraph and nothing else."""
    return [token.type for token in parser.blocks(text, is_whole=False)] == [
        "paragraph_open",
        "inline",
        "paragraph_close",
    ]


def _shown(parts: list[Part]) -> list[tuple[str, str]]:
    """Return parts in a canonical form, to compare ways to write them: texts joined, spaces single, tags raw."""
    shown: list[tuple[str, str]] = []
    for part in parts:
        kind, text = ("text", part) if isinstance(part, str) else (part.kind, part.raw)
        if kind == "text" and shown and shown[-1][0] == "text":
            shown[-1] = ("text", shown[-1][1] + text)
        else:
            shown.append((kind, text))
    return [(kind, re.sub(r"\s+", " ", text)) for kind, text in shown if text]


def _on_one_line(text: str) -> str:
    first, *rest = text.split("\n")
    return " ".join([first.rstrip(), *filter(None, map(str.strip, rest[:-1])), rest[-1].lstrip()]) if rest else text


def _as_it_is(text: str) -> str:
    return text


def _escaped(text: str) -> str:
    return _PUNCTUATION.sub(r"\\\1", text)


def _escaped_start(match: re.Match[str]) -> str:
    return f"{match[1]}\\" if match[1] else "\\"
