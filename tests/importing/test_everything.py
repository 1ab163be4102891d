"""Every command works on an imported model, and adapts it with its own vocabulary."""

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from tests.importing.marian_folder import LINES, write_folder
from tests.importing.marian_native import write_student
from tests.serving.conftest import running_server

from transduce.errors import ModelError
from transduce.importing.formats import import_model
from transduce.model_directory import Languages, load_model


def run(*arguments: object) -> str:
    command = [sys.executable, "-m", "transduce", *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout + result.stderr


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


@pytest.mark.slow
def test_a_student_of_firefox_is_scored_adapted_and_fills_documents(tmp_path: Path) -> None:
    write_student(tmp_path / "firefox")
    corpus, model, adapted = tmp_path / "corpus.tsv", tmp_path / "model", tmp_path / "run"
    pairs = [f"{a} {n}\t{b} {n}\n" for n, (a, b) in enumerate(pairwise(LINES))]
    corpus.write_text("".join(pairs), encoding="utf-8")
    run("import", tmp_path / "firefox", model)
    (tmp_path / "app.properties").write_text("title=the dog runs.\n", encoding="utf-8")
    filled = run("translate", model, tmp_path / "app.properties")
    assert filled.startswith("title=")
    assert "1 filled in" in filled or "the translation " in filled  # random weights may stutter, which is said
    run("attention", model, "the dog runs.", "--output", tmp_path / "page.html")
    run("train", "--train", corpus, "--start-from", model, "--output", adapted, "--set", "training.steps=3")
    before, after = load_model(model), load_model(adapted / "model")
    assert after.tokenizers.fingerprint == before.tokenizers.fingerprint
    gate = "decoder.layers.0.ssru.W_f.weight"
    assert (after.parameters[gate] != before.parameters[gate]).any()
    assert "BLEU" in run("evaluate", adapted, corpus)


@pytest.mark.slow
def test_imported_models_of_two_pairs_are_served_together(tmp_path: Path) -> None:
    write_student(tmp_path / "firefox")
    write_folder(tmp_path / "marian", tags=(">>deu<<", ">>nld<<"))
    run("import", tmp_path / "firefox", tmp_path / "student", "--from", "de", "--to", "en")
    run("import", tmp_path / "marian", tmp_path / "opus", "--from", "en", "--to", "nl")
    with running_server(tmp_path / "log", tmp_path / "student", tmp_path / "opus") as server, server.client() as client:
        for source, target, text in (("de", "en", "zwei große Bären"), ("en", "nl", "a cat sleeps here")):
            asked = {"q": text, "source": source, "target": target}
            answer = client.post("/translate", json=asked)
            assert answer.status_code == 200, answer.text
            assert isinstance(answer.json()["translatedText"], str)


def test_what_is_no_model_is_told_as_far_as_possible(tmp_path: Path) -> None:
    (tmp_path / "models--opus/snapshots").mkdir(parents=True)
    write_folder(tmp_path / "models--opus/snapshots/1a2b", tags=(">>deu<<",))
    write_student(tmp_path / "firefox")
    for path in (tmp_path / "firefox").iterdir():
        (tmp_path / "packed").mkdir(exist_ok=True)
        path.rename(tmp_path / "packed" / f"{path.name}.gz")
    (tmp_path / "opus.zip").write_bytes(b"PK")
    (tmp_path / "text").write_text("hello", encoding="utf-8")
    assert_refused(tmp_path / "packed", r"packed \(lex.50.50.ende.s2t.bin.gz\): unpack it first")
    assert_refused(tmp_path / "opus.zip", "unpack it first")
    assert_refused(tmp_path / "text", "is of no format that transduce imports. These are read: a folder of Hugging")
    assert_refused(tmp_path / "firefox", "is of no format")
    assert_refused(tmp_path / "models--opus", r"is not a model, but .*1a2b is\.")
    import_model(tmp_path / "models--opus/snapshots/1a2b", tmp_path / "model", Languages(target="de"))
    assert_refused(tmp_path / "model", "is a model of transduce already: use it as it is")


def assert_refused(source: Path, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        import_model(source, source.parent / "destination", Languages(target="de"))
