"""PO files: gaps filled and marked fuzzy; polib finds everything else equal, and so does a comparison of lines."""

from collections.abc import Callable
from pathlib import Path

import polib
import pytest

from transduce.data.formats import Selection
from transduce.documents.filling import FillingReport
from transduce.errors import DataError

Fill = Callable[..., tuple[bytes, FillingReport]]

CATALOGUE = """# header comment
msgid ""
msgstr ""
"Language: de\\n"
"Content-Type: text/plain; charset=UTF-8\\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\\n"

# note
#. extracted
#: a.c:1
msgid "Open %s"
msgstr ""

#, c-format
#| msgid "Older"
msgid "Close %d"
msgstr   ""

#| msgctxt "old"
#| msgid "Old"
msgctxt "menu"
msgid ""
"two\\n"
"lines\\n"
msgstr ""

#, fuzzy
msgid "doubtful"
msgstr "zweifelhaft"

msgid "done"
msgstr ""
"fertig, und zwar auf "
"zwei Zeilen"

msgid "one file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""

#~ msgid "gone"
#~ msgstr ""
"""


def test_gaps_are_filled_and_marked_and_no_other_line_changes(fill: Fill) -> None:
    content, report = fill("x.po", CATALOGUE)
    expected = (
        CATALOGUE.replace('msgid "Open %s"\nmsgstr ""', '#, fuzzy\nmsgid "Open %s"\nmsgstr "OPEN %s"')
        .replace("#, c-format", "#, fuzzy, c-format")
        .replace('msgstr   ""', 'msgstr "CLOSE %d"')
        .replace('#| msgctxt "old"', '#, fuzzy\n#| msgctxt "old"')
        .replace('"lines\\n"\nmsgstr ""', '"lines\\n"\nmsgstr ""\n"TWO\\n"\n"LINES\\n"')
        .replace('msgid "one file"', '#, fuzzy\nmsgid "one file"')
        .replace('msgstr[0] ""', 'msgstr[0] "ONE FILE"')
        .replace('msgstr[1] ""', 'msgstr[1] "%d FILES"')
    )
    assert content.decode() == expected
    assert (report.filled, report.kept, report.left) == (4, 2, [])


def test_polib_finds_every_other_entry_equal(fill: Fill, tmp_path: Path) -> None:
    content, _ = fill("x.po", CATALOGUE)
    before, after = polib.pofile(CATALOGUE), polib.pofile(content.decode())
    assert before.metadata == after.metadata
    for old, new in zip(before, after, strict=True):
        for name in ("msgid", "msgid_plural", "msgctxt", "comment", "tcomment", "occurrences", "previous_msgid"):
            assert getattr(old, name) == getattr(new, name)
        assert set(new.flags) - set(old.flags) <= {"fuzzy"}
        if old.msgstr or old.obsolete:
            assert (old.msgstr, old.flags) == (new.msgstr, new.flags)


def test_the_result_has_no_gaps_left(fill: Fill) -> None:
    once, _ = fill("x.po", CATALOGUE)
    twice, report = fill("x.po", once)
    assert (twice, report.filled) == (once, 0)


def test_overwriting_replaces_all_and_marks_once(fill: Fill) -> None:
    content, report = fill("x.po", CATALOGUE, overwrites=True)
    assert report.filled == 6
    assert '#, fuzzy\nmsgid "doubtful"\nmsgstr "DOUBTFUL"' in content.decode()
    assert '#, fuzzy\nmsgid "done"\nmsgstr "DONE"' in content.decode()


def test_line_ends_and_encoding_are_kept(fill: Fill) -> None:
    latin = CATALOGUE.replace("UTF-8", "ISO-8859-1").replace("Open", "öpen").replace("\n", "\r\n").encode("latin-1")
    content, _ = fill("x.po", latin)
    assert 'msgid "öpen %s"\r\nmsgstr "ÖPEN %s"\r\n'.encode("latin-1") in content
    assert content.count(b"\r\n") == content.count(b"\n")
    _, report = fill("x.po", latin, answer=lambda text: "Ω" + text)
    assert report.filled == 0
    assert "the file's encoding, iso8859-1, lacks 'Ω'" in report.left[0][1]


def test_specifiers_without_numbers_keep_their_order(fill: Fill) -> None:
    def reverse(text: str) -> str:
        return " ".join(reversed(text.split()))

    for text, filled in (("%s of %d", 0), ("%1$s of %2$d", 1), ("%(a)s of %(b)d", 1)):
        assert fill("x.po", f'msgid "{text}"\nmsgstr ""\n', answer=reverse)[1].filled == filled


def test_long_lines_are_wrapped_and_say_the_same(fill: Fill) -> None:
    text = "word " * 60 + '%s\\nand \\\\ more \\"quoted\\"\\n'
    content, _ = fill("x.po", f'msgid "{text}"\nmsgstr ""\n', answer=lambda symbols: symbols)
    (entry,) = polib.pofile(content.decode())
    assert entry.msgstr == entry.msgid
    assert all(len(line) < 82 for line in content.decode().split("\n")[2:])


@pytest.mark.parametrize(
    ("forms", "filled"), [("nplurals=1; plural=0;", ["%D FILES", ""]), ("nplurals=3; plural=n%3;", ["", ""])]
)
def test_plurals_are_filled_whole_or_left(fill: Fill, forms: str, filled: list[str]) -> None:
    content, report = fill(
        "x.po",
        CATALOGUE.replace("nplurals=2; plural=(n != 1);", forms),
        answer=lambda text: text.upper(),
    )
    entry = polib.pofile(content.decode()).find("one file")
    assert [text.upper() for text in entry.msgstr_plural.values()] == filled
    reasons = [why for _, why, _ in report.left]
    assert reasons == ([] if filled[0] else ["its language has more than two plural forms"])


@pytest.mark.parametrize(
    "entry",
    [
        'msgid "a"\nmsgstr ""\nmsgstr ""\n',
        'msgid "a"\n# amid\nmsgstr ""\n',
        'msgid "a"\nmsgid_plural "b"\nmsgstr[0] ""\nmsgstr[1] ""\nmsgstr[0] ""\n',
        'msgid "a"\nmsgstr ""\n\n""\n',
    ],
)
def test_odd_entries_are_left_or_the_catalogue_refused(fill: Fill, entry: str) -> None:
    content = f'{entry}\nmsgid "c"\nmsgstr ""\n'
    try:
        filled, report = fill("x.po", content)
    except DataError:
        return
    assert filled.decode() == content.replace('msgid "c"\nmsgstr ""', '#, fuzzy\nmsgid "c"\nmsgstr "C"')
    assert [why for _, why, _ in report.left] == ["it has a msgstr twice, or a comment inside the entry"]


def test_a_catalogue_for_another_language_is_refused(fill: Fill) -> None:
    with pytest.raises(DataError, match=r"x\.po is a catalogue for de, but the translations would be in fr"):
        fill("x.po", CATALOGUE, selection=Selection("en", "fr"))
