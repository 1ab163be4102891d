"""TMX and XLIFF as corpora: languages, states, inline tags, and files that mean harm."""

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from transduce.data.formats import Corpus, Pair, Selection
from transduce.data.formats.xml_units import read_units
from transduce.errors import DataError
from transduce.text.placeholders import protect_pair

EN_DE = Selection("en", "de")

TMX = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en"/><body>
  <tu tuid="1"><note>n</note>
    <tuv xml:lang="en-US"><seg>Good &amp; <bpt i="1" x="1">&lt;b&gt;</bpt>green<ept i="1">&lt;/b&gt;</ept></seg></tuv>
    <tuv xml:lang="fr"><seg>Bon</seg></tuv>
    <tuv xml:lang="de-DE"><seg>Gut &amp; <bpt i="1" x="1">&lt;b&gt;</bpt>grün<ept i="1">&lt;/b&gt;</ept></seg></tuv>
  </tu>
  <tu><tuv xml:lang="en"><seg>Only English</seg></tuv></tu>
  <tu><tuv lang="de"><seg>Hallo <ph>%s</ph></seg></tuv><tuv lang="EN"><seg>Hello <ph>%s</ph></seg></tuv></tu>
</body></tmx>
"""

XLIFF_1 = """<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2" xmlns:x="urn:x">
<file original="a" source-language="en-GB" target-language="de"><body><group>
<trans-unit id="1"><source>Click <g id="1">here</g><x id="2"/></source><target>Hier <g id="1">klicken</g><x id="2"/>
</target><alt-trans><source>no</source><target>nein</target></alt-trans><x:target>no</x:target></trans-unit>
<trans-unit id="2"><source>A</source><target state="needs-review-translation">B</target></trans-unit>
<trans-unit id="3" approved="no"><source>A</source><target>B</target></trans-unit>
<trans-unit id="4" approved="yes"><source>A</source><target state="final">B</target></trans-unit>
<trans-unit id="5"><source>A</source></trans-unit>
<trans-unit id="6" translate="no"><source>A</source><target>A</target></trans-unit>
<trans-unit id="7"><source>One. Two.</source><seg-source><mrk mtype="seg" mid="1">One.</mrk> <mrk mtype="seg" mid="2">
Two.</mrk></seg-source><target><mrk mtype="seg" mid="1">Eins.</mrk> <mrk mtype="seg" mid="2">Zwei.</mrk></target>
</trans-unit></group></body></file></xliff>
"""

XLIFF_2 = """<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en" trgLang="de-CH">
<file id="f"><unit id="1"><originalData><data id="d">&lt;b></data></originalData>
<segment><source>One <pc id="1" dataRefStart="d">two</pc><ph id="2"/> <mrk id="m" type="term">x</mrk></source>
<target>Eins <pc id="1" dataRefStart="d">zwei</pc><ph id="2"/> <mrk id="m" type="term">x</mrk></target></segment>
<ignorable><source> </source></ignorable>
<segment state="initial"><source>A</source><target>B</target></segment>
<segment state="final"><source>C</source><target>D</target></segment>
<segment><source>E</source></segment></unit>
</file></xliff>
"""


def read(path: Path, content: str | bytes, selection: Selection | None = EN_DE) -> list[Pair]:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(Corpus(str(path), selection).pairs())


def texts(pairs: list[Pair]) -> list[tuple[str, str]]:
    return [(" ".join(pair.source.split()), " ".join(pair.target.split())) for pair in pairs if not pair.skipped]


class TestTmx:
    def test_languages_choose_the_pair_and_its_direction(self, tmp_path: Path) -> None:
        pairs = texts(read(tmp_path / "x.tmx", TMX))
        assert pairs == [
            ('Good & <bpt i="1"/>green<ept i="1"/>', 'Gut & <bpt i="1"/>grün<ept i="1"/>'),
            ('Hello <ph code="%s"/>', 'Hallo <ph code="%s"/>'),
        ]
        assert texts(read(tmp_path / "x.tmx", TMX, Selection("de", "en"))) == [(t, s) for s, t in pairs]
        assert texts(read(tmp_path / "x.tmx", TMX, Selection("fr", "en")))[0][0] == "Bon"

    def test_units_without_the_pair_are_counted(self, tmp_path: Path) -> None:
        pairs = read(tmp_path / "x.tmx", TMX)
        assert [(p.source, p.skipped, p.line) for p in pairs if p.skipped] == [
            ("Only English", "not in both languages", 9)
        ]

    @pytest.mark.parametrize(
        ("selection", "message"),
        [
            (None, r"holds EN \(1\), de \(1\), de-DE \(1\), en \(1\), en-US \(1\), fr \(1\)\. Choose the pair"),
            (Selection("en"), r"Choose the pair: set data\.target_language"),
            (Selection("en", "sv"), r"fr \(1\), but no unit from en to sv"),
        ],
    )
    def test_a_missing_or_wrong_choice_lists_what_there_is(
        self, tmp_path: Path, selection: Selection | None, message: str
    ) -> None:
        with pytest.raises(DataError, match=message):
            read(tmp_path / "x.tmx", TMX, selection)

    @pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "iso-8859-1", "windows-1252"])
    def test_the_encoding_is_what_the_file_says(self, tmp_path: Path, encoding: str) -> None:
        content = TMX.replace("UTF-8", encoding.removesuffix("-sig")).encode(encoding)
        assert "grün" in read(tmp_path / "x.tmx", content)[0].target


class TestXliff:
    def test_1_2(self, tmp_path: Path) -> None:
        pairs = read(tmp_path / "x.xlf", XLIFF_1)
        assert texts(pairs) == [
            ('Click <g id="1">here</g><x id="2"/>', 'Hier <g id="1">klicken</g><x id="2"/>'),
            ("A", "B"),
            ("One.", "Eins."),
            ("Two.", "Zwei."),
        ]
        skipped = [pair.skipped for pair in pairs if pair.skipped]
        assert skipped == ["not approved", "not approved", "untranslated", "not to be translated"]

    def test_2(self, tmp_path: Path) -> None:
        pairs = read(tmp_path / "x.xliff", XLIFF_2)
        assert texts(pairs) == [
            ('One <pc id="1">two</pc><ph id="2"/> x', 'Eins <pc id="1">zwei</pc><ph id="2"/> x'),
            ("C", "D"),
        ]
        assert [pair.skipped for pair in pairs if pair.skipped] == ["not approved", "untranslated"]

    @pytest.mark.parametrize("content", [XLIFF_1, XLIFF_2])
    def test_direction(self, tmp_path: Path, content: str) -> None:
        forward = texts(read(tmp_path / "x.xlf", content, None))
        assert texts(read(tmp_path / "x.xlf", content, Selection("de", "en"))) == [(t, s) for s, t in forward]
        with pytest.raises(DataError, match=r"holds en(-GB)? to de(-CH)? \(\d\), but no unit from en to fr"):
            read(tmp_path / "x.xlf", content, Selection("en", "fr"))


def test_inline_tags_become_reserved_symbols_on_both_sides(tmp_path: Path) -> None:
    for name, content in (("x.tmx", TMX), ("x.xlf", XLIFF_1), ("x.xliff", XLIFF_2)):
        source, target = texts(read(tmp_path / name, content))[0]
        protected = protect_pair(source, target)
        assert len(protected.originals) >= 2
        assert "<" not in protected.source + protected.target


BOMB = '<!DOCTYPE tmx [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]>'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (TMX.replace('<!DOCTYPE tmx SYSTEM "tmx14.dtd">', BOMB), r"x\.tmx:2:\d+: the file declares the entity 'a'"),
        (
            TMX.replace("tmx14.dtd", "tmx14.dtd").replace("green", "&secret;"),
            r"x\.tmx:5:\d+: &secret; is not defined in this file, and no other file is fetched",
        ),
        (
            TMX.replace('SYSTEM "tmx14.dtd"', '[<!ENTITY s SYSTEM "file:///etc/passwd">]').replace("green", "&s;"),
            r"declares the entity 's'",
        ),
        (TMX[:300], r"x\.tmx:5: the file is not well-formed XML \(unclosed token|no element"),
        (TMX.replace("UTF-8", "nonsense"), "encoding that is not supported"),
        ("<tmx><tu>" + "<a>" * 100, "elements are nested more than 64 deep"),
        ("<tmx/>", "holds no language, but no unit from en to de"),
        ("", r"x\.tmx is empty"),
    ],
)
def test_harmful_and_broken_files_are_refused_by_name(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(tmp_path / "x.tmx", content)


def test_a_unit_without_end_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    def parts() -> Iterator[bytes]:
        yield b"<tmx><tu>"
        while True:
            yield b"x" * (1 << 20)

    with pytest.raises(DataError, match="one unit is larger than 16 MiB"):
        list(read_units(parts(), path=tmp_path / "x.tmx", names=frozenset({"tu"})))


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    unit = b'<tu><tuv xml:lang="en"><seg>' + b"word " * 200 + b"</seg></tuv></tu>"

    def peak(count: int) -> int:
        tracemalloc.start()
        parts = (b"<tmx>" if n == 0 else b"</tmx>" if n == count + 1 else unit for n in range(count + 2))
        assert sum(1 for _ in read_units(parts, path=tmp_path / "x", names=frozenset({"tu"}))) == count
        highest = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return highest

    assert peak(2000) < 2 * peak(200) < len(unit) * 2000


def test_elements_know_where_their_tags_are(tmp_path: Path) -> None:
    content = '<tmx>\n<tu a="&gt;"><seg x="1" >é<ph/>&amp;</seg\n></tu></tmx>'.encode()
    (unit,) = read_units([content], path=tmp_path / "x", names=frozenset({"tu"}))
    segment = unit.element.first("seg")
    assert segment is not None
    assert content[unit.element.start : unit.element.inside] == b'<tu a="&gt;">'
    assert content[segment.start : segment.inside] == b'<seg x="1" >'
    assert content[segment.inside : segment.inside_end] == "é<ph/>&amp;".encode()
    assert content[segment.inside_end : segment.end] == b"</seg\n>"
    placeholder = segment.children[1]
    assert not isinstance(placeholder, str)
    assert content[placeholder.start : placeholder.inside] == b"<ph/>"
    assert placeholder.inside == placeholder.end
