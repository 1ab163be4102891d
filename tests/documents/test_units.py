"""TMX and XLIFF: targets put in, tags from the source, marked for review; every other byte as it was."""

import difflib
from collections.abc import Callable

import pytest

from transduce.data.formats import Selection
from transduce.documents.filling import FillingReport
from transduce.errors import DataError

Fill = Callable[..., tuple[bytes, FillingReport]]

TMX = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version='1.4'><header srclang="en"  /><body><!-- kept -->
  <tu tuid="1">
    <tuv xml:lang="en-US"><seg>see <bpt i="1">&lt;b&gt;</bpt>this &amp; that<ept i="1">&lt;/b&gt;</ept> now</seg></tuv>
    <tuv xml:lang="fr"><seg>x</seg></tuv>
  </tu>
  <tu><tuv xml:lang="de"><seg/></tuv><tuv xml:lang="en"><seg>two</seg></tuv></tu>
  <tu><tuv xml:lang="en"><seg>three</seg></tuv><tuv xml:lang="de-DE"><seg>drei</seg></tuv></tu>
</body></tmx>
"""
REVIEW = '<prop type="x-transduce-state">needs-review</prop>'

XLIFF_1 = """<xlf:xliff version="1.2" xmlns:xlf="urn:oasis:names:tc:xliff:document:1.2">
<xlf:file original="a" source-language='en'><xlf:body>
<xlf:trans-unit id="1" approved = "yes"><xlf:source>go <xlf:g id="1">there</xlf:g><xlf:x id="2"/> now</xlf:source>
  <xlf:note>n</xlf:note></xlf:trans-unit>
<xlf:trans-unit id="2"><xlf:source>two</xlf:source><xlf:target state="new" /></xlf:trans-unit>
<xlf:trans-unit id="3"><xlf:source>three</xlf:source><xlf:target state="needs-l10n">x</xlf:target></xlf:trans-unit>
<xlf:trans-unit id="4" translate="no"><xlf:source>four</xlf:source></xlf:trans-unit>
<xlf:trans-unit id="5"><xlf:source>a. b.</xlf:source><xlf:seg-source><xlf:mrk mtype="seg" mid="1">a.</xlf:mrk> \
<xlf:mrk mtype="seg" mid="2">b.</xlf:mrk></xlf:seg-source></xlf:trans-unit>
</xlf:body></xlf:file></xlf:xliff>
"""

XLIFF_2 = """<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en" trgLang="de">
<file id="f"><unit id="1">
  <segment id="s" state="final">
    <source>one <pc id="1">two</pc> <mrk id="m" type="term">x</mrk> y</source>
  </segment><segment><source>done</source><target>fertig</target></segment>
