"""No call that one system lacks stands without a guard: mypy knows what each system's standard library has.

A guard is what mypy understands as one: `sys.platform`, or `hasattr`.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"
UNGUARDED = """
import fcntl, os

def f(descriptor: int) -> None:
    os.fork()
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    os.sched_getaffinity(0)
    if hasattr(os, "sched_getaffinity"):
        os.sched_getaffinity(0)
"""


def missing_calls(code: Path, *, system: str, cache: Path) -> list[str]:
    """Return what `code` uses of the standard library that `system` does not have, each with its line."""
    options = ["--config-file=", "--follow-imports=skip", "--ignore-missing-imports", "--python-version=3.11"]
    command = [sys.executable, "-m", "mypy", *options, f"--platform={system}", f"--cache-dir={cache}", str(code)]
    output = subprocess.run(command, cwd=code.parent, capture_output=True, encoding="utf-8", check=False).stdout
    assert "checked" in output or "Success" in output, output
    return re.findall(r"^(.+: error: Module has no attribute .+?) +\[attr-defined\]$", output, flags=re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize(("system", "missing"), [("win32", 4), ("darwin", 1), ("linux", 0)])
def test_every_system_has_what_the_package_calls(tmp_path: Path, system: str, missing: int) -> None:
    control = tmp_path / "unguarded.py"
    control.write_text(UNGUARDED, encoding="utf-8")
    assert len(missing_calls(control, system=system, cache=tmp_path / "cache")) == missing
    assert missing_calls(SOURCE / "transduce", system=system, cache=tmp_path / "cache") == []
