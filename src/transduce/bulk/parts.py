"""A folder of parts: the output for a large text, made by several processes, each of which may be killed at any time.

    FOLDER/000002-000000010000.txt    the output for lines 10,000… of the third file; written once, whole
    FOLDER/shards/3-of-64.jsonl       the journal of shard 3: its settings, a line for each finished part, the end

Shard k of n makes every n-th part, beginning with the k-th. Parts in the order of their names are the output of the
whole text, one line for each of its lines. A part counts once it is in the journal. So a start after a kill makes again
at most the part that was being made, and refuses if the text or the settings have changed.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from pydantic import BaseModel, JsonValue, PositiveInt, model_validator

from transduce.data.formats.corpus_file import CorpusFile
from transduce.errors import RunError
from transduce.files import (
    disk_faults_explained,
    file_written_atomically,
    locked,
    make_folder,
    remove_leftovers,
    write_atomically,
)
from transduce.progress import Progress
from transduce.translator.lines import LineReader

LINES_OF_A_PART = 10_000
_SHARDS, _ENDING = "shards", ".txt"


class Shard(BaseModel, frozen=True, extra="forbid"):
    """One of `count` processes that share the parts of a text between them."""

    number: PositiveInt = 1
    count: PositiveInt = 1

    @model_validator(mode="after")
    def is_one_of_them(self) -> "Shard":
        """Refuse shard 5 of 4."""
        if self.number > self.count:
            raise ValueError(f"there is no shard {self.number} of {self.count}")
        return self

    def has(self, place: int) -> bool:
        """Return whether the part at this place, counted from 0, is this shard's."""
        return place % self.count == self.number - 1

    def __str__(self) -> str:
        return f"{self.number}-of-{self.count}"


@dataclass(frozen=True)
class Part:
    """Some lines of a text that follow each other."""

    name: str
    first: int
    """The number of the first line in the whole text, counted from 0: the key of random draws."""
    lines: tuple[str, ...]
    damaged: int = 0
    """How many lines were not UTF-8."""

    @property
    def digest(self) -> str:
        """The SHA-256 of the lines."""
        return _digest("\n".join(self.lines).encode())


@dataclass(frozen=True)
class Output:
    """The output of a part, and notes on it: how many of its lines are empty for a reason, for example."""

    lines: Sequence[str]
    notes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class LargeText:
    """Lines of files, each perhaps compressed, read as a stream."""

    files: tuple[Path, ...]
    part_lines: int = LINES_OF_A_PART

    def parts(self) -> Iterator[Part]:
        """Yield the parts, in order."""
        first = 0
        for number in range(len(self.files)):
            for part in self.parts_of(number, first=first):
                yield part
                first = part.first + len(part.lines)

    def parts_of(self, number: int, *, first: int) -> Iterator[Part]:
        """Yield the parts of one file, whose first line has the number `first` in the text."""
        with CorpusFile(self.files[number]).opened() as stream:
            reader = LineReader([stream])
            yield from parts_of_lines(reader, number=number, part_lines=self.part_lines, first=first)

    def names(self, number: int, lines: int) -> set[str]:
        """Return the names of the parts of one file of so many lines."""
        return {part_name(number, start) for start in range(0, lines, self.part_lines)}


def part_name(number: int, start: int) -> str:
    """Return the name of the part that begins at the line `start` of a file."""
    return f"{number:06d}-{start:012d}"


def parts_of_lines(lines: Iterable[str], *, number: int = 0, part_lines: int, first: int = 0) -> Iterator[Part]:
    """Yield the parts of some lines, which are the file `number` of a text."""
    rest, start, damaged = iter(lines), 0, 0
    while some := tuple(islice(rest, part_lines)):
        before, damaged = damaged, lines.damaged_lines if isinstance(lines, LineReader) else 0
        yield Part(part_name(number, start), first + start, some, damaged - before)
        start += len(some)


class PartEntry(BaseModel, frozen=True, extra="forbid"):
    """A finished part, in a journal."""

    part: str
    lines: int
    source: str
    """The SHA-256 of the lines that it was made from."""
    output: str
    """The SHA-256 of its file."""
    notes: dict[str, int] = {}


