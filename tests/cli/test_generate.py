"""`transduce generate` and `transduce likelihood` with a language model, as a user meets them."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.importing.test_gpt2 import write_folder
from tests.translator.test_generating import write_model
from typer.testing import Result

import transduce as package
from transduce.cli.surprise import _painted
from transduce.errors import ConfigError
from transduce.importing.formats import import_model
from transduce.model_directory import Languages

Command = Callable[..., Result]


def test_the_prompt_and_the_text_are_printed(transduce: Command, tmp_path: Path) -> None:
    folder, _ = write_model(tmp_path / "model")
    options = ("--tokens", "40", "--seed", "5", "--temperature", "0.9", "--top-k", "30", "--threads", "1")
    expected = package.load(folder, threads=1).generate("to be", tokens=40, seed=5, temperature=0.9, top_k=30)
    assert transduce("generate", folder, "--prompt", "to be", *options).stdout == f"to be{expected}\n"
    found = json.loads(transduce("generate", folder, "--prompt", "to be", "--json", *options).stdout)
    assert found == {"prompt": "to be", "text": expected}
    stopped = transduce("generate", folder, "--prompt", "to be", "--stop", expected[5:8], *options).stdout
    assert stopped == f"to be{expected[: expected.find(expected[5:8])]}\n"


def test_nothing_is_printed_before_options_are_refused(transduce: Command, tmp_path: Path) -> None:
    folder, _ = write_model(tmp_path / "model")
    result = transduce("generate", folder, "--prompt", "to be", "--beam", "2", "--seed", "1")
    assert isinstance(result.exception, ConfigError)
    assert result.stdout == ""


def test_interactive_needs_no_prompt(transduce: Command, tmp_path: Path) -> None:
    folder, _ = write_model(tmp_path / "model")
    result = transduce("generate", folder, "--interactive", "--prompt", "to be")
    assert isinstance(result.exception, ConfigError)
    assert "Leave out --prompt" in str(result.exception)


def test_the_surprise_of_a_text(transduce: Command, tmp_path: Path) -> None:
    folder, _ = write_model(tmp_path / "model")
    text, page = tmp_path / "text.txt", tmp_path / "page.html"
    text.write_text("to be\nor <b>", encoding="utf-8")
    result = transduce("likelihood", folder, text, "--json", "--page", page, "--threads", "1")
    assert result.exception is None, result.output
    found = json.loads(result.stdout)
    expected = package.load(folder, precision="float32", threads=1).text_likelihood("to be\nor <b>")
    values = [token["log_probability"] for token in found["tokens"]]
    assert values == pytest.approx(list(expected.log_probabilities), abs=1e-6)
    assert found["tokens"][5]["text"] == "\n"
    assert "bits per character" in result.stderr
    content = page.read_text(encoding="utf-8")
    assert content.count("<span") == len(values)
    assert "<b>" not in content


def test_the_surprise_of_gpt2_shows_the_text_itself(transduce: Command, tmp_path: Path) -> None:
    write_folder(tmp_path / "gpt2")
    import_model(tmp_path / "gpt2", tmp_path / "model", Languages())
    text, page = tmp_path / "text.txt", tmp_path / "page.html"
    text.write_text("in  the\n\n thin \u4e2d ice", encoding="utf-8")
    result = transduce("likelihood", tmp_path / "model", text, "--json", "--page", page, "--threads", "1")
    shown = [token["text"] for token in json.loads(result.stdout)["tokens"]]
    assert "".join(shown) == text.read_text(encoding="utf-8")
    assert " the" in shown
    assert "\u4e2d" in shown  # with the last of its three bytes
    assert "\u0120" not in page.read_text(encoding="utf-8")  # GPT-2's sign for a space


def test_colours_end_before_a_line_break_and_control_codes_are_names() -> None:
    assert _painted("a\nb", 9) == "\x1b[48;5;9;30ma\u21b5\x1b[0m\n\x1b[48;5;9;30mb\x1b[0m"
    assert _painted("\x1b[2J", 9) == "\x1b[48;5;9;30m\\x1b[2J\x1b[0m"
