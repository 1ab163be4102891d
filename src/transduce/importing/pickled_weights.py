"""PyTorch's `.pt` and `.bin` files, read without pickle, which would run code that a file names.

    since 1.6: a zip of archive/data.pkl · archive/data/KEY, the numbers of a storage · archive/byteorder
    before:    programs for magic, protocol, system, object, keys of storages · for each key i64 count, numbers

An object is a program for a stack machine. `pickletools.genops` only lists its instructions; `_StackMachine` does
those in `_ACTIONS`, which make dicts, lists, tuples, texts and numbers. A global such as `torch.FloatStorage` is a
`GlobalName`, a record of its two names, and "calling" one makes a `Record` of the name and its arguments. Four names
mean something: an ordered dictionary, a tensor, a parameter and a storage. Nothing is imported and nothing is called.
"""

import io
import pickletools
import warnings
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from transduce.errors import ModelError
from transduce.tensor_file import Array

_LARGEST_PROGRAM = 64 << 20
_MOST_COPIES = 16  # of the numbers in the file, by tensors that share a storage; bf16 becomes float32
_MAGIC, _PROTOCOL = 0x1950A86A20F9469CFC6C, 1001
_DAMAGES = (
    *(ValueError, IndexError, KeyError, TypeError, AttributeError, RecursionError, OverflowError, UnicodeError),
)
_STORAGES = {
    "FloatStorage": "<f4",
    "HalfStorage": "<f2",
    "BFloat16Storage": "<u2",
    "DoubleStorage": "<f8",
    "LongStorage": "<i8",
    "IntStorage": "<i4",
    "ShortStorage": "<i2",
    "ByteStorage": "|u1",
    "BoolStorage": "|b1",
}


@dataclass(frozen=True)
class GlobalName:
    """The name of a class or function in a file; it stays a name."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


@dataclass(eq=False)
class Record:
    """What a file would have made by calling `name`: its arguments, and the state that it would have been given."""

    name: str
    arguments: tuple[Any, ...]
    state: Any = field(default=None)


@dataclass(frozen=True, eq=False)
class StoredTensor:
    """A view of a storage in the archive, which `array` reads."""

    archive: "TorchArchive"
    storage: tuple[str, str, int]
    """Type, key and count of numbers."""
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def array(self) -> Array:
        """Return the numbers; bf16 becomes float32."""
        kind, _, count = self.storage
        last = self.offset + sum((size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True))
        size = prod(int(extent) for extent in self.shape)
        if size > count or (size and last >= count):
            raise ValueError
        numbers = self.archive.storage(*self.storage)[self.offset : last + 1]
        if kind == "BFloat16Storage":
            numbers = (numbers.astype(np.uint32) << 16).view(np.float32)
        steps = [stride * numbers.itemsize for stride in self.strides]
        return np.lib.stride_tricks.as_strided(numbers, self.shape, steps).copy()


class TorchArchive:
    """A file of PyTorch: `content` is its object, with a `StoredTensor` for each tensor."""

    def __init__(self, path: Path) -> None:
        self._path, self._largest = path, _MOST_COPIES * path.stat().st_size
        self._left_to_read = self._largest
        self._bytes_of = lru_cache(1)(self._read)  # of views that follow each other on one storage, as when it is tied
        with path.open("rb") as file:
            is_zip = file.read(2) == b"PK"
        self._container: _Zip | _Stream = _Zip(path) if is_zip else _Stream(path)
        try:
            with warnings.catch_warnings(action="ignore"):  # of escapes in damaged texts
                self.content = self._container.content(self)
        except _DAMAGES:
            raise ModelError(f"{path} is damaged or is not a file of weights.") from None

    def arrays(self, tensors: Mapping[str, Any]) -> dict[str, Array]:
        """Return the numbers of every tensor of a dict; other values are left out."""
        left = self._largest
        arrays: dict[str, Array] = {}
        for name, value in tensors.items():
            if not isinstance(name, str) or not isinstance(value, StoredTensor):
                continue
            try:
                arrays[name] = value.array()
            except (ValueError, KeyError, TypeError, OverflowError):
                raise ModelError(f"{self._path} is damaged: a tensor reaches beyond its numbers.") from None
            left -= arrays[name].nbytes
            if left < 0:
                raise ModelError(f"{self._path} is damaged: its tensors show the same numbers too often.")
        return arrays

    def storage(self, kind: str, key: str, count: int) -> Array:
        """Return all numbers of a storage."""
        numbers: Array = np.frombuffer(self._bytes_of(key), _STORAGES[kind])
        if len(numbers) != count:
            raise ValueError
        return numbers

    def _read(self, key: str) -> bytes:
        content = self._container.storage(key)
        self._left_to_read -= len(content)
        if self._left_to_read < 0:
            raise ModelError(f"{self._path} is damaged: its tensors show the same numbers too often.")
        return content


class _Zip:
    """The archive that PyTorch writes since version 1.6."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._zip = zipfile.ZipFile(path)
            members = self._zip.infolist()
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
            raise ModelError(f"{path} is damaged or is not a file of PyTorch.") from None
        self._members = {member.filename: member for member in members}
        program = [name for name in self._members if name.endswith("/data.pkl") and name.count("/") == 1]
        if len(program) != 1:
            raise ModelError(f"{path} holds {len(program)} objects (data.pkl); it should hold one.")
        self._root = program[0].removesuffix("data.pkl")
        if self._members.get(f"{self._root}byteorder") and self._read("byteorder", 64) != b"little":
            raise ModelError(f"{path} has byteorder = big, which transduce does not read.")

    def content(self, archive: TorchArchive) -> Any:  # noqa: ANN401
        """Return the object."""
        return _StackMachine(archive).run(io.BytesIO(self._read("data.pkl", _LARGEST_PROGRAM)))

    def storage(self, key: str) -> bytes:
        """Return the bytes of a storage."""
        return self._read(f"data/{key}", self._path.stat().st_size)

    def _read(self, name: str, largest: int) -> bytes:
        member = self._members[self._root + name]
        if member.compress_type != zipfile.ZIP_STORED or member.file_size > min(largest, self._path.stat().st_size):
            raise ModelError(f"{self._path} is damaged: {name} is compressed or too large.")
        try:
            return self._zip.read(member)
        except (zipfile.BadZipFile, OSError, EOFError, RuntimeError):
            raise ModelError(f"{self._path} is damaged: {name} cannot be read.") from None