</unit></file></xliff>
"""


def changes(before: str, after: str) -> list[tuple[str, str]]:
    """Return what was replaced by what, line by line."""
    old, new = before.split("\n"), after.split("\n")
    return [
        ("\n".join(old[a:b]), "\n".join(new[c:d]))
        for kind, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        if kind != "equal"
    ]


def test_tmx(fill: Fill) -> None:
    content, report = fill("x.tmx", TMX)
    first = (
        f'    <tuv xml:lang="de">{REVIEW}<seg>SEE <bpt i="1">&lt;b&gt;</bpt>THIS &amp; THAT<ept i="1">&lt;/b&gt;</ept> '
        "NOW</seg></tuv>"
    )
    assert changes(TMX, content.decode()) == [
        ("", first),
        (
            '  <tu><tuv xml:lang="de"><seg/></tuv><tuv xml:lang="en"><seg>two</seg></tuv></tu>',
            f'  <tu><tuv xml:lang="de">{REVIEW}<seg>TWO</seg></tuv><tuv xml:lang="en"><seg>two</seg></tuv></tu>',
        ),
    ]
    assert (report.filled, report.kept, report.left) == (2, 1, [])


def test_xliff_1_2(fill: Fill) -> None:
    content, report = fill("x.xlf", XLIFF_1)
    state = 'state="needs-review-translation" state-qualifier="leveraged-mt"'
    expected = (
        XLIFF_1.replace("source-language='en'>", "source-language='en' target-language=\"de\">")
        .replace('approved = "yes"', 'approved = "no"')
        .replace(
            " now</xlf:source>",
            f' now</xlf:source><xlf:target {state}>GO <xlf:g id="1">THERE</xlf:g><xlf:x id="2"/> NOW</xlf:target>',
        )
        .replace('<xlf:target state="new" />', f"<xlf:target {state}>TWO</xlf:target>")
        .replace(
            "</xlf:seg-source>",
            f'</xlf:seg-source><xlf:target {state}><xlf:mrk mtype="seg" mid="1">A.</xlf:mrk> <xlf:mrk mtype="seg" '
            'mid="2">B.</xlf:mrk></xlf:target>',
        )
    )
    assert content.decode() == expected
    assert (report.filled, report.kept, [why for _, why, _ in report.left]) == (3, 1, ["not to be translated"])


def test_xliff_2(fill: Fill) -> None:
    content, report = fill("x.xliff", XLIFF_2)
    expected = XLIFF_2.replace(
        '<segment id="s" state="final">', '<segment id="s" state="initial" subState="transduce:needs-review">'
    ).replace(
        " y</source>\n",
        ' y</source>\n    <target>ONE <pc id="1">TWO</pc> <mrk id="m" type="term">X</mrk> Y</target>\n',
    )
    assert content.decode() == expected
    assert (report.filled, report.kept) == (1, 1)


@pytest.mark.parametrize(("name", "content"), [("x.tmx", TMX), ("x.xlf", XLIFF_1), ("x.xliff", XLIFF_2)])
class TestEveryKind:
    def test_has_no_gaps_once_filled(self, fill: Fill, name: str, content: str) -> None:
        once, _ = fill(name, content)
        twice, report = fill(name, once)
        assert (twice, report.filled) == (once, 0)

    def test_stays_in_its_encoding(self, fill: Fill, name: str, content: str) -> None:
        declared = '<?xml version="1.0" encoding="{}"?>\n' + (content.partition('"tmx14.dtd">\n')[2] or content)
        utf_8, _ = fill(name, declared.format("utf-8"))
        utf_16, _ = fill(name, declared.format("utf-16").encode("utf-16"))
        latin, _ = fill(name, declared.format("iso-8859-1"), answer=lambda text: "Ω" + text.upper())
        assert utf_16.decode("utf-16") == utf_8.decode().replace("utf-8", "utf-16")
        assert b"&#937;" in latin

    def test_lost_tags_leave_the_unit_empty_and_listed(
        self, fill: Fill, name: str, content: str, without_symbols: Callable[[str], str]
    ) -> None:
        filled, report = fill(name, content, answer=without_symbols)
        assert any("got lost" in why for _, why, _ in report.left)
        assert "<g" not in filled.decode().partition("<target")[2]

    def test_tags_that_change_their_order_are_refused_unless_they_still_fit(
        self, fill: Fill, name: str, content: str
    ) -> None:
        def symbols_last(text: str) -> str:
            symbols = [char for char in text if 0xFDD0 <= ord(char) <= 0xFDDF]
            return "".join(char for char in text if char not in symbols) + "".join(symbols)

        _, report = fill(name, content, answer=symbols_last)
        assert any("no longer encloses its words" in why for _, why, _ in report.left)


def test_languages_that_are_not_there_are_refused(fill: Fill) -> None:
    with pytest.raises(DataError, match=r"has no segment in sv; it has de, de-DE, en, en-US, fr"):
        fill("x.tmx", TMX, selection=Selection("sv", "de"))
    with pytest.raises(DataError, match=r"Name both with --from and --to"):
        fill("x.tmx", TMX, selection=Selection("en"))
    with pytest.raises(DataError, match=r"goes from en to de, not from en to fr"):
        fill("x.xliff", XLIFF_2, selection=Selection("en", "fr"))
