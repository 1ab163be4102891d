"""A missing tool skips, and fails where TRANSDUCE_REQUIRE names it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TEST = """
import pytest

@pytest.mark.needs("strace")
def test_uses_a_tool(tool) -> None:
    assert tool("strace")

def test_uses_a_tool_it_did_not_name(tool) -> None:
    with pytest.raises(AssertionError, match="needs"):
        tool("strace")
"""


def run_pytest(folder: Path, *, path: str, require: str | None) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_bytes((Path(__file__).parent / "conftest.py").read_bytes())
    (folder / "test_tool.py").write_text(TEST, encoding="utf-8")
    environment = {**os.environ, "PATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment.pop("TRANSDUCE_REQUIRE", None)
    if require is not None:
        environment["TRANSDUCE_REQUIRE"] = require
    command = [sys.executable, "-m", "pytest", "-rs", "-p", "no:cacheprovider", "--strict-markers", str(folder)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def install_tool(folder: Path, *, works: bool) -> str:
    folder.mkdir()
    (folder / "strace").write_text(f"#!/bin/sh\nexit {0 if works else 1}\n", encoding="utf-8")
    (folder / "strace").chmod(0o755)
    return str(folder)


def test_a_missing_tool_skips_with_its_reason(tmp_path: Path) -> None:
    result = run_pytest(tmp_path, path=os.devnull, require=None)
    assert result.returncode == 0
    assert "1 passed, 1 skipped" in result.stdout
    assert "strace is not installed. Install it to run this test." in result.stdout


@pytest.mark.parametrize("require", ["strace", "chromium, strace"])
def test_a_missing_tool_that_is_required_fails(tmp_path: Path, require: str) -> None:
    result = run_pytest(tmp_path, path=os.devnull, require=require)
    assert result.returncode == 1
    assert "strace is not installed, and TRANSDUCE_REQUIRE asks for it." in result.stdout
    assert "skipped" not in result.stdout


def test_a_tool_that_is_not_required_still_skips(tmp_path: Path) -> None:
    result = run_pytest(tmp_path, path=os.devnull, require="chromium")
    assert result.returncode == 0
    assert "1 passed, 1 skipped" in result.stdout


@pytest.mark.skipif(os.name == "nt", reason="the stand-in for the tool is a shell script")
def test_a_present_tool_runs_and_a_broken_one_counts_as_missing(tmp_path: Path) -> None:
    result = run_pytest(tmp_path, path=install_tool(tmp_path / "working", works=True), require="strace")
    assert "2 passed" in result.stdout
    result = run_pytest(tmp_path, path=install_tool(tmp_path / "broken", works=False), require="strace")
    assert result.returncode == 1
    assert "strace is installed but does not work here" in result.stdout


def test_an_unknown_tool_is_refused_at_the_start(tmp_path: Path) -> None:
    result = run_pytest(tmp_path, path=os.devnull, require="firefox")
    assert result.returncode == pytest.ExitCode.USAGE_ERROR
    assert "TRANSDUCE_REQUIRE names firefox; tests know only chromium, strace." in result.stderr
