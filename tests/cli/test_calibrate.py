"""`transduce calibrate` and what needs it: `translate --leave-below`, with a model that has learned six sentences."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import SOURCES, TARGETS
from typer.testing import Result

from transduce.errors import ConfigError, DataError

Command = Callable[..., Result]


@pytest.fixture
def model(small_model: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(small_model, tmp_path / "model"))


def test_a_calibrated_model_leaves_what_it_is_not_confident_of(transduce: Command, model: Path, tmp_path: Path) -> None:
    document, pairs = tmp_path / "x.tsv", tmp_path / "pairs.tsv"
    document.write_text("it rains\t\nred old red two\t\n", encoding="utf-8")
    wrong = [(source, "ganz anders") for source in ("red old red two", "man man the two", "cats sings it blue")] * 20
    right = list(zip(SOURCES, TARGETS, strict=True)) * 25
    pairs.write_text("".join(f"{source}\t{target}\n" for source, target in right + wrong), encoding="utf-8")
    refused = transduce("translate", model, document, "--leave-below", "0.5")
    assert isinstance(refused.exception, ConfigError)
    assert "this model has no calibration. Run `transduce calibrate`" in str(refused.exception)
    made = transduce("calibrate", model, pairs, "--threads", "1")
    assert f"written to {model / 'calibration.json'}" in made.stdout
    checked = json.loads(transduce("calibrate", model, pairs, "--check", "--json").stdout)["deciles"]
    assert max(abs(confidence - share) for confidence, share in checked) < 0.25
    filled = transduce("translate", model, document, "--leave-below", "0.5", "--threads", "1")
    assert filled.stdout == "it rains\tes regnet\nred old red two\t\n"
    assert "1 filled in, 1 left" in filled.stderr
    assert "its confidence is below 0.5" in filled.stderr
    line = json.loads(transduce("translate", model, "--text", "it rains", "--json").stdout)
    assert line["confidence"] > 0.5


def test_wrong_input_is_refused(transduce: Command, model: Path, tmp_path: Path) -> None:
    few = tmp_path / "few.tsv"
    few.write_text("it rains\tes regnet\n", encoding="utf-8")
    assert isinstance(transduce("calibrate", model, few).exception, DataError)
    assert "no calibration to check" in str(transduce("calibrate", model, few, "--check").exception)
    assert "are for documents" in str(transduce("translate", model, "--text", "a", "--leave-below", "0.1").exception)