class Header(BaseModel, frozen=True, extra="forbid"):
    """The first line of a journal: all that the output depends on besides the text."""

    shard: Shard
    files: tuple[str, ...]
    """The names of the text's files, without their folders."""
    settings: dict[str, JsonValue]

    def same_work(self, other: "Header") -> bool:
        """Return whether both are shards of the same work."""
        return (self.shard.count, self.files, self.settings) == (other.shard.count, other.files, other.settings)


class End(BaseModel, frozen=True, extra="forbid"):
    """The last line of the journal of a shard that is done: the parts and lines of the whole text."""

    parts: int
    lines: int


@dataclass(frozen=True)
class Journal:
    """The whole lines of a journal."""

    header: Header
    entries: Mapping[str, PartEntry]
    end: End | None
    bytes: int

    @classmethod
    def read(cls, path: Path) -> "Journal | None":
        """Return the journal; None if it has no whole line. A last line that a kill cut short is left out."""
        content = path.read_bytes() if path.is_file() else b""
        whole = content[: content.rfind(b"\n") + 1]
        if not whole:
            return None
        header, *lines = whole.splitlines()
        try:
            rows = [json.loads(line) for line in lines]
            entries = [PartEntry.model_validate(row) for row in rows if "part" in row]
            ends = [End.model_validate(row) for row in rows if "part" not in row]
            found = Header.model_validate_json(header)
        except (ValueError, TypeError) as fault:
            raise RunError(
                f"{path} is damaged ({str(fault).splitlines()[0]}). Delete the folder and start over."
            ) from None
        return cls(found, {entry.part: entry for entry in entries}, ends[-1] if ends else None, len(whole))


class ShardWriter:
    """Writes the parts of one shard and its journal."""

    def __init__(self, folder: Path, file: BinaryIO, journal: Journal) -> None:
        self.folder, self._file, self._entries, self._end = folder, file, dict(journal.entries), journal.end

    @property
    def finished(self) -> Mapping[str, PartEntry]:
        """The parts that are in the journal, and whose files are as it says."""
        kept = {name: entry for name, entry in self._entries.items() if _file_fault(self.folder, entry) is None}
        self._entries = kept
        return kept

    def write(self, part: str, *, source: str, lines: int, output: Output) -> None:
        """Write a part made from `lines` lines with the hash `source`, and then note it in the journal."""
        if len(output.lines) != lines:
            raise RunError(f"{part} has {lines:,} lines, but {len(output.lines):,} came back. Start again.")
        content = "".join(f"{line}\n" for line in output.lines).encode()
        write_atomically(self.folder / f"{part}{_ENDING}", content)
        notes = {name: count for name, count in output.notes.items() if count}
        entry = PartEntry(part=part, lines=lines, source=source, output=_digest(content), notes=notes)
        self._append(entry)
        self._entries[part] = entry

    def end(self, end: End) -> None:
        """Note that the shard is done."""
        if self._end is not None and self._end != end:
            raise changed_text(self.folder)
        if self._end is None:
            self._append(end)

    def _append(self, row: BaseModel) -> None:
        with disk_faults_explained(self.folder):
            self._file.write(row.model_dump_json().encode() + b"\n")
            self._file.flush()


@contextmanager
def shard_opened(folder: Path, header: Header) -> Iterator[ShardWriter]:
    """Begin or continue a shard; RunError if another process writes it, or if the folder holds other work."""
    shards = folder / _SHARDS
    path = shards / f"{header.shard}.jsonl"
    with disk_faults_explained(folder):
        make_folder(shards)
        with locked(shards / f"{header.shard}.lock", purpose="making its parts"):
            journal = Journal.read(path)
            for other in journals(folder):
                if not header.same_work(other.header):
                    raise _other_work(folder, header, other.header)
            if journal is None:
                first = header.model_dump_json().encode() + b"\n"
                write_atomically(path, first)
                journal = Journal(header, {}, None, len(first))
            with path.open("r+b") as file:
                file.truncate(journal.bytes)
                file.seek(journal.bytes)
                yield ShardWriter(folder, file, journal)


def fill(
    folder: Path,
    parts: Iterable[Part],
    header: Header,
    make: Callable[[Part], Output],
    *,
    progress: Progress,
    stop_requested: Callable[[], bool] = lambda: False,
) -> bool:
    """Make the parts of one shard that are not finished; return False if a request stopped it before the end."""
    count = lines = 0
    with shard_opened(folder, header) as writer, progress.stage("making parts", unit="lines") as stage:
        finished = writer.finished
        for count, part in enumerate(parts, start=1):
            lines += len(part.lines)
            if not header.shard.has(count - 1):
                continue
            if stop_requested():
                return False
            known = finished.get(part.name)
            if known is None:
                writer.write(part.name, source=part.digest, lines=len(part.lines), output=make(part))
            elif known.source != part.digest:
                raise changed_text(folder)
            stage.advance(len(part.lines))
        writer.end(End(parts=count, lines=lines))
    return True