class _Stream:
    """The file that PyTorch wrote before version 1.6: five programs, and then each storage after its count."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._places: dict[str, tuple[int, int]] = {}

    def content(self, archive: TorchArchive) -> Any:  # noqa: ANN401
        """Return the object."""
        with self._path.open("rb") as file:
            programs = io.BytesIO(file.read(_LARGEST_PROGRAM))
            magic, protocol, system = (_StackMachine(archive).run(programs) for _ in range(3))
            if (magic, protocol) != (_MAGIC, _PROTOCOL):
                raise ValueError
            if system.get("little_endian") is not True:
                raise ModelError(f"{self._path} has little_endian = false, which transduce does not read.")
            machine = _StackMachine(archive)
            content, keys = machine.run(programs), _StackMachine(archive).run(programs)
            place, size = programs.tell(), self._path.stat().st_size
            for key in keys:
                file.seek(place)
                count = int.from_bytes(file.read(8), "little", signed=True)
                width = np.dtype(_STORAGES[machine.kinds[key]]).itemsize * count
                place += 8 + width
                if count < 0 or place > size or key in self._places:
                    raise ValueError
                self._places[key] = place - width, width
        return content

    def storage(self, key: str) -> bytes:
        """Return the bytes of a storage."""
        place, width = self._places[key]
        with self._path.open("rb") as file:
            file.seek(place)
            return file.read(width)


class _StackMachine:
    """Carries out the instructions of a program; the stack, and a mark where a group of values begins."""

    def __init__(self, archive: TorchArchive) -> None:
        self.archive = archive
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}
        self.kinds: dict[str, str] = {}
        """The type of each storage by its key."""

    def run(self, program: io.BytesIO) -> Any:  # noqa: ANN401
        """Return the object that the program makes, and leave the file behind it."""
        for operation, argument, _ in pickletools.genops(program):
            if operation.name == "STOP":
                return self.stack.pop()
            action = _ACTIONS.get(operation.name)
            if action is None:
                raise ValueError(f"the instruction {operation.name} is not allowed")
            action(self, argument)
        raise ValueError

    def group(self) -> list[Any]:
        """Take the values after the last mark."""
        start = self.marks.pop()
        values = self.stack[start:]
        del self.stack[start:]
        return values

    def take(self, count: int) -> tuple[Any, ...]:
        """Take the newest values of the stack."""
        if count > len(self.stack):
            raise ValueError
        values = tuple(self.stack[len(self.stack) - count :])
        del self.stack[len(self.stack) - count :]
        return values

    def record(self) -> None:
        """Put a record of a "call" in place of a name and its arguments."""
        named, arguments = self.take(2)
        if not isinstance(named, GlobalName) or not isinstance(arguments, tuple):
            raise ValueError
        meanings: dict[str, Callable[[], Any]] = {
            "collections.OrderedDict": dict,  # its items follow; a copy of another would take quadratic time
            "torch._utils._rebuild_parameter": lambda: arguments[0],
            "torch._utils._rebuild_tensor": lambda: self._tensor(*arguments[:4]),
            "torch._utils._rebuild_tensor_v2": lambda: self._tensor(*arguments[:4]),
        }
        made = meanings.get(str(named), lambda: Record(str(named), arguments))()
        self.stack.append(made)

    def _tensor(
        self, storage: tuple[str, str, int], offset: int, shape: tuple[int, ...], strides: tuple[int, ...]
    ) -> StoredTensor:
        numbers = (offset, *shape, *strides)
        if len(shape) != len(strides) or any(type(number) is not int or number < 0 for number in numbers):
            raise ValueError
        return StoredTensor(self.archive, storage, offset, shape, strides)

    def storage(self) -> None:
        """Replace the description of a storage by its type, key and count."""
        word, kind, key, _, count, *part = self.stack.pop()
        is_known = word == "storage" and kind.module == "torch" and kind.name in _STORAGES and type(count) is int
        if not is_known or part not in ([], [None]) or self.kinds.setdefault(_text(key), kind.name) != kind.name:
            raise ValueError
        self.stack.append((kind.name, key, count))

    def build(self) -> None:
        """Give a record its state; the attributes of a dict are dropped."""
        state = self.stack.pop()
        if isinstance(self.stack[-1], Record):
            self.stack[-1].state = state

    def set_items(self, values: list[Any]) -> None:
        """Add keys and values, in turn, to the dict below them."""
        target = self.stack[-1]
        # The hash of tuples inside tuples, each twice in the next, would take exponential time.
        if not isinstance(target, dict) or not all(isinstance(key, str | int) for key in values[::2]):
            raise ValueError
        target.update(zip(values[::2], values[1::2], strict=True))

    def extend(self, values: list[Any]) -> None:
        """Add values to the list below them; a record keeps none."""
        if isinstance(self.stack[-1], list):
            self.stack[-1].extend(values)
        elif not isinstance(self.stack[-1], Record):
            raise ValueError


def _text(value: object) -> str:
    if not isinstance(value, str):  # `str` of lists inside lists, each twice in the next, has exponential length
        raise ValueError
    return value


def _named(machine: _StackMachine, argument: str) -> None:
    module, _, name = argument.partition(" ")
    machine.stack.append(GlobalName(module, name))


def _named_from_stack(machine: _StackMachine, _: Any) -> None:  # noqa: ANN401
    module, name = machine.take(2)
    machine.stack.append(GlobalName(_text(module), _text(name)))


def _push(value: Callable[[Any], Any]) -> Callable[[_StackMachine, Any], None]:
    return lambda machine, argument: machine.stack.append(value(argument))


def _tuple(count: int) -> Callable[[_StackMachine, Any], None]:
    return lambda machine, _: machine.stack.append(machine.take(count))


def _remember(machine: _StackMachine, argument: int | None) -> None:
    machine.memo[len(machine.memo) if argument is None else argument] = machine.stack[-1]


def _recall(machine: _StackMachine, argument: int) -> None:
    machine.stack.append(machine.memo[argument])


_LITERALS = (
    *("BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BININT", "BININT1", "BININT2", "LONG1", "LONG4", "BINFLOAT"),
    *("BINBYTES", "SHORT_BINBYTES", "BINSTRING", "SHORT_BINSTRING"),
)
_ACTIONS: Mapping[str, Callable[[_StackMachine, Any], None]] = {
    **dict.fromkeys(_LITERALS, _push(lambda argument: argument)),
    **dict.fromkeys(("PROTO", "FRAME"), lambda _, __: None),
    "NONE": _push(lambda _: None),
    "NEWTRUE": _push(lambda _: True),
    "NEWFALSE": _push(lambda _: False),
    "EMPTY_DICT": _push(lambda _: {}),
    "EMPTY_LIST": _push(lambda _: []),
    "EMPTY_TUPLE": _push(lambda _: ()),
    "TUPLE1": _tuple(1),
    "TUPLE2": _tuple(2),
    "TUPLE3": _tuple(3),
    "MARK": lambda machine, _: machine.marks.append(len(machine.stack)),
    "TUPLE": lambda machine, _: machine.stack.append(tuple(machine.group())),
    "SETITEM": lambda machine, _: machine.set_items(list(machine.take(2))),
    "SETITEMS": lambda machine, _: machine.set_items(machine.group()),
    "APPEND": lambda machine, _: machine.extend(list(machine.take(1))),
    "APPENDS": lambda machine, _: machine.extend(machine.group()),
    **dict.fromkeys(("BINPUT", "LONG_BINPUT", "MEMOIZE"), _remember),
    **dict.fromkeys(("BINGET", "LONG_BINGET"), _recall),
    "GLOBAL": _named,
    "STACK_GLOBAL": _named_from_stack,
    **dict.fromkeys(("REDUCE", "NEWOBJ"), lambda machine, _: machine.record()),
    "BUILD": lambda machine, _: machine.build(),
    "BINPERSID": lambda machine, _: machine.storage(),
}
"""What each instruction does; any other is refused."""
