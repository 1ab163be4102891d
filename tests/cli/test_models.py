"""`transduce models`: what it finds, and that one broken model does not hide the others."""

import json
import shutil
from pathlib import Path

import pytest
from tests.cli.conftest import Command


@pytest.fixture
def shelf(small_model: Path, tmp_path: Path) -> Path:
    """A folder with a model directory, a run, a broken model and something else."""
    shutil.copytree(small_model, tmp_path / "plain")
    shutil.copytree(small_model, tmp_path / "run" / "model")
    shutil.copytree(small_model, tmp_path / "torn")
    (tmp_path / "torn" / "config.json").write_text("{", encoding="utf-8")
    (tmp_path / "notes").mkdir()
    return tmp_path


def test_models_and_runs_are_found_with_their_facts(transduce: Command, shelf: Path, small_model: Path) -> None:
    found = {Path(model["name"]).name: model for model in json.loads(transduce("models", shelf, "--json").output)}
    mine = {name: model for name, model in found.items() if not model["bundled"]}
    assert set(mine) == {"plain", "run", "torn"}
    assert mine["run"]["folder"] == str(shelf / "run" / "model")
    assert mine["plain"]["bytes"] == sum(path.stat().st_size for path in small_model.iterdir())
    assert "is damaged" in mine["torn"]["fault"]


def test_the_table_names_every_model(transduce: Command, shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shelf)
    lines = transduce("models", ".").output.splitlines()
    assert {line.split()[0] for line in lines} >= {"plain", "run", "torn"}
    assert [line for line in lines if line.startswith("torn cannot be used: ")]


def test_a_run_given_by_itself_is_one_model(transduce: Command, shelf: Path) -> None:
    found = json.loads(transduce("models", shelf / "run", "--json").output)
    assert [model["name"] for model in found if not model["bundled"]] == [str(shelf / "run")]
