"""`transduce fill`, `embed` and `attention` with a text encoder, as a user meets them."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.importing.bert_folder import write_model
from typer.testing import Result

import transduce as package
from transduce.errors import ConfigError, DataError, ModelError

Command = Callable[..., Result]


def test_a_mask_is_filled(transduce: Command, tmp_path: Path) -> None:
    model = write_model(tmp_path)
    [expected] = package.load_encoder(model, threads=1).fill("The [MASK] sat", alternatives=3)
    options = ("--alternatives", "3", "--threads", "1")
    lines = transduce("fill", model, "--text", "The [MASK] sat", *options).stdout.splitlines()
    assert lines == [f"{each.probability:.4f}\t{each.token}" for each in expected]
    found = json.loads(transduce("fill", model, "--text", "The [MASK] sat", "--json", *options).stdout)
    assert [each["token"] for each in found["masks"][0]] == [each.token for each in expected]
    (tmp_path / "texts.txt").write_text("a [MASK]\n[MASK] [MASK]\n", encoding="utf-8")
    lines = transduce("fill", model, tmp_path / "texts.txt", *options).stdout.splitlines()
    assert [line.split("\t")[2:] for line in lines] == [[]] * 3 + [["mask 1"]] * 3 + [["mask 2"]] * 3
    refused = transduce("fill", model, "--text", "the cat")
    assert isinstance(refused.exception, DataError)


def test_texts_are_embedded(transduce: Command, tmp_path: Path) -> None:
    model = write_model(tmp_path)
    (tmp_path / "texts.txt").write_text("the cat\n\nthe mat.\n", encoding="utf-8")
    lines = transduce(
        "embed", model, tmp_path / "texts.txt", "--pooling", "first", "--threads", "1"
    ).stdout.splitlines()
    found = [json.loads(line) for line in lines]
    assert [each["text"] for each in found] == ["the cat", "", "the mat."]
    expected = package.load_encoder(model, threads=1).embed([each["text"] for each in found], pooling="first")
    np.testing.assert_allclose([each["embedding"] for each in found], expected, atol=1e-6)


def test_attention_of_two_texts_is_one_page_and_lines_are_pages_of_their_own(
    transduce: Command, tmp_path: Path
) -> None:
    model, page = write_model(tmp_path), tmp_path / "page.html"
    result = transduce("attention", model, "the cat", "--target", "a mat", "--output", page, "--threads", "1")
    assert result.stdout == f"the cat a mat\nwrote {page}: open it in a browser\n"
    assert '"second": 4' in page.read_text(encoding="utf-8")
    lines = transduce("attention", model, "the cat\n\na mat", "--json", "--threads", "1").stdout.splitlines()
    assert [json.loads(line)["source"]["text"] for line in lines] == ["the cat", "a mat"]
    refused = transduce("attention", model, "the cat", "--sentence", "1", "--output", page)
    assert isinstance(refused.exception, ConfigError)


@pytest.mark.parametrize("command", [("translate", "--text"), ("generate", "--prompt"), ("attention",)])
def test_other_commands_say_what_the_model_is_for(transduce: Command, tmp_path: Path, command: tuple[str, ...]) -> None:
    model = write_model(tmp_path)
    if command == ("attention",):
        result = transduce("embed", "en-de", "--text", "a")
        assert "en-de is no text encoder" in str(result.exception)
    else:
        result = transduce(command[0], model, *command[1:], "a")
        assert "is a text encoder, which neither translates nor writes" in str(result.exception)
    assert isinstance(result.exception, ModelError)


def test_training_does_not_start_from_it(transduce: Command, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("the cat\n" * 20, encoding="utf-8")
    model = write_model(tmp_path)
    command = ("train", "--text-file", tmp_path / "text.txt", "--start-from", model, "--output", tmp_path / "run")
    result = transduce(*command)
    assert isinstance(result.exception, ConfigError)
    assert "is a text encoder" in str(result.exception)
