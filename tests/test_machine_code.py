"""Compiled kernels: kept whole or not at all, made for this processor, and loaded without the compiler."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from transduce import machine_code
from transduce.machine_code import MachineCode

pytestmark = pytest.mark.skipif(not machine_code.can_be_made(), reason="numba is not installed; it is an extra")
SOURCE = """
from numba import carray, cfunc, types

def twice(numbers, count):
    numbers_ = carray(numbers, count)
    for n in range(count):
        numbers_[n] *= 2

ENTRIES = {"twice": cfunc(types.void(types.CPointer(types.int64), types.int64))(twice)}
"""
PROGRAM = """
import ctypes, sys
from pathlib import Path
from transduce.machine_code import MachineCode

numbers = (ctypes.c_int64 * 3)(1, 2, 3)
code = MachineCode(Path("twice_source.py"), module="twice_source")  # the code lives as long as this does
code.entry("twice", 2)(ctypes.addressof(numbers), 3)
print(list(numbers), "numba" in sys.modules)
"""


def run(folder: Path) -> str:
    (folder / "twice_source.py").write_text(SOURCE, encoding="utf-8")
    path = os.pathsep.join([str(Path(machine_code.__file__).parents[1]), str(folder)])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path, "XDG_CACHE_HOME": str(folder / "cache")},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.slow
def test_code_is_compiled_once_loaded_without_numba_and_made_anew_if_damaged(tmp_path: Path) -> None:
    assert run(tmp_path) == "[2, 4, 6] True"
    assert run(tmp_path) == "[2, 4, 6] False"
    kept = next((tmp_path / "__pycache__").glob("kernels-*.o"))
    content = kept.read_bytes()
    for wrong in (content[:500] + bytes([content[500] ^ 1]) + content[501:], content[:-9], b""):
        kept.write_bytes(wrong)
        assert run(tmp_path) == "[2, 4, 6] True"
        assert kept.read_bytes()[:32] != wrong[:32] or kept.read_bytes() != wrong


@pytest.mark.skipif(os.name == "nt", reason="uses owners and modes of POSIX systems")
def test_code_that_another_user_could_have_written_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "source.py"
    source.write_text(SOURCE, encoding="utf-8")
    code = MachineCode(source, module="source")
    monkeypatch.setattr(MachineCode, "compile", lambda self: b"compiled")
    stranger = hashlib.sha256(b"evil").digest() + b"evil"
    file = tmp_path / "cache" / f"kernels-{code.origin()}.o"
    assert code.object_code([file.parent]) == b"compiled"
    for make in (_writable_for_all, _given_away, _linked):
        file.unlink()
        file.write_bytes(stranger)
        file.chmod(0o644)
        assert code.object_code([file.parent]) == b"evil", "the file is valid where the user wrote it"
        try:
            make(file)
        except PermissionError:  # only root gives files away
            continue
        assert code.object_code([file.parent]) == b"compiled"


def _writable_for_all(file: Path) -> None:
    file.chmod(0o666)


def _given_away(file: Path) -> None:
    os.chown(file, 65534, -1)


def _linked(file: Path) -> None:
    file.rename(file.with_suffix(".elsewhere"))
    file.symlink_to(file.with_suffix(".elsewhere"))


def test_without_a_home_only_the_folder_of_the_source_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    assert MachineCode(tmp_path / "source.py", module="source").folders() == [tmp_path / "__pycache__"]


def test_another_processor_compiler_or_source_is_another_origin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import llvmlite.binding as llvm

    source = tmp_path / "source.py"
    source.write_text(SOURCE, encoding="utf-8")
    code = MachineCode(source, module="source")
    origins = {code.origin()}
    with monkeypatch.context() as patch:
        patch.setattr(llvm, "get_host_cpu_name", lambda: "another")
        origins.add(code.origin())
    with monkeypatch.context() as patch:
        patch.setattr(machine_code, "version", lambda package: "0.0")
        origins.add(code.origin())
    source.write_text(SOURCE + "\n", encoding="utf-8")
    origins.add(code.origin())
    (tmp_path / "tile.py").write_text("ROWS = 6\n", encoding="utf-8")
    origins.add(MachineCode(source, module="source", also=("tile.py",)).origin())
    assert len(origins) == 5


def test_code_is_kept_where_it_can_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kept_source.py").write_text(SOURCE, encoding="utf-8")
    (tmp_path / "file").write_text("no folder can be made below a file", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    code = MachineCode(tmp_path / "kept_source.py", module="kept_source")
    made = code.object_code([tmp_path / "file" / "no", tmp_path / "kept"])
    monkeypatch.setattr(code, "compile", lambda: pytest.fail("it was kept"))
    assert code.object_code([tmp_path / "file" / "no", tmp_path / "kept"]) == made


def test_a_kernel_that_could_raise_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raising = SOURCE.replace("numbers_[n] *= 2", "numbers_[n] = 7 // numbers_[n]")
    allocating = SOURCE.replace("numbers_[n] *= 2", "numbers_[n] = np.empty(count).size").replace(
        "from numba", "import numpy as np\nfrom numba", 1
    )
    monkeypatch.syspath_prepend(tmp_path)
    for name, source in (("raising", raising), ("allocating", allocating)):
        (tmp_path / f"{name}_source.py").write_text(source, encoding="utf-8")
        code = MachineCode(tmp_path / f"{name}_source.py", module=f"{name}_source")
        with pytest.raises(AssertionError, match="neither raise nor allocate"):
            code.compile()
