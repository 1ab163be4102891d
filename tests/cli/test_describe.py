"""`transduce describe` tells what a model would be translated in on this machine."""

import json

import pytest
from typer.testing import CliRunner

import transduce.core
from transduce.cli.application import app
from transduce.engine import choose_precision
from transduce.experiment import resolve_experiment


def described(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["describe", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_it_shows_the_precision_that_auto_takes() -> None:
    chosen = choose_precision("auto", [resolve_experiment(preset="base").model])
    assert json.loads(described("base", "--json"))["automatic_precision"] == chosen
    assert f"computes in {chosen}." in described("base")


def test_without_the_core_it_shows_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transduce.core, "core", None)
    assert json.loads(described("base", "--json"))["automatic_precision"] != "int8"
