"""Compiled kernels: kept whole or not at all, made for this processor, and loaded without the compiler."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from transduce.engine import machine_code
from transduce.engine.backend import fused_backend

pytestmark = pytest.mark.skipif(fused_backend() is None, reason="there is no numba here, or no AVX-512 VNNI")
ROOT = Path(__file__).resolve().parents[2]


def kept_in(folder: Path) -> Path:
    return next(folder.glob("kernels-*.o"))


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    """A folder that holds the code of this machine as it was kept."""
    machine_code.object_code(machine_code.folders())
    folder = tmp_path / "sound"
    folder.mkdir()
    name = f"kernels-{machine_code.origin()}.o"
    source = next(there / name for there in machine_code.folders() if (there / name).exists())
    (folder / name).write_bytes(source.read_bytes())
    return folder


def test_a_damaged_file_is_not_loaded(sound: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    content = kept_in(sound).read_bytes()
    flipped = content[:5000] + bytes([content[5000] ^ 1]) + content[5001:]
    for wrong in (flipped, content[:-100], b""):
        (damaged / kept_in(sound).name).write_bytes(wrong)
        assert machine_code.object_code([damaged, sound]) == content[32:]


def test_another_processor_or_compiler_is_another_origin(monkeypatch: pytest.MonkeyPatch) -> None:
    import llvmlite.binding as llvm

    here = machine_code.origin()
    with monkeypatch.context() as patch:
        patch.setattr(llvm, "get_host_cpu_name", lambda: "another")
        assert machine_code.origin() != here
    with monkeypatch.context() as patch:
        patch.setattr(machine_code, "version", lambda package: "0.0")
        assert machine_code.origin() != here
    assert machine_code.origin() == here


@pytest.mark.slow
def test_code_is_compiled_once_and_then_loaded_without_numba(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from transduce.engine import machine_code\n"
        f"machine_code.folders = lambda: [Path({str(tmp_path / 'file' / 'no')!r}), Path({str(tmp_path / 'kept')!r})]\n"
        "import torch; from transduce.engine.fused_kernels import log_softmax\n"
        "raw = torch.tensor([[1.0, 2.0, 3.0]]); log_softmax(raw, torch.tensor([2.0]))\n"
        "assert torch.allclose(raw, torch.tensor([[2.0, 4.0, 6.0]]).log_softmax(1)), raw\n"
        "print('numba' in sys.modules)\n"
    )
    (tmp_path / "file").write_text("no folder can be made below a file", encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    said = []
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, encoding="utf-8")
        assert done.returncode == 0, done.stderr
        said.append(done.stdout.strip())
    assert said == ["True", "False"]
    assert len(list((tmp_path / "kept").iterdir())) == 1
