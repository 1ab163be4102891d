"""`transduce filter`: its files, its report, and what it refuses."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import SOURCES, TARGETS
from typer.testing import Result

from transduce.errors import ConfigError, RunError

Command = Callable[..., Result]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    pairs = [*zip(SOURCES, TARGETS, strict=True), ("it costs 15 euros", "es kostet 16 Euro"), (SOURCES[0], TARGETS[0])]
    path = tmp_path / "corpus.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    return path


def test_kept_and_dropped_pairs_and_the_report(
    transduce: Command, corpus: Path, small_model: Path, tmp_path: Path
) -> None:
    clean, rest, page = tmp_path / "clean.tsv.gz", tmp_path / "rest.tsv", tmp_path / "report.html"
    result = transduce(
        *("filter", corpus, "--output", clean, "--dropped", rest, "--report", page, "--json"),
        *("--model", small_model, "--threads", "1", "--limit", "likelihood=off"),
    )
    assert result.exception is None
    assert json.loads(result.stdout)["dropped"] == {"numbers": 1, "duplicates": 1}
    assert gzip.decompress(clean.read_bytes()).decode().splitlines() == [
        f"{source}\t{target}" for source, target in zip(SOURCES, TARGETS, strict=True)
    ]
    assert rest.read_text(encoding="utf-8").splitlines()[0] == "numbers\t7\tit costs 15 euros\tes kostet 16 Euro"
    assert "next to the limit" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (["--limit", "lenght=3"], ConfigError, "SCORE is one of copied, numbers"),
        (["--limit", "length=x"], ConfigError, "'x' is neither a number nor off"),
        (["--limit", "length=-1"], ConfigError, "--limit length=-1.0: Input should be greater than 0"),
        (["--output", "clean.txt"], ConfigError, "ends in .tsv or .tsv.gz"),
        (["--output", "/dev/null"], RunError, "not a file"),
    ],
)
def test_what_is_refused(
    transduce: Command, corpus: Path, arguments: list[str], error: type[Exception], message: str
) -> None:
    result = transduce("filter", corpus, "--output", "clean.tsv", *arguments)
    assert isinstance(result.exception, error)
    assert message in str(result.exception)
