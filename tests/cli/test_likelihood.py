"""`transduce likelihood` as a user meets it."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from transduce.translator import Translator

Command = Callable[..., Result]


def test_each_pair_is_a_line_with_its_sum_and_its_pieces(
    transduce: Command, small_model: Path, test_files: str
) -> None:
    result = transduce("likelihood", small_model, test_files, "--threads", "1")
    assert result.exception is None, result.output
    sources, targets = (Path(name).read_text(encoding="utf-8").splitlines() for name in test_files.split(","))
    lines = result.stdout.splitlines()
    expected = Translator.load(small_model, threads=1).likelihood(list(zip(sources, targets, strict=True)))
    assert len(lines) == len(targets)
    for line, likelihood in zip(lines, expected, strict=True):
        total, _, pieces = line.partition("\t")
        assert float(total) == pytest.approx(likelihood.log_probability, abs=1e-4)
        values = [float(piece.rpartition(":")[2]) for piece in pieces.split(" ")]
        assert values == pytest.approx(likelihood.log_probabilities, abs=1e-4)
        assert [piece.rpartition(":")[0] for piece in pieces.split(" ")] == list(likelihood.tokens)


def test_json_holds_the_pair_and_full_precision(transduce: Command, small_model: Path, test_files: str) -> None:
    result = transduce("likelihood", small_model, test_files, "--json", "--threads", "1")
    objects = [json.loads(line) for line in result.stdout.splitlines()]
    assert [found["line"] for found in objects] == [1, 2, 3, 4, 5, 6]
    assert objects[3]["source"] == "it rains"
    assert objects[3]["target"] == "es regnet"
    for found in objects:
        assert found["log_probability"] == math.fsum(token["log_probability"] for token in found["tokens"])
        assert all(token["log_probability"] < 0 for token in found["tokens"])
    assert "perplexity" in result.stderr


def test_the_perplexity_shown_is_that_of_evaluate(transduce: Command, small_model: Path, test_files: str) -> None:
    rows = transduce("likelihood", small_model, test_files, "--json", "--threads", "1").stdout.splitlines()
    objects = [json.loads(line) for line in rows]
    mean = math.fsum(o["log_probability"] for o in objects) / sum(len(o["tokens"]) for o in objects)
    found = json.loads(transduce("evaluate", small_model, test_files, "--json", "--threads", "1").stdout)
    assert found["perplexity_per_piece"] == pytest.approx(math.exp(-mean), rel=1e-5)


def test_it_equals_what_search_reports_for_its_own_output(
    transduce: Command, small_model: Path, tmp_path: Path
) -> None:
    sources = ["a red dog runs", "two blue cats sleep", "the old man sings", "it rains"]
    found = Translator.load(small_model, precision="float32", threads=1).translate(sources)
    pairs = tmp_path / "own.tsv"
    pairs.write_text("".join(f"{t.source}\t{t.text}\n" for t in found), encoding="utf-8", newline="\n")
    rows = transduce("likelihood", small_model, pairs, "--json", "--threads", "1").stdout.splitlines()
    for row, translation in zip(rows, found, strict=True):
        likelihood = json.loads(row)
        assert [token["piece"] for token in likelihood["tokens"]] == list(translation.tokens)
        assert likelihood["log_probability"] == pytest.approx(translation.log_probability, abs=1e-5)
