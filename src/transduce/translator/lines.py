"""Translation of a stream of lines, one output for each input line, in order and in bounded memory.

A line ends only at a line feed, with or without a carriage return before it. Bytes that are not UTF-8 become U+FFFD,
and such lines are counted. A window holds all lines that have arrived, up to a limit. So the lines of a file are
batched by length within a window, and a line typed into a pipe is translated at once.
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
# Every character that some program reads as the end of a line: within an output it would shift all later lines.
_LINE_BREAKS = re.compile("[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029\n]+")


@dataclass
class LineReader:
    """The lines of binary streams, one stream after the other, and the number of lines that were not UTF-8."""

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
    first: int = 0,
) -> Iterator[Translation]:
    """Yield the translation of every line, in order; `first` is the number of the first line, a key of its draws."""
    done = first
    for window in windows(lines):
        yield from translator.translate_all(window, config, numbers=range(done, done + len(window)), glossary=glossary)
        done += len(window)


def windows(lines: Iterable[str]) -> Iterator[list[str]]:
    """Yield lists of the lines that have arrived: at least one line, and no more than the limits allow."""
    arrived: queue.Queue[str | BaseException | None] = queue.Queue(maxsize=LINES_AT_ONCE)
    is_abandoned = threading.Event()
    threading.Thread(target=_read_ahead, args=(lines, arrived, is_abandoned), daemon=True).start()
    try:
        item = arrived.get()
        while isinstance(item, str):
            window, characters = [item], len(item)
            while len(window) < LINES_AT_ONCE and characters <= CHARACTERS_AT_ONCE and not arrived.empty():
                item = arrived.get()
                if not isinstance(item, str):
                    break
                window.append(item)
                characters += len(item)
            yield window
            if isinstance(item, str):
                item = arrived.get()
        if item is not None:
            raise item
    finally:
        is_abandoned.set()


def _read_ahead(
    lines: Iterable[str], arrived: "queue.Queue[str | BaseException | None]", is_abandoned: threading.Event
) -> None:
    """Put every line into the queue, then the exception if reading failed, then None; stop if abandoned."""

    def put(item: str | BaseException | None) -> None:
        while not is_abandoned.is_set():
            try:
                arrived.put(item, timeout=0.5)
            except queue.Full:
                continue
            return

    try:
        for line in lines:
            put(line)
            if is_abandoned.is_set():
                return
    except BaseException as fault:
        put(fault)
    put(None)


def on_one_line(text: str) -> str:
    """Return a text with a space for every sequence of characters that a program could read as the end of a line."""
    return _LINE_BREAKS.sub(" ", text)
