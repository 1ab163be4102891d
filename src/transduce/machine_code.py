"""Kernels as machine code: numba compiles them once into an object file, and llvmlite loads it without numba.

numba's own cache costs half a second and 120 MB at each start, mostly for numba itself, and it unpickles. The object
file is in the `__pycache__` beside the source, or in the user's cache if that cannot be written. Its name is a hash of
the sources, the compilers and the processor, and it begins with the hash of its content. If no intact file of that name
exists, or another user could have written it, the kernels are compiled again: what it holds will run.
"""

import ctypes
import hashlib
import os
import stat
import sys
from collections.abc import Callable
from functools import cached_property
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from transduce.errors import TransduceError
from transduce.files import write_atomically

_HASH_BYTES = 32
_SHARED = Path(__file__).with_name("kernel_arithmetic.py")
# Functions of numba that compiled code calls only if a kernel raises. No kernel does, and numba is not loaded.
_NEVER_CALLED = ("numba_gil_ensure", "numba_gil_release")


def can_be_made() -> bool:
    """Return whether numba and llvmlite, which compile and load kernels, are installed."""
    return find_spec("numba") is not None and find_spec("llvmlite") is not None


class MachineCode:
    """The kernels of one module: the numba C functions in its `ENTRIES`, by name.

    `also` names the files beside its own that it imports from; the code depends on these too.
    """

    def __init__(self, source: Path, *, module: str, also: tuple[str, ...] = ()) -> None:
        self.sources = (source, *(source.with_name(name) for name in also))
        self.module = module
        self._entries: dict[str, Callable[..., None]] = {}
        self._addresses: dict[str, int] = {}

    def entry(self, name: str, arguments: int) -> Callable[..., None]:
        """Return a kernel as a function whose arguments are addresses and sizes, all integers."""
        if name not in self._entries:
            function = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * arguments)(self.address(name))
            function.code = self  # type: ignore[attr-defined] # keeps the code in memory while the function exists
            self._entries[name] = function
        return self._entries[name]

    def address(self, name: str) -> int:
        """Return the address of a kernel, for other machine code to call."""
        if name not in self._addresses:
            self._addresses[name] = self._engine.get_function_address(name)
        return self._addresses[name]

    @cached_property
    def _engine(self) -> Any:  # noqa: ANN401 - llvmlite has no types
        import llvmlite.binding as llvm

        for name in _NEVER_CALLED:
            if llvm.address_of_symbol(name) is None:
                llvm.add_symbol(name, ctypes.cast(ctypes.CDLL(None).abort, ctypes.c_void_p).value)
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_machine())
        engine.add_object_file(llvm.ObjectFileRef.from_data(self.object_code(self.folders())))
        engine.finalize_object()
        return engine

    def object_code(self, folders: list[Path]) -> bytes:
        """Return the kernels' object file from the first folder with an intact one; else compile and store it."""
        name = f"kernels-{self.origin()}.o"
        for folder in folders:
            try:
                content = _own_content(folder / name)
            except OSError:
                continue
            if hashlib.sha256(content[_HASH_BYTES:]).digest() == content[:_HASH_BYTES]:
                return content[_HASH_BYTES:]
        code = self.compile()
        for folder in folders:
            try:
                folder.mkdir(parents=True, exist_ok=True)
                write_atomically(folder / name, hashlib.sha256(code).digest() + code)
                (folder / name).chmod(0o644)
            except (OSError, TransduceError):  # without a stored file, the next start compiles again
                continue
            break
        return code

    def compile(self) -> bytes:
        """Compile the module for this processor."""
        import llvmlite.binding as llvm

        machine, module = _target_machine(), llvm.parse_assembly("")
        for name, kernel in import_module(self.module).ENTRIES.items():
            own = llvm.parse_assembly(kernel.inspect_llvm())
            own.get_function(kernel.native_name).name = name
            module.link_in(own)
        needed = {f.name for f in module.functions if f.is_declaration and f.name.startswith(("numba_", "NRT_"))}
        assert needed <= set(_NEVER_CALLED), f"a kernel may neither raise nor allocate, but one needs {needed}"
        code: bytes = machine.emit_object(module)
        return code

    def origin(self) -> str:
        """Return a hash of all that the code depends on: sources, compilers, processor."""
        import llvmlite.binding as llvm

        parts = [source.read_bytes() for source in (*self.sources, _SHARED)]
        parts += [version(package).encode() for package in ("numba", "llvmlite")]
        parts += [llvm.get_host_cpu_name().encode(), llvm.get_host_cpu_features().flatten().encode()]
        return hashlib.sha256(b"\0".join(parts)).hexdigest()[:24]

    def folders(self) -> list[Path]:
        """Return the folders that may hold the object file, in order of preference."""
        beside = self.sources[0].parent / "__pycache__"
        try:
            cache_home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        except RuntimeError:  # this user has no home
            return [beside]
        return [beside, Path(cache_home) / "transduce"]


def _own_content(file: Path) -> bytes:
    """Return the content of a file that only this user or root can have written; OSError for any other."""
    if sys.platform == "win32":
        return file.read_bytes()
    with os.fdopen(os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as opened:
        status = os.fstat(opened.fileno())
        is_own = stat.S_ISREG(status.st_mode) and status.st_uid in (0, os.geteuid()) and not status.st_mode & 0o022
        if not is_own:
            raise PermissionError(f"another user could have written {file}")
        return opened.read()


def _target_machine() -> Any:  # noqa: ANN401 - llvmlite has no types
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=cpu, features=features, opt=3, reloc="static", codemodel="jitdefault", jit=True
    )
