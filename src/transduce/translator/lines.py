"""Lines in, lines out: a stream of any length, one for one and in order, in bounded memory.

A line ends at a line feed, or a carriage return and a line feed, and nowhere else. Bytes that are no UTF-8 become
U+FFFD and are counted. Lines are taken in windows: as many as have arrived, up to a bound, so that a file is sorted
and batched by length inside a window while a line typed into a pipe is answered at once.
"""

import queue
import re
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from transduce.decoding.config import DecodingConfig
from transduce.translator.terminology import Glossary
from transduce.translator.translation import Translation
from transduce.translator.translator import Translator

LINES_AT_ONCE = 1024
CHARACTERS_AT_ONCE = 200_000
# Whatever some reader takes for the end of a line; in an output it would shift all lines after it.
_LINE_BREAKS = re.compile("[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029\n]+")


@dataclass
class LineReader:
    """The lines of binary streams, one after the other, and how many of them were no UTF-8."""

    streams: Iterable[BinaryIO]
    damaged_lines: int = field(default=0)

    def __iter__(self) -> Iterator[str]:
        for stream in self.streams:
            for raw in stream:
                line = raw.removesuffix(b"\n").removesuffix(b"\r") if raw.endswith(b"\n") else raw
                try:
                    yield line.decode("utf-8")
                except UnicodeDecodeError:
                    self.damaged_lines += 1
                    yield line.decode("utf-8", "replace")


def translate_lines(
    translator: Translator,
    lines: Iterable[str],
    config: DecodingConfig,
    *,
    glossary: Glossary = Glossary(()),  # noqa: B008 - it is frozen
) -> Iterator[Translation]:
    """Yield the translation of every line, in order."""
    done = 0
    for window in windows(lines):
        yield from translator.translate_all(window, config, numbers=range(done, done + len(window)), glossary=glossary)
        done += len(window)


def windows(lines: Iterable[str]) -> Iterator[list[str]]:
    """Yield the lines in lists: what has arrived by now, at least one and no more than the bounds allow."""
    arrived: queue.Queue[str | BaseException | None] = queue.Queue(maxsize=LINES_AT_ONCE)
    is_abandoned = threading.Event()

    def put(item: str | BaseException | None) -> None:
        while not is_abandoned.is_set():
            try:
                arrived.put(item, timeout=0.5)
            except queue.Full:
                continue
            return

    def read() -> None:
        try:
            for line in lines:
                put(line)
                if is_abandoned.is_set():
                    return
        except BaseException as fault:
            put(fault)
        put(None)

    threading.Thread(target=read, daemon=True).start()
    try:
        item = arrived.get()
        while item is not None:
            window: list[str] = []
            characters = 0
            while isinstance(item, str):
                window.append(item)
                characters += len(item)
                if len(window) == LINES_AT_ONCE or characters > CHARACTERS_AT_ONCE or arrived.empty():
                    break
                item = arrived.get()
            if window:
                yield window
            if isinstance(item, BaseException):
                raise item
            item = arrived.get() if isinstance(item, str) else item
    finally:
        is_abandoned.set()


def on_one_line(text: str) -> str:
    """Return a text without anything that some reader would take for the end of a line."""
    return _LINE_BREAKS.sub(" ", text)
