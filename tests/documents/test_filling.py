"""Journals: interrupted work goes on, and other work's journal is refused."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from transduce.data.formats import Selection
from transduce.documents import filling
from transduce.documents.filling import (
    FillingRules,
    document_of,
    fill_at_once,
    fill_document,
    journal_header,
    read_document,
)
from transduce.documents.journal import Journal, JournalEntry
from transduce.errors import DataError, RunError
from transduce.translator import Translation
from transduce.translator.translation import Alternative


def translation(text: str) -> Translation:
    return Translation(text, (Alternative(text.upper(), 0.0, 0.0, (), is_finished=True),))


def test_interrupted_work_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filling, "TEXTS_AT_ONCE", 2)
    path = tmp_path / "x.tsv"
    path.write_bytes("".join(f"{word}\t\n" for word in "abcdefg").encode())
    document = read_document(path, "tsv", selection=Selection())
    asked: list[str] = []

    def translate(texts: Sequence[str], first: int) -> list[Translation]:
        assert first == len(asked)
        if "e" in texts and "e" not in asked and not is_second_try:
            raise KeyboardInterrupt
        asked.extend(texts)
        return [translation(text) for text in texts]

    is_second_try = False
    with (tmp_path / "journal").open("w+b") as file, pytest.raises(KeyboardInterrupt):
        fill_document(document, "tsv", translate, journal=Journal(file, journal_header(document, {}), name="journal"))
    with (tmp_path / "journal").open("ab") as end:
        end.write(b'{"translation": "cut sh')
    is_second_try = True
    with (tmp_path / "journal").open("r+b") as file:
        journal = Journal(file, journal_header(document, {}), name="journal")
        assert journal.count == 4
        content, report = fill_document(document, "tsv", translate, journal=journal)
    assert asked == list("abcdefg")
    assert content == "".join(f"{word}\t{word.upper()}\n" for word in "abcdefg").encode()
    assert report.filled == 7


def test_a_document_needs_no_file() -> None:
    document = document_of(b"<p>a b</p>", "html", path=Path("upload.html"), selection=Selection())
    content, report = fill_at_once(document, "html", lambda texts, first: [translation(text) for text in texts])
    assert (content, report.filled) == (b"<p>A B</p>", 1)
    with pytest.raises(DataError, match=r"upload\.po:1:1: the file is not a PO catalogue here"):
        fill_at_once(document_of(b"x", "po", path=Path("upload.po"), selection=Selection()), "po", lambda t, n: [])
    with pytest.raises(DataError, match="'doc' is not a format that can be filled in"):
        document_of(b"", "doc", path=Path("x.doc"), selection=Selection())


def test_a_journal_of_something_else_is_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.tsv").write_text(f"{name}\t\n", encoding="utf-8")
    headers = [
        journal_header(read_document(tmp_path / "a.tsv", "tsv", selection=Selection()), {"beam": 4}),
        journal_header(read_document(tmp_path / "b.tsv", "tsv", selection=Selection()), {"beam": 4}),
        journal_header(read_document(tmp_path / "a.tsv", "tsv", selection=Selection()), {"beam": 5}),
        journal_header(read_document(tmp_path / "a.tsv", "tsv", selection=Selection("en", "de")), {"beam": 4}),
    ]
    assert len(set(headers)) == 4
    with (tmp_path / "journal").open("w+b") as file:
        Journal(file, headers[0], name="x.partial").append([JournalEntry("A")])
        assert list(Journal(file, headers[0], name="x.partial")) == [JournalEntry("A")]
        with pytest.raises(RunError, match=r"x\.partial belongs to another document, model or setting"):
            Journal(file, headers[1], name="x.partial")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.tsv.gz", b"", r"x\.tsv\.gz is compressed\. Decompress it first"),
        ("missing.tsv", None, r"missing\.tsv cannot be read"),
        ("x.tsv", b"a\xff\t\n", r"x\.tsv:1: byte 0xff is not utf-8"),
    ],
)
def test_documents_that_cannot_be_filled_in_are_refused(
    tmp_path: Path, name: str, content: bytes | None, message: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_document(tmp_path / name, "tsv", selection=Selection())


def test_cut_off_and_empty_translations_are_not_put_in(tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_text("a\t\nb\t\nc\t\n", encoding="utf-8")
    document = read_document(tmp_path / "x.tsv", "tsv", selection=Selection())

    def translate(texts: Sequence[str], first: int) -> list[Translation]:
        unfinished = Translation("a", (Alternative("A A A", 0.0, 0.0, (), is_finished=False),))
        return [unfinished, Translation.refused("b", "too long"), translation(" ")]

    with (tmp_path / "journal").open("w+b") as file:
        content, report = fill_document(document, "tsv", translate, journal=Journal(file, "{}", name="x"))
    assert content == b"a\t\nb\t\nc\t\n"
    assert [why for _, why, _ in report.left] == [
        "the translation was cut off",
        "too long",
        "the translation is empty",
    ]


GOOD = Translation("a b", (Alternative("A B", 0.0, 0.0, (), is_finished=True),), confidence=0.6)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (replace(GOOD, missing=("%s", "{x}")), "%s, {x} got lost"),
        (replace(GOOD, missing_numbers=("7:50",)), "the number 7:50 got lost"),
        (replace(GOOD, surplus=("%s",)), "%s is repeated"),
        (replace(GOOD, doubts=("stutter", "length")), "the translation stutters"),
        (replace(GOOD, doubts=("length",)), "the translation is much longer or shorter"),
        (replace(GOOD, confidence=0.49), "its confidence is below 0.5"),
        (replace(GOOD, refusal="too long"), "too long"),
        (GOOD, ""),
        (replace(GOOD, confidence=None), ""),
    ],
)
def test_what_is_not_filled_in_has_its_reason(given: Translation, reason: str) -> None:
    entry = FillingRules(leave_below=0.5).entry(given)
    assert entry == (JournalEntry("", reason) if reason else JournalEntry("A B", confidence=given.confidence))


def test_losses_may_be_filled_in_and_are_noted_and_reasons_are_counted_by_kind() -> None:
    document = document_of(b"a\t\nb\t\nc\t\nd\t\n", "tsv", path=Path("x.tsv"), selection=Selection())
    found = [
        replace(GOOD, missing=("%s",)),
        replace(GOOD, missing_numbers=("7",)),
        replace(GOOD, missing=("%d",), confidence=0.2),
        GOOD,
    ]

    def translate(texts: Sequence[str], first: int) -> list[Translation]:
        return found[first : first + len(texts)]

    _, strict = fill_at_once(document, "tsv", translate)
    assert strict.unsure == 0
    assert (strict.filled, strict.reasons()) == (1, {"a placeholder or term got lost": 2, "a number got lost": 1})
    content, lenient = fill_at_once(document, "tsv", translate, rules=FillingRules(fills_incomplete=True))
    assert content == b"a\tA B\nb\tA B\nc\tA B\nd\tA B\n"
    assert lenient.unsure == 1
    assert [note for _, note, _ in lenient.noted] == ["%s got lost", "the number 7 got lost", "%d got lost"]