def journals(folder: Path) -> list[Journal]:
    """Return the journals of a folder, by shard."""
    found = [Journal.read(path) for path in sorted((folder / _SHARDS).glob("*.jsonl"))]
    return sorted((journal for journal in found if journal is not None), key=lambda own: own.header.shard.number)


def finished_parts(folder: Path) -> list[PartEntry]:
    """Return every part in order; RunError unless every shard is done, of the same work, and no part is missing."""
    found = journals(folder)
    if not found:
        raise RunError(f"{folder} holds no parts. Name the folder that was the --output of `transduce translate`.")
    first = found[0].header
    for journal in found:
        if not first.same_work(journal.header):
            raise _other_work(folder, journal.header, first)
    present = {journal.header.shard.number for journal in found}
    if missing := sorted(set(range(1, first.shard.count + 1)) - present):
        listed = ", ".join(map(str, missing[:10])) + (" …" if len(missing) > 10 else "")
        raise RunError(f"{folder} lacks shard {listed} of {first.shard.count}. Run those commands.")
    for journal in found:
        if journal.end is None:
            raise RunError(f"Shard {journal.header.shard} in {folder} is not done. Run its command again to continue.")
    ends = {journal.end for journal in found}
    if len(ends) > 1:
        raise changed_text(folder)
    entries = [entry for journal in found for entry in journal.entries.values()]
    end, names = found[0].end, {entry.part for entry in entries}
    assert end is not None
    if (len(names), len(entries), sum(entry.lines for entry in entries)) != (end.parts, end.parts, end.lines):
        raise RunError(
            f"{folder} holds {len(names):,} parts of {end.parts:,}. Run the commands of all shards again for the rest."
        )
    others = sorted(path.name for path in folder.glob(f"*{_ENDING}") if path.stem not in names)
    if others:
        raise RunError(f"{folder} holds {others[0]}, which is no part of this text. Move it elsewhere.")
    return sorted(entries, key=lambda entry: entry.part)


def lines_of_parts(folder: Path) -> Iterator[str]:
    """Yield the lines of all parts of a folder that is done."""
    for entry in finished_parts(folder):
        yield from _content(folder, entry).decode().split("\n")[:-1]


def merge(folder: Path, output: Path) -> list[PartEntry]:
    """Write all parts into one file, after comparing each with its journal; return the parts."""
    entries = finished_parts(folder)
    remove_leftovers(folder)  # every shard is done, so nobody writes here
    with file_written_atomically(output) as file:
        for entry in entries:
            file.write(_content(folder, entry))
    return entries


def changed_text(folder: Path) -> RunError:
    """Return the error for a text that is not the one that the folder's parts were made from."""
    return RunError(
        f"The text is not the one that the parts in {folder} were made from. Choose another folder, or delete this one."
    )


def _other_work(folder: Path, header: Header, other: Header) -> RunError:
    was, now = other.settings, header.settings
    keys = [key for key in {**was, **now} if was.get(key) != now.get(key)]
    keys += [] if other.files == header.files else ["the names of the files"]
    if other.shard.count != header.shard.count:
        keys.append(f"the number of shards ({other.shard.count}, not {header.shard.count})")
    return RunError(
        f"{folder} holds parts of shard {other.shard} that were made otherwise: {', '.join(keys)}. Give the same "
        "command to every shard, or choose another folder."
    )


def _content(folder: Path, entry: PartEntry) -> bytes:
    if (fault := _file_fault(folder, entry)) is not None:
        raise RunError(f"{fault}. Run the command of its shard again to make it once more.")
    return (folder / f"{entry.part}{_ENDING}").read_bytes()


def _file_fault(folder: Path, entry: PartEntry) -> str | None:
    path = folder / f"{entry.part}{_ENDING}"
    if not path.is_file():
        return f"{path} is missing"
    return None if _digest(path.read_bytes()) == entry.output else f"{path} is not as it was written"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
