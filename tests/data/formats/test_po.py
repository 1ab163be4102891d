"""PO catalogues as corpora: what is taken, what is skipped and why, and which direction."""

import gzip
from pathlib import Path

import pytest

from transduce.data.formats import Corpus, Pair, Selection, po
from transduce.documents.catalogue import po_gaps
from transduce.documents.filling import document_of
from transduce.errors import DataError

HEADER = (
    'msgid ""\nmsgstr ""\n"Language: de\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
    '"Plural-Forms: nplurals=2; plural=(n != 1);\\n"\n\n'
)
BODY = """# a translator's note
#: src/main.c:12
msgid "Open %s"
msgstr "%s öffnen"

#, fuzzy, c-format
msgid "Close"
msgstr "Öffnen"

msgid "Save"
msgstr ""

msgid "one file"
msgid_plural "%d files"
msgstr[0] "eine Datei"
msgstr[1] "%d Dateien"

msgctxt "verb"
msgid ""
"Read\\n"
"this"
msgstr ""
"Lies\\n"
"das\u2028hier"

#~ msgid "Old"
#~ msgstr "Alt"
"""


def read(path: Path, content: str | bytes, selection: Selection | None = None) -> list[Pair]:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(Corpus(str(path), selection).pairs())


def test_entries_are_pairs_and_the_unfinished_are_skipped_by_name(tmp_path: Path) -> None:
    pairs = read(tmp_path / "de.po", HEADER + BODY)
    assert [(p.source, p.target, p.skipped) for p in pairs] == [
        ("Open %s", "%s öffnen", ""),
        ("Close", "Öffnen", "fuzzy"),
        ("Save", "", "untranslated"),
        ("one file", "eine Datei", ""),
        ("%d files", "%d Dateien", ""),
        ("Read\nthis", "Lies\ndas\u2028hier", ""),
        ("Old", "Alt", "obsolete"),
    ]
    assert [pair.line for pair in pairs[:2]] == [7, 12]


@pytest.mark.parametrize(
    ("forms", "expected"),
    [
        ("nplurals=1; plural=0;", [("%d files", "a")]),
        ("nplurals=2; plural=n>1;", [("one", "a"), ("%d files", "b")]),
        ("nplurals=3; plural=(n==1 ? 1 : n==2 ? 0 : 2);", [("%d files", "a"), ("one", "b"), ("%d files", "c")]),
        ("nplurals=2; plural=((((", [("one", "a"), ("%d files", "b")]),
        ("nplurals=2; plural=n/0;", [("one", "a"), ("%d files", "b")]),
        ("nplurals=2; plural=(n != !1);", [("one", "a"), ("%d files", "b")]),
    ],
)
def test_the_plural_formula_tells_which_form_is_the_singular(
    tmp_path: Path, forms: str, expected: list[tuple[str, str]]
) -> None:
    header = f'msgid ""\nmsgstr "Plural-Forms: {forms}\\n"\n\n'
    entry = 'msgid "one"\nmsgid_plural "%d files"\nmsgstr[0] "a"\nmsgstr[1] "b"\nmsgstr[2] "c"\n'
    assert [(p.source, p.target) for p in read(tmp_path / "x.po", header + entry)] == expected


class TestDirection:
    @pytest.mark.parametrize("selection", [None, Selection("en", "de"), Selection("en-US", "de-AT"), Selection("en")])
    def test_from_the_msgid(self, tmp_path: Path, selection: Selection | None) -> None:
        assert read(tmp_path / "x.po", HEADER + BODY, selection)[0].source == "Open %s"

    def test_from_the_msgstr_if_its_language_is_the_source(self, tmp_path: Path) -> None:
        first = read(tmp_path / "x.po", HEADER + BODY, Selection("de", "en"))[0]
        assert (first.source, first.target) == ("%s öffnen", "Open %s")

    def test_another_language_is_refused_with_what_there_is(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match=r"x\.po holds msgids to de \(1\), but no unit from en to fr"):
            read(tmp_path / "x.po", HEADER + BODY, Selection("en", "fr"))


def catalogue(texts: dict[str, str]) -> str:
    return "\n".join(f'msgid "{key}"\nmsgstr "{text}"\n' for key, text in texts.items())


KEYS = ["menu.file.open", "menu_file_close", "ERROR_NO_DISK", "helpText", "a/b/c"]


