"""What to compute with depends on the machine alone."""

import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from transduce.compute import configure_compute, torch_threads
from transduce.machine import (
    available_cores,
    cores_of_quota,
    fastest_precision,
    flags_in,
    keep_freed_memory,
    processor_flags,
    processor_name,
)

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="reads what Linux says of itself")


@pytest.fixture(autouse=True)
def threads_as_before() -> Iterator[None]:
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def test_answers_are_the_same_twice() -> None:
    assert configure_compute(threads=None, precision="auto") == configure_compute(threads=None, precision="auto")
    assert processor_name() == processor_name() != ""


def test_what_is_asked_for_is_what_torch_uses() -> None:
    for threads in (1, 2, 3):
        compute = configure_compute(threads=threads, precision="float32", device="cpu")
        assert (compute.device, compute.threads, compute.precision) == ("cpu", threads, "float32")
        assert torch.get_num_threads() == threads
    assert configure_compute(threads=None, precision="bf16").precision == "bf16"


@pytest.mark.parametrize(
    ("flags", "precision"),
    [
        ("", "float32"),
        ("avx2 avx512f avx512_vnni", "float32"),
        ("avx2 avx512f avx512_bf16", "bf16"),
        ("avx512f amx_bf16 amx_int8 amx_tile", "bf16"),
        ("amx_tile amx_int8", "float32"),
        ("fp asimd bf16 i8mm", "float32"),  # ARM: not measured, so not trusted
    ],
)
def test_bf16_is_chosen_exactly_where_the_processor_multiplies_it(flags: str, precision: str) -> None:
    assert fastest_precision(frozenset(flags.split())) == precision


@linux_only
def test_flags_are_those_that_torch_finds() -> None:
    oracle = {
        "avx2": torch.cpu._is_avx2_supported(),
        "avx512_bf16": torch.cpu._is_avx512_bf16_supported(),
        "amx_tile": torch.cpu._is_amx_tile_supported(),
    }
    assert {flag: flag in processor_flags() for flag in oracle} == oracle


@pytest.mark.parametrize(
    ("cpuinfo", "flags"),
    [
        (
            "processor\t: 0\nmodel name\t: X\nflags\t\t: avx2 avx512f\nvmx flags\t: ept\nflags\t\t: sse\n",
            "avx2 avx512f",
        ),
        ("processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd bf16\n", "fp asimd bf16"),
        ("", ""),
        ("vmx flags\t: ept", ""),
    ],
)
def test_flags_are_read_from_the_first_processor(cpuinfo: str, flags: str) -> None:
    assert flags_in(cpuinfo) == frozenset(flags.split())


@pytest.mark.parametrize(
    ("cpu_max", "cores"),
    [
        ("max 100000\n", None),
        ("200000 100000\n", 2),
        ("150000 100000\n", 2),
        ("50000 100000\n", 1),
        ("100000 0\n", None),
        ("", None),
    ],
)
def test_a_containers_share_of_time_is_worth_so_many_cores(cpu_max: str, cores: int | None) -> None:
    assert cores_of_quota(cpu_max) == cores


@linux_only
def test_cores_are_those_the_process_may_use() -> None:
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert available_cores() == 1
    finally:
        os.sched_setaffinity(0, allowed)
    assert 1 <= available_cores() <= (os.cpu_count() or 1)


PAGE_FAULTS = """
import resource, torch
from transduce.machine import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        torch.ones(10_000_000)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

torch.set_num_threads(1)
faults()
untold = faults()
assert keep_freed_memory()
faults()
print(untold, faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc is told")
def test_glibc_keeps_freed_memory_once_told() -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1] / "src")}
    command = [sys.executable, "-c", PAGE_FAULTS]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    untold, told = map(int, result.stdout.split())
    # 40 MB, taken and freed ten times, are 100,000 small pages or 200 huge ones, and none if the memory was kept.
    assert untold >= 190
    assert told < untold / 10


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_other_systems_are_left_alone(monkeypatch: pytest.MonkeyPatch, system: str) -> None:
    monkeypatch.setattr(sys, "platform", system)
    assert keep_freed_memory() is False


def test_a_libc_without_the_call_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr("ctypes.CDLL", lambda name: object())  # musl has no mallopt
    assert keep_freed_memory() is False

    def refuse(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr("ctypes.CDLL", refuse)
    assert keep_freed_memory() is False


def test_threads_hold_inside_the_block_only() -> None:
    before = torch.get_num_threads()
    with torch_threads(before + 1):
        assert torch.get_num_threads() == before + 1
        with torch_threads(None):
            assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before
    with pytest.raises(ZeroDivisionError), torch_threads(before + 1):
        raise ZeroDivisionError
    assert torch.get_num_threads() == before
