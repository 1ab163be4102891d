"""`transduce translate` for documents, with a model that has learned six sentences."""

from collections.abc import Callable
from pathlib import Path

import polib
import pytest
from typer.testing import Result

from transduce.documents.journal import journal_beside

Command = Callable[..., Result]

CATALOGUE = """msgid ""
msgstr "Language: de\\n"

msgid "it rains"
msgstr ""

#, fuzzy
msgid "the dog sleeps"
msgstr "?"

msgid "%s %d {x} it rains"
msgstr ""
"""


@pytest.fixture
def catalogue(tmp_path: Path) -> Path:
    path = tmp_path / "de.po"
    path.write_text(CATALOGUE, encoding="utf-8", newline="\n")
    return path


def test_a_catalogue_is_filled_in_and_the_rest_is_told(
    transduce: Command, small_model: Path, catalogue: Path, tmp_path: Path
) -> None:
    output = tmp_path / "filled.po"
    result = transduce("translate", small_model, catalogue, "--output", output, "--threads", "1")
    assert result.exception is None, result.output
    filled = polib.pofile(str(output))
    assert (filled.find("it rains").msgstr, filled.find("it rains").flags) == ("es regnet", ["fuzzy"])
    assert filled.find("the dog sleeps").msgstr == "?"
    assert filled.find("%s %d {x} it rains").msgstr == ""
    assert "1 filled in, 1 had a translation, 1 left" in result.stderr
    assert f"{catalogue}:11: " in result.stderr
    assert catalogue.read_text(encoding="utf-8") == CATALOGUE
    assert not journal_beside(output).exists()


