"""What the machine reports: cores, features and name of the processor, memory; and glibc's allocator.

The functions for the allocator change the whole process. Only commands, the server's child process and training call
them; loading a model does not.
"""

import contextlib
import ctypes
import math
import os
import platform
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

TrainingPrecision = Literal["float32", "bf16"]


@dataclass(frozen=True)
class Compute:
    """The device, threads and precision of a run; stored with the run and used again at every resume."""

    device: str
    threads: int
    precision: TrainingPrecision


def fastest_precision(flags: frozenset[str]) -> TrainingPrecision:
    """Return bf16 if a processor with these flags multiplies bf16 natively, else float32.

    Only x86 processors get bf16: others are not measured.
    """
    return "bf16" if {"avx512_bf16", "amx_bf16"} & flags else "float32"


def available_cores() -> int:
    """Return how many cores this process may use; in a container these may be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    try:
        quota = cores_of_quota(Path("/sys/fs/cgroup/cpu.max").read_text(encoding="utf-8"))
    except OSError:
        return cores
    return min(cores, quota or cores)


def cores_of_quota(cpu_max: str) -> int | None:
    """Return the number of cores that a container's CPU quota (cgroup's `cpu.max`) allows; None without a quota.

    More threads than that get no more time: they take turns, and wait for each other at every matrix product.
    """
    quota, _, period = cpu_max.partition(" ")
    if not quota.strip().isdecimal() or not period.strip().isdecimal() or int(period) == 0:
        return None
    return max(1, math.ceil(int(quota) / int(period)))


def processor_flags() -> frozenset[str]:
    """Return the processor's feature flags by their Linux names; empty on other systems."""
    return flags_in(_cpuinfo())


def flags_in(cpuinfo: str) -> frozenset[str]:
    """Return the flags of the first processor in a text such as /proc/cpuinfo; on ARM they are called features."""
    lines = (line.partition(":") for line in cpuinfo.splitlines())
    flags = next((value for name, _, value in lines if name.strip() in ("flags", "Features")), "")
    return frozenset(flags.split())


def processor_name() -> str:
    """Return the processor's name for a bug report or a model card."""
    name = next((line for line in _cpuinfo().splitlines() if line.startswith("model name")), "")
    return name.partition(":")[2].strip() or platform.processor() or platform.machine()


def _cpuinfo() -> str:
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return ""


def memory() -> tuple[int | None, int | None]:
    """Return the total and the available memory in bytes, each None if the system does not report it."""
    try:
        lines = (line.partition(":") for line in Path("/proc/meminfo").read_text(encoding="utf-8").splitlines())
        fields = {name: int(value.split()[0]) * 1024 for name, _, value in lines}
        return fields["MemTotal"], fields["MemAvailable"]
    except (OSError, KeyError, ValueError, IndexError):
        pass
    if sys.platform == "win32":
        return None, None
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), None


def peak_memory() -> int | None:
    """Return the peak memory of this process in bytes; None if the system does not report it."""
    if sys.platform == "win32":
        return None
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def resident_bytes() -> int | None:
    """Return the resident memory of this process; where the system does not report it, its peak, or None."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else None
    except (OSError, ValueError, IndexError):
        return peak_memory()


def give_back_freed_memory() -> None:
    """Return freed memory to the system once, after the weights have been read and packed."""
    if sys.platform.startswith("linux"):
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL("libc.so.6").malloc_trim(0)


def keep_freed_memory() -> bool:
    """Make glibc keep large freed blocks instead of returning them to the system at every step.

    Without this, page faults took half of a training step's time. Returns whether it took effect: other C libraries
    lack the call.
    """
    if not sys.platform.startswith("linux"):
        return False
    m_trim_threshold, m_mmap_threshold = -1, -3
    try:
        libc = ctypes.CDLL("libc.so.6")
        return bool(libc.mallopt(m_mmap_threshold, 1 << 30) and libc.mallopt(m_trim_threshold, (1 << 31) - 1))
    except (OSError, AttributeError):
        return False


def is_out_of_memory(fault: Exception) -> bool:
    """Return whether an error says that memory could not be allocated; torch raises a RuntimeError that says so."""
    signs = ("can't allocate memory", "not enough memory", "out of memory")
    return isinstance(fault, MemoryError) or (isinstance(fault, RuntimeError) and any(s in str(fault) for s in signs))
