"""`transduce translate --shard` and `transduce merge`: the same bytes as one process, and clear refusals."""

import gzip
from pathlib import Path

import pytest
from tests.cli.conftest import SOURCES, Command


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    for number in range(3):
        lines = "".join(f"{source}\n" for source in SOURCES[number:])
        (folder / f"{number}.gz").write_bytes(gzip.compress(lines.encode()))
    return folder


@pytest.mark.parametrize("options", [(), ("--sample", "--seed", "3"), ("--beam", "1")])
def test_shards_merge_to_what_one_process_translates(
    corpus: Path, small_model: Path, tmp_path: Path, transduce: Command, options: tuple[str, ...]
) -> None:
    plain = tmp_path / "plain.txt"
    plain.write_bytes(b"".join(gzip.decompress(path.read_bytes()) for path in sorted(corpus.glob("*.gz"))))
    expected, merged, folder = tmp_path / "expected", tmp_path / "merged", tmp_path / "parts"
    assert transduce("translate", small_model, plain, "--output", expected, *options).exit_code == 0
    for shard in ("2/3", "1/3", "3/3"):
        arguments = (f"{corpus}/*.gz", "--shard", shard, "--output", folder, "--part-lines", "2", *options)
        result = transduce("translate", small_model, *arguments)
        assert result.exit_code == 0, result.output
        assert f"shard {shard[0]} of 3 is done; once all are: transduce merge {folder}" in result.output.replace(
            "\n", " "
        )
    result = transduce("merge", folder, "--output", merged)
    assert "15 lines in" in result.output
    assert merged.read_bytes() == expected.read_bytes()
    if "--sample" in options:
        assert len(set(expected.read_text().splitlines())) > len(SOURCES)  # draws depend on the line's number


def test_lines_that_are_not_utf_8_are_counted(small_model: Path, tmp_path: Path, transduce: Command) -> None:
    (tmp_path / "a").write_bytes(b"it rains\nit \xff rains\n")
    result = transduce("translate", small_model, tmp_path / "a", "--shard", "1/1", "--output", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert "2 lines in" in result.output
    assert "1 with bytes that are not UTF-8" in result.output


REFUSALS = {
    ("--shard", "4/3", "--output", "out"): "--shard 4/3: write number/count, such as 3/64",
    ("--shard", "two", "--output", "out"): "--shard two: write number/count",
    ("--shard", "1/2"): "Name the folder to write, the same for every shard: --output DIR.",
    ("--shard", "1/2", "--output", "out", "--json"): "--json cannot be combined with --shard",
    ("--shard", "1/2", "--output", "out", "--runner", "ray"): "Give --shard or --runner, not both.",
    ("--shard", "1/2", "--output", "out", "--workers", "2"): "--workers is for --runner",
    ("--workers", "2"): "--workers needs --shard or --runner.",
    ("--part-lines", "2"): "--part-lines needs --shard or --runner.",
}


@pytest.mark.parametrize("options", REFUSALS)
def test_options_that_do_not_go_together(options: tuple[str, ...], tmp_path: Path, transduce: Command) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    named = [str(tmp_path / "out") if option == "out" else option for option in options]
    result = transduce("translate", "no-model", tmp_path / "a.txt", *named)
    assert REFUSALS[options] in str(result.exception)


def test_files_that_are_not_there(small_model: Path, tmp_path: Path, transduce: Command) -> None:
    result = transduce("translate", small_model, f"{tmp_path}/*.gz", "--shard", "1/2", "--output", tmp_path / "out")
    assert "*.gz is no file, and no pattern" in str(result.exception)
    result = transduce("translate", small_model, "--shard", "1/2", "--output", tmp_path / "out")
    assert "Name the files to translate" in str(result.exception)


def test_merge_keeps_an_existing_file(tmp_path: Path, transduce: Command) -> None:
    (tmp_path / "file").write_text("mine")
    result = transduce("merge", tmp_path, "--output", tmp_path / "file")
    assert "exists already" in str(result.exception)
    result = transduce("merge", tmp_path, "--output", tmp_path / "file", "--force")
    assert "holds no parts" in str(result.exception)
    assert (tmp_path / "file").read_text() == "mine"