def test_without_output_the_document_goes_to_stdout(transduce: Command, small_model: Path, tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_bytes(b"it rains\t\r\nthe dog sleeps\tx\r\n")
    result = transduce("translate", small_model, tmp_path / "x.txt", "--format", "tsv", "--threads", "1")
    assert result.stdout_bytes == b"it rains\tes regnet\r\nthe dog sleeps\tx\r\n"


def test_lines_of_text_stay_lines(transduce: Command, small_model: Path, tmp_path: Path) -> None:
    (tmp_path / "x.html").write_bytes(b"it rains\n")
    result = transduce("translate", small_model, tmp_path / "x.html", "--format", "text", "--threads", "1")
    assert result.stdout == "es regnet\n"


def test_several_documents_go_to_a_folder(transduce: Command, small_model: Path, tmp_path: Path) -> None:
    for name in ("a.html", "b.html"):
        (tmp_path / name).write_bytes(b"<p>it rains</p>")
    result = transduce(
        "translate",
        small_model,
        tmp_path / "a.html",
        tmp_path / "b.html",
        "--output",
        tmp_path / "out",
        "--threads",
        "1",
    )
    assert result.exception is None, result.output
    assert [(tmp_path / "out" / name).read_bytes() for name in ("a.html", "b.html")] == [b"<p>es regnet</p>"] * 2


def test_interrupted_work_is_taken_up_only_when_told(
    transduce: Command, small_model: Path, catalogue: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transduce.documents import filling
    from transduce.translator import Translator

    monkeypatch.setattr(filling, "TEXTS_AT_ONCE", 1)
    translate_all, calls = Translator.translate_all, []

    def interrupted(self: Translator, texts: list[str], *rest: object, **named: object) -> object:
        calls.append(texts)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return translate_all(self, texts, *rest, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Translator, "translate_all", interrupted)
    command = ["translate", small_model, catalogue, "--output", tmp_path / "filled.po", "--threads", "1"]
    first = transduce(*command)
    assert first.exit_code == 130
    assert "1 segments are kept for --resume" in first.stderr
    assert not (tmp_path / "filled.po").exists()
    assert "is left from an interrupted translation. Add --resume" in str(transduce(*command).exception)
    assert transduce(*command, "--resume", "--beam", "2").exception is not None
    last = transduce(*command, "--resume")
    assert last.exception is None, last.output
    assert calls == [["it rains"], ["%s %d {x} it rains"], ["%s %d {x} it rains"]]
    assert polib.pofile(str(tmp_path / "filled.po")).find("it rains").msgstr == "es regnet"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x.po", "y.txt"], "cannot be mixed in one command"),
        (["x.po", "y.po"], "Several documents need an output folder"),
        (["x.po", "--resume"], "Name it with --output"),
        (["x.po", "--output", "y.po"], r"y\.po exists already"),
        (["x.po", "--json"], "--json, --alternatives and --alignments are for lines of text"),
        (["x.po", "--format", "doc"], "--format doc is not known"),
        (
            ["y.txt", "--overwrite"],
            "--overwrite, --resume, --leave-below, --from, --source-column and --target-column are for",
        ),
        (["-", "--format", "po"], "A document cannot come from stdin"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    transduce: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("x.po", "y.po", "y.txt"):
        (tmp_path / name).write_text("", encoding="utf-8")
    result = transduce("translate", "no-model-is-loaded", *arguments)
    with pytest.raises(Exception, match=message):
        raise result.exception or AssertionError(result.output)


def test_a_glossary_reaches_the_search(transduce: Command, small_model: Path, tmp_path: Path) -> None:
    (tmp_path / "terms.tsv").write_text("it\tes\nrains\tsingt\n", encoding="utf-8")
    (tmp_path / "x.tsv").write_text("it rains\t\n", encoding="utf-8")
    command = ["translate", small_model, tmp_path / "x.tsv", "--threads", "1", "--glossary", tmp_path / "terms.tsv"]
    enforced, preferred = transduce(*command), transduce(*command, "--terms", "preferred")
    assert enforced.exception is None
    assert {"es", "singt"} <= set(enforced.stdout.removeprefix("it rains\t").split())
    assert preferred.stdout == "it rains\tes regnet\n"
    lines = transduce("translate", small_model, "--text", "it rains", *command[3:])
    assert (lines.exception, lines.stderr) == (None, "")
    assert lines.stdout == enforced.stdout.removeprefix("it rains\t")


def test_a_term_without_room_is_told_and_leaves_its_segment(
    transduce: Command, small_model: Path, tmp_path: Path
) -> None:
    (tmp_path / "terms.tsv").write_text(f"rains\t{'Donau' * 20}\n", encoding="utf-8")
    (tmp_path / "x.tsv").write_text("it rains\t\n", encoding="utf-8")
    options = ["--threads", "1", "--glossary", tmp_path / "terms.tsv"]
    document = transduce("translate", small_model, tmp_path / "x.tsv", *options)
    assert f"{'Donau' * 20} got lost: it rains" in document.stderr
    assert document.stdout == "it rains\t\n"
    lines = transduce("translate", small_model, "--text", "it rains", *options)
    assert (lines.exception, lines.stdout) == (None, "es regnet\n")
    assert f"line 1 lacks the terms {'Donau' * 20}" in lines.stderr


def test_terms_are_not_enforced_on_samples(transduce: Command, small_model: Path, tmp_path: Path) -> None:
    (tmp_path / "terms.tsv").write_text("rains\tsingt\n", encoding="utf-8")
    command = ["translate", small_model, "--text", "it rains", "--sample", "--glossary", tmp_path / "terms.tsv"]
    assert "Terms are enforced by beam search, not in samples" in str(transduce(*command).exception)
    assert transduce(*command, "--terms", "preferred").exception is None


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [("x.pdf", b"%PDF-1.7\n", "is a PDF"), ("x.txt", b"a\0b", "is a binary file"), ("x.yaml", b"a: b\n", "is YAML")],
)
def test_what_is_not_text_is_refused_before_anything_is_written(
    transduce: Command, tmp_path: Path, name: str, content: bytes, what: str
) -> None:
    (tmp_path / name).write_bytes(content)
    result = transduce("translate", tmp_path / "no-model", tmp_path / name, "--output", tmp_path / "out")
    assert f"{name} {what}; transduce reads plain text and .po" in str(result.exception)
    assert not (tmp_path / "out").exists()
