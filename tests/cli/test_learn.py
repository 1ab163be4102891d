"""`transduce learn`: one file with lessons, or an error that says what to do; the local page in its own process."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from typer.testing import Result

from transduce.errors import ConfigError, DataError
from transduce.model_directory import Languages, load_model, save_model

Run = Callable[..., Result]


def test_writes_a_page_of_the_users_sentences(transduce: Run, small_model: Path, tmp_path: Path) -> None:
    sentences, page = tmp_path / "mine.txt", tmp_path / "learn.html"
    sentences.write_text("a red dog runs\tein roter Hund läuft\n\nit rains\n", encoding="utf-8")
    result = transduce("learn", small_model, "--sentences", sentences, "--output", page, "--threads", "1")
    assert result.stdout.splitlines() == [
        "1 of 2: a red dog runs",
        "2 of 2: it rains",
        f"wrote {page}: open it in a browser",
    ]
    content = page.read_text(encoding="utf-8")
    assert '"reference": "ein roter Hund läuft"' in content
    assert '"reference": null' in content


def test_the_sentences_that_come_with_the_page_are_in_the_models_language(
    transduce: Run, small_model: Path, tmp_path: Path
) -> None:
    german, model = tmp_path / "de-en", load_model(small_model)
    description = model.description.model_copy(update={"languages": Languages(source="de", target="en")})
    save_model(german, description, model.parameters, tokenizers=model.tokenizers, card="")
    page = tmp_path / "learn.html"
    result = transduce("learn", german, "--output", page, "--threads", "1")
    assert result.stdout.startswith("1 of 8: Ich finde meine Schlüssel nicht.")
    assert '"reference": "I cannot find my keys."' in page.read_text(encoding="utf-8")


def test_says_what_to_do_with_sentences_that_do_not_fit(transduce: Run, small_model: Path, tmp_path: Path) -> None:
    page, empty = tmp_path / "learn.html", tmp_path / "empty.txt"
    empty.write_text("\n \n", encoding="utf-8")
    refused = transduce("learn", small_model, "--sentences", empty, "--output", page)
    assert isinstance(refused.exception, DataError)
    assert "has 0 lines with a sentence" in str(refused.exception)
    missing = transduce("learn", small_model, "--sentences", tmp_path / "none.txt", "--output", page)
    assert "does not exist" in str(missing.exception)
    alone = transduce("learn", small_model, "--sentences", empty)
    assert isinstance(alone.exception, ConfigError)
    assert "Add --output" in str(alone.exception)
    assert not page.exists()


@pytest.mark.slow
def test_serves_the_page_until_ctrl_c() -> None:
    command = [sys.executable, "-m", "transduce", "learn", "--threads", "1"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    ) as run:
        assert run.stdout is not None
        said = run.stdout.readline().split()
        try:
            assert said[:1] == ["open"]
            with httpx.Client(trust_env=False, timeout=60) as client:
                assert "Attention in six steps" in client.get(said[1]).text
                found = client.post(f"{said[1].removesuffix('/learn')}/v1/lesson", json={"text": "It rains."}).json()
                assert found["report"]["source"]["text"] == "It rains."
        finally:
            run.send_signal(signal.SIGINT)
        assert run.wait(timeout=60) == 0