class TestKeys:
    def test_are_noticed_and_the_other_catalogue_is_asked_for(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match=r"the msgids are keys, such as 'menu\.file\.open'.*en\.po,de\.po"):
            read(tmp_path / "de.po", catalogue(dict.fromkeys(KEYS, "Text")))

    def test_short_words_are_no_keys(self, tmp_path: Path) -> None:
        words = ["Open", "Close", "OK", "Help me.", "Yes", "wi-fi"]
        assert len(read(tmp_path / "de.po", catalogue(dict.fromkeys(words, "Wort")))) == 6

    def test_join_two_catalogues(self, tmp_path: Path) -> None:
        (tmp_path / "en.po").write_text(catalogue({"a.b": "Open", "c.d": "Close", "only.en": "x"}), encoding="utf-8")
        (tmp_path / "de.po").write_text(
            catalogue({"c.d": "Schließen", "a.b": "Öffnen", "only.de": "y"}), encoding="utf-8"
        )
        pairs = list(Corpus(f"{tmp_path / 'en.po'},{tmp_path / 'de.po'}").pairs())
        assert [(p.source, p.target) for p in pairs if not p.skipped] == [("Close", "Schließen"), ("Open", "Öffnen")]
        assert [p.skipped for p in pairs if p.skipped] == ["not in the other catalogue"]

    def test_two_catalogues_without_a_common_key_are_refused(self, tmp_path: Path) -> None:
        for name in ("en", "de"):
            (tmp_path / f"{name}.po").write_text(catalogue({f"key.{name}": "x"}), encoding="utf-8")
        with pytest.raises(DataError, match="have no translated entry in common"):
            list(Corpus(f"{tmp_path / 'en.po'},{tmp_path / 'de.po'}").pairs())


class TestEncoding:
    def test_is_what_the_header_says(self, tmp_path: Path) -> None:
        content = (HEADER + BODY).replace("UTF-8", "ISO-8859-1").replace("\u2028", " ")
        assert read(tmp_path / "x.po", content.encode("latin-1"))[0].target == "%s öffnen"

    def test_that_does_not_fit_is_refused_with_the_line(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match=r"x\.po:10: byte 0xf6 is not utf-8, the encoding in the header"):
            read(tmp_path / "x.po", (HEADER + BODY).replace("\u2028", " ").encode("latin-1"))

    @pytest.mark.parametrize("name", ["nonsense", "base64", "utf-7", "unicode_escape", "utf-16"])
    def test_that_is_none_is_refused(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(DataError, match=f"declares the encoding {name}, which is not supported"):
            read(tmp_path / "x.po", (HEADER + BODY).replace("UTF-8", name))


def test_what_is_no_catalogue_is_refused_with_the_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"x\.po:8:1: the file is not a PO catalogue here .*msgfmt --check"):
        read(tmp_path / "x.po", HEADER + "#: a.c\nnonsense\n")
    with pytest.raises(DataError, match="is empty"):
        read(tmp_path / "x.po", "\n")


@pytest.mark.parametrize(
    ("entry", "place", "what"),
    [
        ('msgid "a\nmsgstr "b"\n', "4:7", "the string is not closed"),
        ('msgid "a"\n  msgstr "b\\"\n', "5:10", "the string is not closed"),
        ('msgid "a"\nmsgstr ""\n"b\n', "6:1", "the string is not closed"),
        ('msgid "a" x\nmsgstr "b"\n', "4:11", "there is text after the string"),
        ('msgid "a"\nmsgid_plural "a"\nmsgstr[0] "b\n', "6:11", "the string is not closed"),
        ('#~ msgid "a\n#~ msgstr "b"\n', "4:10", "the string is not closed"),
        ('msgid ""\n' + '"a"\n' * 2001 + 'msgstr ""\n', "2004:1", "more than 2,000 lines"),
    ],
)
def test_a_malformed_string_is_refused_with_line_and_column(tmp_path: Path, entry: str, place: str, what: str) -> None:
    content = f'msgid ""\nmsgstr "Language: de\\n"\n\n{entry}'
    with pytest.raises(DataError, match=rf"x\.po:{place}: the file is not a PO catalogue here .*{what}"):
        read(tmp_path / "x.po", content)
    document = document_of(content.encode(), "po", path=Path("x.po"), selection=Selection("en", "de"))
    with pytest.raises(DataError, match=rf"^x\.po:{place}: "):
        list(po_gaps(document))


def test_a_compressed_catalogue_is_not_read_beyond_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(po, "_MOST_BYTES", 1 << 20)
    (tmp_path / "x.po.gz").write_bytes(gzip.compress(b"#\n" * (1 << 20)))
    with pytest.raises(DataError, match=r"x\.po\.gz has more than 1 MiB, decompressed"):
        list(Corpus(str(tmp_path / "x.po.gz")).pairs())
