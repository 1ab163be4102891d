"""What a run does to its disk, recorded call by call, and what a power cut may leave of it.

A file's content is safe once the file was flushed (fsync), a name once its folder was. Anything later may be there,
partly there, or not: written data may be lost, torn or turned to zeros, whatever the disk wrote first; new, changed and
removed names may be lost too, in order (as a journal loses them) or in any order (all that POSIX promises).
"""

import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

TRACED = (
    "openat,write,pwrite64,writev,lseek,ftruncate,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,rmdir,"
    "fsync,fdatasync"
)
STRACE_OPTIONS = ("-y", "-xx", "-s", "100000000", "-e", f"trace={TRACED}")
_LINE = re.compile(r"^(?:\d+ +)?(\w+)\((.*)\) += (-?\d+)")
_BEGUN = re.compile(r"^(\d+ +)?(\w+\(.*) <unfinished \.\.\.>$")
_ENDED = re.compile(r"^(\d+ +)?<\.\.\. \w+ resumed>(.*)$")
_DESCRIPTOR = re.compile(r"^(\d+|AT_FDCWD)<([^>]*)>")


class Operation(NamedTuple):
    """A call that changed the disk: its kind, the path it was about, another path or data."""

    kind: str
    path: str
    other: str = ""
    data: bytes = b""
    offset: int = 0


def _text(quoted: str) -> str:
    return bytes.fromhex(quoted.strip().strip('"').replace("\\x", "")).decode("utf-8")


def _path(argument: str, folder: str | None = None) -> str:
    path = _text(argument)
    if path.startswith("/"):
        return path
    assert folder is not None, argument
    return f"{folder}/{path}"


def _folder_of(argument: str) -> str:
    found = _DESCRIPTOR.match(argument.strip())
    assert found, argument
    return _text(found[2])


def whole_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield each call in one line, when it ended: strace writes two if another thread's came in between."""
    begun: dict[str, str] = {}
    for line in lines:
        if match := _BEGUN.match(line):
            begun[match[1] or ""] = match[2]
        elif match := _ENDED.match(line):
            yield f"{match[1] or ''}{begun.pop(match[1] or '')}{match[2]}"
        else:
            yield line


def operations(trace: Path, *, root: Path) -> list[Operation]:
    """Return what a strace log says was done below `root`."""
    offsets: dict[int, int] = {}
    done = [
        operation
        for line in whole_lines(trace.read_text(encoding="ascii").splitlines())
        if (match := _LINE.match(line)) and not match[3].startswith("-")
        for operation in _operations(match[1], match[2].split(", "), int(match[3]), offsets)
    ]
    return [operation for operation in done if Path(operation.path).is_relative_to(root)]


def _operations(call: str, arguments: list[str], result: int, offsets: dict[int, int]) -> Iterator[Operation]:
    match call:
        case "openat":
            flags, path = arguments[2], _path(arguments[1], _folder_of(arguments[0]))
            offsets[result] = 0
            if "O_CREAT" in flags:
                yield Operation("create", path)
            if "O_TRUNC" in flags:
                yield Operation("truncate", path)
        case "lseek":
            offsets[_number(arguments[0])] = result
        case "write" | "pwrite64" | "writev":
            descriptor = _number(arguments[0])
            assert call == "write", "the recorder knows only plain writes"
            data = bytes.fromhex(arguments[1].strip('"').replace("\\x", ""))[:result]
            yield Operation("write", _folder_of(arguments[0]), data=data, offset=offsets.get(descriptor, 0))
            offsets[descriptor] = offsets.get(descriptor, 0) + result
        case "ftruncate":
            yield Operation("truncate", _folder_of(arguments[0]), offset=int(arguments[1]))
        case "fsync" | "fdatasync":
            yield Operation("flush", _folder_of(arguments[0]))
        case "mkdir" | "unlink" | "rmdir":
            yield Operation(call if call == "mkdir" else "remove", _path(arguments[0]))
        case "mkdirat" | "unlinkat":
            kind = "mkdir" if call == "mkdirat" else "remove"
            yield Operation(kind, _path(arguments[1], _folder_of(arguments[0])))
        case "rename":
            yield Operation("rename", _path(arguments[0]), _path(arguments[1]))
        case "renameat" | "renameat2":
            old, new = (_path(arguments[place + 1], _folder_of(arguments[place])) for place in (0, 2))
            yield Operation("rename", old, new)
        case _:
            raise AssertionError(f"the recorder does not know {call}")


def _number(argument: str) -> int:
    found = _DESCRIPTOR.match(argument)
    assert found, argument
    return int(found[1])


