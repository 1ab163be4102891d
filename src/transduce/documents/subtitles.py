"""SRT and WebVTT subtitles: translate the text of each cue. Numbers, times, styles, notes and tags stay.

A cue of n lines is translated as one text and broken into at most n lines again; lines that begin with a dash are the
turns of different speakers, each translated separately. A sentence that continues in the next cue is not joined.
"""

import html
import re
from collections.abc import Iterator, Sequence

from transduce.documents.document import Document, Gap, Splice
from transduce.documents.marked_gap import marked_gap
from transduce.documents.marked_text import Markup, Part, tagged_parts, wrap

_TIMES = re.compile(rb"\s*(?:\d{1,3}:)?\d{1,2}:\d{2}[,.]\d{1,3}\s+-->\s+(?:\d{1,3}:)?\d{1,2}:\d{2}[,.]\d{1,3}(?:\s.*)?")
_NOT_CUES = re.compile(rb"(?:NOTE|STYLE|REGION)(?:\s|$)")
_TAG = re.compile(r"</?[A-Za-z\d][^<>]{0,200}+>|\{\\[^{}]{1,60}+\}")
_TURN = re.compile(r"\s*(?:-|–|—|&gt;&gt;)\s*")
_WIDER = 1.08

Line = tuple[int, bytes]
"""A line without its end, and its offset."""


def srt_gaps(document: Document) -> Iterator[Gap]:
    """Yield the text of every cue of an SRT file."""
    for block in _blocks(document):
        yield from _gaps_of_cue(document, block, is_vtt=False)


def vtt_gaps(document: Document) -> Iterator[Gap]:
    """Yield the text of every cue of a WebVTT file."""
    blocks = _blocks(document)
    header = next(blocks, [(0, b"")])
    if not re.match(rb"WEBVTT(?:\s|$)", header[0][1]):
        raise document.fault(0, "a WebVTT file begins with the line WEBVTT. Add it, or name the file .srt.")
    for block in blocks:
        if not _NOT_CUES.match(block[0][1]):
            yield from _gaps_of_cue(document, block, is_vtt=True)


def _blocks(document: Document) -> Iterator[list[Line]]:
    """Yield runs of lines that are not blank."""
    block: list[Line] = []
    for start, line in document.lines():
        if line.strip():
            block.append((start, line))
        elif block:
            yield block
            block = []
    if block:
        yield block


def _gaps_of_cue(document: Document, block: Sequence[Line], *, is_vtt: bool) -> Iterator[Gap]:
    """Yield a gap for each turn in a cue: an optional number or name, the times, and lines of text."""
    times = next((index for index, (_, line) in enumerate(block[:2]) if _TIMES.fullmatch(line)), None)
    if times is None:
        form = "00:00:01.000 --> 00:00:02.500" if is_vtt else "00:00:01,000 --> 00:00:02,500"
        raise document.fault(
            block[min(1, len(block) - 1)][0] if block[0][1].strip().isdigit() else block[0][0],
            f"the cue lacks its line of times, such as {form}. Add it, or remove a blank line inside the cue before.",
        )
    turns: list[list[Line]] = []
    for start, line in block[times + 1 :]:
        if not turns or _TURN.match(line.decode("utf-8")):
            turns.append([])
        turns[-1].append((start, line))
    for turn in turns:
        if gap := _gap_of_turn(document, turn, is_vtt=is_vtt):
            yield gap


def _gap_of_turn(document: Document, turn: Sequence[Line], *, is_vtt: bool) -> Gap | None:
    start, end = turn[0][0], turn[-1][0] + len(turn[-1][1])
    newline = "\r\n" if document.content[end : end + 2] == b"\r\n" else "\n"
    text = " ".join(line.decode("utf-8").strip() for _, line in turn)
    dash = _TURN.match(text)
    lead = dash[0] if dash else ""
    parts = [Markup('<x id="lead"/>', lead, "alone"), *tagged_parts(text[len(lead) :], _TAG)]
    if is_vtt:
        parts = [html.unescape(part) if isinstance(part, str) else part for part in parts]

    def write(parts: list[Part]) -> list[Splice]:
        escape = (lambda text: html.escape(text, quote=False)) if is_vtt else str
        flat = [part if isinstance(part, Markup) else " ".join(part.splitlines()) for part in parts]
        width = sum(len(part) for part in flat if isinstance(part, str)) / len(turn)
        lines = wrap(flat, width=int(width), write=escape, tag_width=False)
        while len(lines) > len(turn):  # terminates: the width grows until one line holds all
            width = width * _WIDER + 1
            lines = wrap(flat, width=int(width), write=escape, tag_width=False)
        return [Splice(start, end, newline.join(lines))]

    return marked_gap(document.location(start), parts, write)
