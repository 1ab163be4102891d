"""The first minutes with the installed package: is it there, what can it do, what does it run on."""

import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.journeys.conftest import environment_of

from transduce.version import __version__

ROOT = Path(__file__).parents[2]
Run = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.slow


def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    source = ROOT / "src"
    tracked = {
        file.relative_to(source).as_posix()
        for file in (source / "transduce").rglob("*")
        if file.is_file() and file.parent.name != "__pycache__"
    }
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
        metadata = {name.partition("/")[2] for name in archive.namelist() if ".dist-info/" in name}
    assert held == tracked
    assert "transduce/py.typed" in held
    assert {"METADATA", "entry_points.txt", "licenses/LICENSE"} <= metadata


def test_the_journey_starts_from_the_wheel_and_not_from_the_checkout(installed: Path, tmp_path: Path) -> None:
    program = "import transduce; print(transduce.__file__)"
    command = [sys.executable, "-c", program]
    result = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment_of(installed),
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(result.stdout.strip()) == installed / "transduce" / "__init__.py"


def test_version_help_and_system(run: Run) -> None:
    assert run("--version").stdout == f"transduce {__version__}\n"
    listed = run("--help").stdout
    facts = json.loads(run("system", "--json").stdout)
    assert facts["transduce"] == __version__
    for command in ("system", "settings", "describe"):
        assert command in listed
        assert "Usage" in run(command, "--help").stdout


def test_the_script_is_installed(installed: Path, tmp_path: Path) -> None:
    script = installed / "bin" / "transduce"
    if not script.exists():
        pytest.skip("this system keeps scripts elsewhere")
    command = [sys.executable, str(script), "--version"]
    result = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment_of(installed),
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout == f"transduce {__version__}\n"


def test_presets_come_with_the_wheel(run: Run) -> None:
    """The base model with the paper's vocabulary has 63,045,632 parameters; the file that says so is data."""
    facts = json.loads(run("describe", "base", "--vocabulary", "37000", "--json").stdout)
    assert facts["parameters"]["total"] == 63_045_632
