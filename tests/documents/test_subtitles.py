"""Subtitles: the text of cues changes; numbers, times, settings, tags and notes stay."""

from collections.abc import Callable

import pytest

from transduce.documents.filling import FillingReport
from transduce.errors import DataError

Fill = Callable[..., tuple[bytes, FillingReport]]

SRT = """1
00:00:01,000 --> 00:00:02,500
<i>one word</i>

2
00:00:03,000 --> 00:00:04,000  X1:40 X2:600
{\\an8}a longer text
of two lines

3
00:00:05,000 --> 00:00:06,000
- are you here?
- yes, I am

4
00:00:07,000 --> 00:00:08,000
♪ 1 2 3 ♪
"""
VTT = """WEBVTT - a title
Kind: captions

STYLE
::cue { color: red }

NOTE a note to keep

first
00:01.000 --> 00:02.000 align:start
<v Fred>hello <c.loud>you</c> &amp; me

00:00:03.000 --> 00:00:04.000
bye
"""


def test_only_the_text_of_srt_changes(fill: Fill) -> None:
    content, report = fill("x.srt", SRT)
    expected = SRT
    for text in ("one word", "a longer text\nof two lines", "are you here?", "yes, I am"):
        expected = expected.replace(text, text.upper())
    assert content.decode() == expected
    assert (report.filled, report.left) == (4, [])


def test_line_ends_and_a_byte_order_mark_stay(fill: Fill) -> None:
    before = "\ufeff" + SRT.replace("\n", "\r\n")
    content, _ = fill("x.srt", before)
    assert content.decode() == "\ufeff" + fill("x.srt", SRT)[0].decode().replace("\n", "\r\n")


def test_only_the_text_of_vtt_changes(fill: Fill) -> None:
    content, _ = fill("x.vtt", VTT)
    expected = VTT.replace("hello", "HELLO").replace(">you<", ">YOU<").replace("me\n\n", "ME\n\n").replace("bye", "BYE")
    assert content.decode() == expected.replace("naME", "name")


def test_a_longer_translation_keeps_the_number_of_lines(fill: Fill) -> None:
    content, _ = fill("x.srt", SRT, answer=lambda text: "many short words " * 5 + text)
    cue = content.decode().split("\n\n")[1].split("\n")[2:]
    assert len(cue) == 2
    assert abs(len(cue[0]) - len(cue[1])) < 25


@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        ("x.srt", "1\n00:00:01,000 --> 00:00:02,000\na\n\nstray text\n", "5:1"),
        ("x.srt", "1\n00:00:01,000 -> 00:00:02,000\na\n", "2:1"),
        ("x.srt", "just text\n", "1:1"),
        ("x.vtt", "00:01.000 --> 00:02.000\na\n", "1:1"),
        ("x.vtt", "WEBVTT\n\nid\nname\n00:01.000 --> 00:02.000\na\n", "3:1"),
    ],
)
def test_malformed_subtitles_are_refused_with_line_and_column(fill: Fill, name: str, content: str, place: str) -> None:
    with pytest.raises(DataError, match=rf"{name}:{place}: "):
        fill(name, content)