@dataclass
class Data:
    """A file: what is safe, and what was done since (None cuts at the offset)."""

    safe: bytes = b""
    since: list[tuple[int, bytes | None]] = field(default_factory=list)

    def now(self, changes: Sequence[tuple[int, bytes | None]] | None = None) -> bytes:
        """Return the content after these changes; all of them unless given."""
        content = bytearray(self.safe)
        for offset, data in self.since if changes is None else changes:
            if data is None:
                del content[offset:]
            else:
                content.extend(bytes(max(0, offset - len(content))))
                content[offset : offset + len(data)] = data
        return bytes(content)


@dataclass
class Folder:
    """A folder: its safe names, its present names, and the changes between the two."""

    safe: dict[str, "Data | Folder"] = field(default_factory=dict)
    now: dict[str, "Data | Folder"] = field(default_factory=dict)
    since: list[tuple[int, dict[str, "Data | Folder | None"]]] = field(default_factory=list)
    """Each change with its place in the order of all changes: names that get a node, or lose it (None)."""


class Disk:
    """The disk below a root, as the calls left it."""

    def __init__(self, root: Path) -> None:
        self.root, self.top, self.changes = root, Folder(), 0

    def apply(self, operation: Operation) -> None:
        """Do what a call did."""
        if operation.path == str(self.root) and operation.kind == "mkdir":
            return
        if operation.kind == "flush":
            node = self._node(operation.path)
            if isinstance(node, Data):
                node.safe, node.since = node.now(), []
            elif node is not None:
                node.safe, node.since = dict(node.now), []
            return
        folder, name = self._place(operation.path)
        node = folder.now.get(name)
        match operation.kind:
            case "create" if node is None:
                self._change(folder, {name: Data()})
            case "mkdir":
                self._change(folder, {name: Folder()})
            case "remove":
                self._change(folder, {name: None})
            case "rename":
                assert node is not None
                other, new = self._place(operation.other)
                assert other is folder, "the recorder knows only renames within a folder"
                self._change(folder, {new: node, name: None})
            case "truncate" | "write":
                assert isinstance(node, Data), operation.path
                node.since.append((operation.offset, None if operation.kind == "truncate" else operation.data))

    def _change(self, folder: Folder, names: dict[str, "Data | Folder | None"]) -> None:
        folder.since.append((self.changes, names))
        self.changes += 1
        _rename(folder.now, names)

    def _place(self, path: str) -> tuple[Folder, str]:
        parent = self._node(str(Path(path).parent))
        assert isinstance(parent, Folder), path
        return parent, Path(path).name

    def _node(self, path: str) -> "Data | Folder | None":
        node: Data | Folder | None = self.top
        for part in Path(path).relative_to(self.root).parts:
            assert isinstance(node, Folder), path
            node = node.now.get(part)
        return node


def _rename(names: dict[str, "Data | Folder"], changes: dict[str, "Data | Folder | None"]) -> None:
    for name, node in changes.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


def _unsafe(folder: Folder) -> Iterator[Data]:
    """Yield the files that were written to since they were flushed."""
    for node in folder.now.values():
        if isinstance(node, Folder):
            yield from _unsafe(node)
        elif node.since:
            yield node


class PowerCut:
    """One way in which a power cut may strike: what is kept of whatever was not flushed yet."""

    def __init__(self, chance: random.Random, disk: Disk) -> None:
        self.chance = chance
        self.is_ordered = chance.random() < 0.5
        self.last = chance.randint(0, disk.changes)
        self.share = chance.choice((0.0, 0.2, 0.5, 0.8, 1.0))
        unsafe = list(_unsafe(disk.top))
        # One damaged file among many is harder to notice than a hundred.
        damaged = unsafe if chance.random() < 0.5 or not unsafe else [chance.choice(unsafe)]
        self.damaged = {id(file) for file in damaged}

    def names(self, folder: Folder) -> dict[str, "Data | Folder"]:
        """Return the names that a folder is left with."""
        names = dict(folder.safe)
        for place, changes in folder.since:
            if place < self.last if self.is_ordered else self.chance.random() < self.share:
                _rename(names, changes)
        return names

    def content(self, file: Data) -> bytes:
        """Return what is left of a file."""
        if not file.since:
            return file.safe
        if id(file) not in self.damaged:
            return file.now()
        match self.chance.choice(("safe", "all", "torn", "zeros", "some")):
            case "safe":
                return file.safe
            case "all":
                return file.now()
            case "some":
                return file.now([change for change in file.since if self.chance.random() < 0.5])
            case kind:
                whole = file.now()
                cut = self.chance.randint(0, len(whole))
                return whole[:cut] + (bytes(len(whole) - cut) if kind == "zeros" else b"")


def lay_down(
    folder: Folder,
    place: Path,
    *,
    names: Callable[[Folder], dict[str, "Data | Folder"]],
    content: Callable[[Data], bytes],
) -> None:
    """Write a disk's files to `place`, as seen by `names` and `content`."""
    place.mkdir(parents=True)
    for name, node in names(folder).items():
        if isinstance(node, Data):
            (place / name).write_bytes(content(node))
        else:
            lay_down(node, place / name, names=names, content=content)
