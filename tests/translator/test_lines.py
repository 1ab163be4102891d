"""Streams of lines: one for one, in order, whatever they hold."""

import io
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.translator import lines as module
from transduce.translator.lines import LineReader, on_one_line, windows


@given(st.lists(st.binary(max_size=12).filter(lambda b: b"\n" not in b and not b.endswith(b"\r")), max_size=20))
def test_as_many_lines_come_out_as_went_in(raw: list[bytes]) -> None:
    for end in (b"\n", b"\r\n"):
        reader = LineReader([io.BytesIO(b"".join(line + end for line in raw))])
        assert list(reader) == [line.decode("utf-8", "replace") for line in raw]
        assert reader.damaged_lines == sum(
            "\ufffd" in line.decode("utf-8", "replace") for line in raw if not _valid(line)
        )


def _valid(raw: bytes) -> bool:
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def test_only_line_feeds_end_lines() -> None:
    text = "a\u2028b\x0bc\x85d\re\x00\n\nlast"
    assert list(LineReader([io.BytesIO(text.encode())])) == ["a\u2028b\x0bc\x85d\re\x00", "", "last"]


def test_streams_follow_one_another() -> None:
    assert list(LineReader([io.BytesIO(b"a\nb"), io.BytesIO(b"c\n")])) == ["a", "b", "c"]


@given(st.lists(st.text(max_size=4), max_size=300))
def test_windows_join_to_the_lines_and_keep_their_bound(lines: list[str]) -> None:
    found = list(windows(lines))
    assert [line for window in found for line in window] == lines
    assert all(1 <= len(window) <= module.LINES_AT_ONCE for window in found)


def test_a_line_is_answered_before_the_next_one_arrives() -> None:
    answered = threading.Event()

    def slow() -> Iterator[str]:
        yield "first"
        assert answered.wait(timeout=30)
        yield "second"

    stream = windows(slow())
    assert next(stream) == ["first"]
    answered.set()
    assert next(stream) == ["second"]


def test_a_fault_of_the_reader_reaches_the_caller() -> None:
    def broken() -> Iterator[str]:
        yield "first"
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        list(windows(broken()))


def test_long_lines_make_windows_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHARACTERS_AT_ONCE", 10)
    assert max(len(window) for window in windows(["abcdef"] * 50)) <= 2


@given(st.text())
def test_an_output_is_one_line_to_every_reader(text: str) -> None:
    assert len(on_one_line(text).splitlines()) <= 1
