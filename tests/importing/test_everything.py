"""Every command works on an imported model, and adapts it with its own vocabulary."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.importing.marian_folder import LINES, write_folder

from transduce.model_directory import load_model


def run(*arguments: object) -> str:
    command = [sys.executable, "-m", "transduce", *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.slow
def test_an_imported_model_is_scored_inspected_and_adapted(tmp_path: Path) -> None:
    write_folder(tmp_path / "marian")
    corpus, model, adapted = tmp_path / "corpus.tsv", tmp_path / "model", tmp_path / "run"
    pairs = zip(LINES, [*LINES[2:], *LINES[:2]], strict=True)
    corpus.write_text("".join(f"{a} {n}\t{b} {n}\n" for n, (a, b) in enumerate(pairs)), encoding="utf-8")
    assert "MarianMT, 2+2 layers" in run("import", tmp_path / "marian", model, "--from", "en", "--to", "de")
    assert "BLEU" in run("evaluate", model, corpus)
    run("attention", model, "the dog runs.", "--output", tmp_path / "page.html")
    run("train", "--train", corpus, "--start-from", model, "--output", adapted, "--set", "training.steps=4")
    before, after = load_model(model), load_model(adapted / "model")
    assert after.tokenizers.fingerprint == before.tokenizers.fingerprint
    assert any((after.parameters[name] != before.parameters[name]).any() for name in before.parameters)
