"""safetensors files, with the safetensors package as oracle."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from transduce.errors import ModelError
from transduce.tensor_file import read_tensors, upper_halves, write_tensors


@pytest.fixture
def tensors() -> dict[str, torch.Tensor]:
    torch.manual_seed(5)
    return {
        "b.scale": torch.randn(3),
        "b": torch.randint(-127, 128, (3, 7), dtype=torch.int8),
        "ä": torch.randn(2, 5).bfloat16(),
        "hashes": torch.tensor([1, 2**63 - 1]).to(torch.uint64),
        "short lists": torch.randint(0, 99, (5, 3), dtype=torch.int16),
        "lists": torch.randint(0, 99, (5, 2), dtype=torch.int32),
        "empty": torch.zeros(0, 4),
        "visible": torch.ones(3, 3).tril().bool(),
        "bytes": torch.randint(0, 256, (5,), dtype=torch.uint8),
        "wide": torch.randn(3, dtype=torch.float64),
    }


def test_files_are_byte_for_byte_those_of_the_package(tmp_path: Path, tensors: dict[str, torch.Tensor]) -> None:
    save_file(tensors, tmp_path / "theirs", metadata={"format": "pt"})
    arrays = {name: t.view(torch.uint16).numpy() if name == "ä" else t.numpy() for name, t in tensors.items()}
    write_tensors(tmp_path / "ours", arrays, metadata={"format": "pt"})
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()
    assert set(load_file(tmp_path / "ours")) == set(tensors)


def test_what_the_package_writes_is_read(tmp_path: Path, tensors: dict[str, torch.Tensor]) -> None:
    save_file(tensors, tmp_path / "file")
    found = read_tensors(tmp_path / "file")
    assert set(found) == set(tensors)
    for name, tensor in tensors.items():
        assert (found[name] == (tensor.float() if name == "ä" else tensor).numpy()).all()
        assert found[name].shape == tuple(tensor.shape)


def test_bf16_rounds_as_torch_does() -> None:
    bits = np.random.default_rng(7).integers(0, 2**32, 100_000, dtype=np.uint32)
    ties = np.arange(1 << 16, dtype=np.uint32) << 16 | 0x8000
    floats = np.concatenate([bits, ties]).view(np.float32)
    expected = torch.from_numpy(floats).bfloat16().float().numpy()
    halves = upper_halves(floats)
    found = (halves.astype(np.uint32) << 16).view(np.float32)
    assert ((found == expected) | (np.isnan(found) & np.isnan(expected))).all()


@pytest.mark.parametrize(
    "offsets",
    [
        [[0, 8], [4, 12]],
        [[0, 8], [12, 20]],
        [[8, 16], [16, 24]],
        [[-8, 0], [0, 8]],
        [[8, 0], [8, 16]],
        [[0, 8], [0, 8]],
    ],
)
def test_arrays_that_overlap_or_leave_gaps_are_refused(tmp_path: Path, offsets: list[list[int]]) -> None:
    entries = {
        name: {"dtype": "F32", "shape": [2], "data_offsets": own} for name, own in zip("ab", offsets, strict=True)
    }
    header = json.dumps(entries).encode()
    (tmp_path / "file").write_bytes(len(header).to_bytes(8, "little") + header + bytes(max(offsets[1])))
    with pytest.raises(ModelError, match=r"is damaged: its header is not that of a safetensors file"):
        read_tensors(tmp_path / "file")
