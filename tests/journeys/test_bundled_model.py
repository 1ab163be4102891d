"""What somebody does with the models in the box, from the installed wheel and without any data."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from transduce.model_directory import bundled_models

Run = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.slow


def test_they_are_listed_and_translate(run: Run) -> None:
    listed = json.loads(run("models", "--json").stdout)
    assert [model["name"] for model in listed] == list(bundled_models()), "the wheel holds all of them"
    for model in listed:
        assert model["bundled"]
        assert model["weights"] == "int8"
        text = {"en": "Where is the nearest pharmacy?", "de": "Wo ist die nächste Apotheke?"}[model["source"]]
        answer = run("translate", model["name"], "--text", text).stdout
        assert "Apotheke" in answer if model["target"] == "de" else answer.startswith("Where is the nearest")


def test_its_attention_becomes_a_page(run: Run, tmp_path: Path) -> None:
    run("attention", "en-de", "She reads a book.", "--output", "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "▁book" in page or "book" in page


def test_it_is_adapted_to_text_of_the_user_s_own(run: Run, tmp_path: Path) -> None:
    pairs = [(f"Open gate {n} of the flugelhorn.", f"Öffne Tor {n} des Flügelhorns.") for n in range(60)]
    (tmp_path / "mine.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs), encoding="utf-8")
    short = ["--set", "training.steps=3", "--set", "training.batch_tokens=256", "--threads", "1"]
    run("train", "--train", "mine.tsv", "--start-from", "en-de", "--output", "adapted", *short)
    config = json.loads((tmp_path / "adapted" / "model" / "config.json").read_text(encoding="utf-8"))
    assert config["architecture"]["d_model"] == 256
    card = (tmp_path / "adapted" / "model" / "README.md").read_text(encoding="utf-8")
    assert 'start_from = "models/en-de"' in card
    assert str(tmp_path) not in card
    assert run("translate", "adapted", "--text", "I am hungry.").stdout.strip()


def test_what_is_said_of_it_goes_to_the_user_s_folder_and_not_into_the_package(
    run: Run, tmp_path: Path, installed: Path
) -> None:
    (tmp_path / "test.tsv").write_text("I am hungry.\tIch habe Hunger.\nIt rains.\tEs regnet.\n", encoding="utf-8")
    before = sorted(installed.rglob("*"))
    run("evaluate", "en-de", "test.tsv", "--threads", "1")
    assert list(tmp_path.glob("en-de-evaluations/*/record.json"))
    assert [path for path in sorted(installed.rglob("*")) if "__pycache__" not in path.parts] == [
        path for path in before if "__pycache__" not in path.parts
    ]
