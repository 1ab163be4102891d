"""The built wheel, installed away from the checkout: a data file that the wheel forgets is missing here too."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from filelock import FileLock

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Return the wheel of this checkout; parallel workers build it once between them."""
    base = tmp_path_factory.getbasetemp()
    shared = base if worker_id == "master" else base.parent
    with FileLock(shared / "wheel.lock"):
        built = list(shared.glob("wheel/*.whl"))
        if not built:
            options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
            _pip("wheel", *options, "--wheel-dir", str(shared / "wheel"), str(ROOT))
            built = list(shared.glob("wheel/*.whl"))
    (only_one,) = built
    return only_one


@pytest.fixture(scope="session")
def installed(wheel: Path) -> Path:
    """Return a folder that holds the installed wheel and nothing else."""
    folder = wheel.parent / "installed"
    with FileLock(wheel.parent / "installed.lock"):
        if not folder.exists():
            _pip("install", "--quiet", "--no-deps", "--no-index", "--no-compile", "--target", str(folder), str(wheel))
    return folder


def environment_of(installed: Path) -> dict[str, str]:
    """Return variables with which Python imports the installed wheel and not the checkout's editable installation."""
    start = installed.parent / "start"
    start.mkdir(exist_ok=True)
    # scikit-build-core's finder of editable packages precedes PYTHONPATH.
    program = (
        "import sys\nsys.meta_path[:] = [f for f in sys.meta_path if not type(f).__name__.startswith('ScikitBuild')]\n"
    )
    (start / "sitecustomize.py").write_text(program, encoding="utf-8")
    return {**os.environ, "PYTHONPATH": f"{installed}{os.pathsep}{start}"}


Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(installed: Path, tmp_path: Path) -> Run:
    """Return a function that runs `python -m transduce ...` from the wheel in an empty folder (`tmp_path`)."""

    def run_transduce(
        *arguments: str | Path, stdin: str = "", environment: Mapping[str, str] | None = None, exit_code: int = 0
    ) -> subprocess.CompletedProcess[str]:
        result = subprocess.run(
            [sys.executable, "-m", "transduce", *map(str, arguments)],
            cwd=tmp_path,
            env={**environment_of(installed), **(environment or {})},
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert result.returncode == exit_code, f"exit code {result.returncode}\n{result.stdout}\n{result.stderr}"
        return result

    return run_transduce


def _pip(*arguments: str) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "pip", *arguments], capture_output=True, encoding="utf-8", check=False
    )
    assert result.returncode == 0, result.stderr
