"""Damaged files of every format are read or refused: no other error, no code run, no hang, no memory of note."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.export.test_ctranslate2 import make
from tests.importing import bert_folder, fairseq_folder, marian_folder, marian_native, test_gpt2

from transduce.export.argos import export_argos
from transduce.export.ctranslate2 import export_ctranslate2

SECONDS, KILOBYTES = 2.0, 256 << 10


def _huggingface(folder: Path) -> None:
    marian_folder.write_folder(folder)


def _pickled(folder: Path) -> None:
    weights = marian_folder.write_folder(folder)
    torch.save({name: torch.from_numpy(array) for name, array in weights.items()}, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def _pickled_before_1_6(folder: Path) -> None:
    weights = {name: torch.from_numpy(array) for name, array in marian_folder.write_folder(folder).items()}
    torch.save(weights, folder / "pytorch_model.bin", _use_new_zipfile_serialization=False)
    (folder / "model.safetensors").unlink()


def _ctranslate2(folder: Path) -> None:
    export_ctranslate2(make(folder.parent / "ours"), folder, weights="int8")


def _argos(folder: Path) -> None:
    folder.mkdir()
    export_argos(make(folder.parent / "ours"), folder / "own.argosmodel", weights="float32")


def _marian(folder: Path) -> None:
    marian_native.write_student(folder)


def _npz(folder: Path) -> None:
    weights, _ = marian_native.write_student(folder)
    (folder / "model.ende.intgemm.alphas.bin").unlink()
    marian_native.write_npz(folder / "model.npz", {name: array.astype("<f4") for name, array in weights.items()})


def _fairseq(folder: Path) -> None:
    fairseq_folder.write_folder(folder, fairseq_folder.TorchTransformer())


def _gpt2(folder: Path) -> None:
    test_gpt2.write_folder(folder)


def _bert(folder: Path) -> None:
    bert_folder.write_folder(folder, bert_folder.random_weights())


FORMATS: list[Callable[[Path], None]] = [
    *(_huggingface, _pickled, _pickled_before_1_6, _ctranslate2, _argos, _marian, _npz, _fairseq, _gpt2, _bert),
]


def check(write: Callable[[Path], None], folder: Path, *, count: int, seed: int) -> None:
    write(folder / "original")
    result = subprocess.run(
        [sys.executable, "-m", "tests.importing.mutated_imports", str(folder / "original"), str(count), str(seed)],
        cwd=Path(__file__).parents[2], capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-3000:]
    found = json.loads(result.stdout.splitlines()[-1])
    assert found["errors"] == [], "\n".join(found["errors"])
    assert found["events"] == []
    assert found["read"] < count, "no damage was found: the mutations do nothing"
    assert found["slowest"] < SECONDS, "processor time of one import"
    assert found["kilobytes"] < KILOBYTES


@pytest.mark.slow
@pytest.mark.parametrize("write", FORMATS)
def test_some_damaged_files_are_read_or_refused(tmp_path: Path, write: Callable[[Path], None]) -> None:
    check(write, tmp_path, count=25, seed=10_000_000)


@pytest.mark.extended
@pytest.mark.parametrize("write", FORMATS)
def test_thousands_of_damaged_files_are_read_or_refused(tmp_path: Path, write: Callable[[Path], None]) -> None:
    check(write, tmp_path, count=3_000, seed=0)
