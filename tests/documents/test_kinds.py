"""Files that are neither text nor a known document are refused by name; text is not."""

import zipfile
from io import BytesIO
from pathlib import Path

import pytest

from transduce.documents.filling import FORMATS
from transduce.documents.kinds import FORMAT_OF_ENDING, format_of, refuse_other_kinds
from transduce.errors import DataError


def zipped() -> bytes:
    file = BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a", "b")
    return file.getvalue()


def test_every_format_has_an_ending() -> None:
    assert set(FORMAT_OF_ENDING.values()) == set(FORMATS)
    assert format_of(Path("a/B.PO")) == "po"
    assert format_of(Path("a.txt")) is None


@pytest.mark.parametrize(
    ("name", "start", "what"),
    [
        ("x.pdf", b"%PDF-1.7\n", "is a PDF"),
        ("x.txt", b"%PDF-1.7\n", "is a PDF"),
        ("x.pdf", b"", "is a PDF"),
        ("x.odt", zipped(), "is an OpenDocument file"),
        ("x", zipped(), "is a ZIP archive"),
        ("x.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "is an Office document"),
        ("x.png", b"\x89PNG\r\n\x1a\n", "is an image"),
        ("x.html", b"\xff\xd8\xff\xe0", "is an image"),
        ("x.txt.gz", b"\x1f\x8b\x08", r"is compressed.* Decompress it first"),
        ("x.bin", b"ab\0cd", "is a binary file"),
        ("x.po", b"msgid\0", "is a binary file"),
        ("x.yaml", b"a: b\n", r"is YAML; .* or give --format text"),
    ],
)
def test_what_is_not_text_is_refused_by_name(name: str, start: bytes, what: str) -> None:
    path = Path(name)
    with pytest.raises(DataError, match=rf"^{name} {what}"):
        refuse_other_kinds(path, start, format_name=format_of(path))
    with pytest.raises(DataError, match=r"transduce reads plain text and \.po, .*[Cc]onvert it first|[Dd]ecompress"):
        refuse_other_kinds(path, start, format_name=format_of(path))


@pytest.mark.parametrize(
    ("name", "start", "format_name"),
    [
        ("x.txt", b"A dog runs.\n", None),
        ("news.en", "Größe".encode(), None),
        ("x", b"", None),
        ("x.txt", "PK is short for Peter.".encode("utf-16"), None),
        ("x.yaml", b"a: b\n", "text"),
        ("x.xml", b"<tmx/>", "tmx"),
    ],
)
def test_text_is_text(name: str, start: bytes, format_name: str | None) -> None:
    refuse_other_kinds(Path(name), start, format_name=format_name)
