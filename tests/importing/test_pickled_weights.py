"""The reader of PyTorch's files: it equals torch.load, and no instruction of a file can call anything."""

import io
import os
import pickle
import pickletools
import sys
import zipfile
from pathlib import Path
from random import Random

import pytest
import torch

from transduce.errors import ModelError
from transduce.importing.pickled_weights import _ACTIONS, Record, StoredTensor, TorchArchive


def archive(path: Path, program: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("archive/data.pkl", program)
    return path


@pytest.mark.parametrize("is_zip", [True, False], ids=["since 1.6", "before"])
def test_tensors_equal_those_that_torch_loads(tmp_path: Path, is_zip: bool) -> None:
    matrix = torch.randn(5, 7)
    saved = {
        "matrix": matrix, "transposed": matrix.T, "half": matrix.half(), "bf16": matrix.bfloat16(),
        "long": torch.arange(3),
        "row": matrix[2, 1:5], "parameter": torch.nn.Parameter(matrix),
        "empty": torch.zeros(0, 3), "one": torch.tensor(2.5),
    }  # fmt: skip
    torch.save(saved, tmp_path / "x.pt", _use_new_zipfile_serialization=is_zip)
    read = TorchArchive(tmp_path / "x.pt")
    for name, array in read.arrays(read.content).items():
        torch.testing.assert_close(torch.from_numpy(array), saved[name].detach().to(torch.from_numpy(array).dtype))
    assert set(read.content) == set(saved)


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch /tmp/transduce_was_here",)


def test_what_a_file_would_call_stays_a_record(tmp_path: Path) -> None:
    """An audit hook sees every import, every unpickled class and every command; reading causes none."""
    path = archive(tmp_path / "x.pt", pickle.dumps({"x": Evil()}, protocol=2))
    TorchArchive(archive(tmp_path / "harmless.pt", pickle.dumps({}, protocol=2)))  # zipfile imports a codec
    seen: list[str] = []
    watching = [True]
    sys.addaudithook(lambda event, _: seen.append(event) if watching and watching[0] else None)
    content = TorchArchive(path).content
    watching[0] = False
    assert not {"os.system", "subprocess.Popen", "pickle.find_class", "import", "exec", "compile"} & set(seen)
    assert isinstance(content["x"], Record)
    assert content["x"].name in ("posix.system", "nt.system")


def test_no_instruction_can_call_anything() -> None:
    """Of pickle's instructions, those that call are left out, or only make a record of a name and its arguments."""
    calling = {
        "REDUCE",
        "NEWOBJ",
        "NEWOBJ_EX",
        "INST",
        "OBJ",
        "BUILD",
        "EXT1",
        "EXT2",
        "EXT4",
        "GLOBAL",
        "STACK_GLOBAL",
    }
    assert calling & set(_ACTIONS) == {"REDUCE", "NEWOBJ", "BUILD", "GLOBAL", "STACK_GLOBAL"}
    assert set(_ACTIONS) < {operation.name for operation in pickletools.opcodes}


@pytest.mark.parametrize(
    "program", [b"", b".", b"cos\nsystem\n.", b"(ios\nsystem\n.", b"\x80\x02}(K\x01]K\x02u.", b"h\x05."]
)
def test_other_programs_are_refused_or_harmless(tmp_path: Path, program: bytes) -> None:
    try:
        content = TorchArchive(archive(tmp_path / "x.pt", program)).content
    except ModelError:
        return
    assert not callable(content)


SAVED = {"a": torch.randn(3, 4), "b": [1, {"c": (2.0, "x")}]}


def test_mutated_files_of_before_1_6_are_read_or_refused(tmp_path: Path) -> None:
    torch.save(SAVED, tmp_path / "x.pt", _use_new_zipfile_serialization=False)
    content, random, refused = (tmp_path / "x.pt").read_bytes(), Random(1), 0
    for _ in range(300):
        damaged = bytearray(content[: random.choice([len(content), random.randrange(len(content))])])
        for _ in range(random.randint(0, 4) if damaged else 0):
            damaged[random.randrange(len(damaged))] = random.randrange(256)
        (tmp_path / "y.pt").write_bytes(damaged)
        try:
            read = TorchArchive(tmp_path / "y.pt")
            read.arrays(read.content if isinstance(read.content, dict) else {})
        except ModelError:
            refused += 1
    assert refused > 100


@pytest.mark.parametrize(
    ("place", "bytes_there"), [(-56, b"\xff" * 8), (-56, b"\0" * 8), (-56, b"\x0d" + b"\0" * 7)], ids=["-1", "0", "13"]
)
def test_a_storage_of_before_1_6_has_the_count_that_its_tensors_say(
    tmp_path: Path, place: int, bytes_there: bytes
) -> None:
    """The file ends with the count 12, then 12 numbers of 4 bytes: 56 bytes."""
    torch.save(SAVED, tmp_path / "x.pt", _use_new_zipfile_serialization=False)
    content = (tmp_path / "x.pt").read_bytes()
    assert content[place:][:8] == b"\x0c" + b"\0" * 7
    (tmp_path / "x.pt").write_bytes(content[:place] + bytes_there + content[place + 8 :])
    read = TorchArchive(tmp_path / "x.pt") if bytes_there[0] < 13 else None
    with pytest.raises(ModelError, match="damaged"):
        read.arrays(read.content) if read else TorchArchive(tmp_path / "x.pt")


def test_mutated_files_are_read_or_refused(tmp_path: Path) -> None:
    torch.save(SAVED, tmp_path / "x.pt")
    with zipfile.ZipFile(tmp_path / "x.pt") as file:
        contents = {name: file.read(name) for name in file.namelist()}
    program = next(name for name in contents if name.endswith("data.pkl"))
    random = Random(1)
    for _ in range(300):
        damaged = bytearray(contents[program])
        for _ in range(random.randint(1, 4)):
            damaged[random.randrange(len(damaged))] = random.randrange(256)
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as file:
            for name, content in contents.items():
                file.writestr(name, bytes(damaged) if name == program else content)
        (tmp_path / "y.pt").write_bytes(packed.getvalue())
        try:
            read = TorchArchive(tmp_path / "y.pt")
            if isinstance(read.content, dict):
                read.arrays({name: value for name, value in read.content.items() if isinstance(value, StoredTensor)})
        except ModelError:
            continue


DOUBLING = b"".join(b"h%c" % n + b"h%c" % n + b"\x86" + b"q%c" % (n + 1) for n in range(60))  # t = (t, t), 60 times


@pytest.mark.parametrize(
    "program",
    [
        b"\x80\x02}K\x01q\x00" + DOUBLING + b"K\x01s.",  # a key whose hash would take 2^60 steps
        b"\x80\x02K\x01q\x00" + DOUBLING + b"X\x01\0\0\0x\x93.",  # a name of 2^60 characters
        b"\x80\x02(X\x07\0\0\0storagectorch\nFloatStorage\nK\x01q\x00" + DOUBLING + b"X\x03\0\0\0cpuK\x01tQ.",
    ],
)
def test_values_inside_values_cost_no_exponential_time(tmp_path: Path, program: bytes) -> None:
    with pytest.raises(ModelError, match="damaged or is not a file of weights"):
        TorchArchive(archive(tmp_path / "x.pt", program))


def test_dictionaries_are_not_copied_again_and_again(tmp_path: Path) -> None:
    program = b"\x80\x02ccollections\nOrderedDict\nq\x00)Rq\x01K\x01K\x02s" + b"h\x00h\x01\x85R."
    assert TorchArchive(archive(tmp_path / "x.pt", program)).content == {}


@pytest.mark.parametrize("is_zip", [True, False], ids=["since 1.6", "before"])
def test_small_views_of_large_storages_cannot_take_quadratic_time(tmp_path: Path, is_zip: bool) -> None:
    """Views in turn of two storages would read each whole for every number; views of one storage read it once."""
    numbers = [torch.randn(10_000), torch.randn(10_000).bfloat16()]
    torch.save(
        {f"t{n}": numbers[n % 2][n : n + 1] for n in range(100)},
        tmp_path / "x.pt",
        _use_new_zipfile_serialization=is_zip,
    )
    read = TorchArchive(tmp_path / "x.pt")
    with pytest.raises(ModelError, match="show the same numbers too often"):
        read.arrays(read.content)
    views = {f"t{n}": numbers[1][n : n + 1] for n in range(100)}
    torch.save(views, tmp_path / "y.pt", _use_new_zipfile_serialization=is_zip)
    read = TorchArchive(tmp_path / "y.pt")
    assert [float(array[0]) for array in read.arrays(read.content).values()] == numbers[1][:100].tolist()


def test_tensors_that_share_numbers_cannot_fill_the_memory(tmp_path: Path) -> None:
    numbers = torch.randn(1_000)
    torch.save({f"t{n}": numbers[n % 3 :] for n in range(500)}, tmp_path / "x.pt")
    read = TorchArchive(tmp_path / "x.pt")
    with pytest.raises(ModelError, match="show the same numbers too often"):
        read.arrays(read.content)
