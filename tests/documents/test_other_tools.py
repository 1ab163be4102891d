"""Files of other people's tools: real catalogues, and TMX and XLIFF that translate-toolkit writes and reads back.

Both are optional: real catalogues are looked for in the folder that TRANSDUCE_CATALOGUES names (Debian's gettext-doc
and source packages carry thousands), and translate-toolkit is no dependency.
"""

import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import polib
import pytest

from transduce.data.formats import Corpus, Selection
from transduce.documents.filling import FillingReport
from transduce.errors import DataError

Fill = Callable[..., tuple[bytes, FillingReport]]

KEPT = ("msgid", "msgid_plural", "msgctxt", "comment", "tcomment", "occurrences", "previous_msgid", "obsolete")


@pytest.mark.slow
def test_real_catalogues_are_read_and_filled_in(fill: Fill) -> None:
    folder = os.environ.get("TRANSDUCE_CATALOGUES")
    if not folder:
        pytest.skip("TRANSDUCE_CATALOGUES names no folder of PO files")
    paths = sorted(Path(folder).rglob("*.po"))
    assert paths
    refused: list[tuple[Path, DataError]] = []
    for path in paths:
        try:
            pairs = [pair for pair in Corpus(str(path)).pairs() if not pair.skipped]
            content, _ = fill("x.po", path.read_bytes(), selection=Selection())
        except DataError as fault:
            refused.append((path, fault))
            continue
        encoding = polib.detect_encoding(str(path))
        before, after = polib.pofile(str(path), encoding=encoding), polib.pofile(content.decode(encoding))
        translated = [entry for entry in before if entry.translated() and not entry.obsolete]
        assert len(pairs) >= len(translated), path  # of a plural more than one
        for old, new in zip(before, after, strict=True):
            assert [getattr(old, name) for name in KEPT] == [getattr(new, name) for name in KEPT], path
            if old.obsolete or old.msgstr or any(old.msgstr_plural.values()):
                assert (old.msgstr, old.msgstr_plural, old.flags) == (new.msgstr, new.msgstr_plural, new.flags), path
    print(f"{len(paths)} catalogues, refused: {refused}")
    assert len(refused) <= len(paths) // 100, refused  # some are damaged


@pytest.fixture
def toolkit() -> Callable[[str], Any]:
    pytest.importorskip("translate.storage", reason="translate-toolkit is not installed; it is no dependency")
    return lambda name: import_module(f"translate.storage.{name}")


def test_tmx_of_translate_toolkit(toolkit: Callable[[str], Any], fill: Fill, tmp_path: Path) -> None:
    store = toolkit("tmx").tmxfile(sourcelanguage="en", targetlanguage="de")
    for number in range(5):
        store.addtranslation(f"word {number} <&>", "en", f"Wort {number} <&>" if number % 2 else "", "de")
    content = bytes(store)
    (tmp_path / "y.tmx").write_bytes(content)
    pairs = [(p.source, p.target) for p in Corpus(str(tmp_path / "y.tmx"), Selection("en", "de")).pairs()]
    assert pairs == [(f"word {n} <&>", f"Wort {n} <&>" if n % 2 else "") for n in range(5)]
    filled, report = fill("x.tmx", content)
    assert (report.filled, report.kept) == (3, 2)
    again = toolkit("tmx").tmxfile.parsestring(filled)
    expected = [f"Wort {n} <&>" if n % 2 else f"WORD {n} <&>" for n in range(5)]
    assert [str(unit.target) for unit in again.units] == expected


@pytest.mark.parametrize("kind", ["xliff", "xliff2"])
def test_xliff_of_translate_toolkit(toolkit: Callable[[str], Any], fill: Fill, tmp_path: Path, kind: str) -> None:
    name = "xliff" if kind == "xliff" else "xliff2"
    try:
        module = toolkit(name)
    except ModuleNotFoundError:
        pytest.skip(f"this translate-toolkit has no {name}")
    factory = module.xlifffile if kind == "xliff" else module.Xliff2File
    store = factory(sourcelanguage="en", targetlanguage="de")
    for number in range(5):
        unit = store.addsourceunit(f"word {number} <&>")
        if number % 2:
            unit.target = f"Wort {number} <&>"
    content = bytes(store)
    (tmp_path / "y.xlf").write_bytes(content)
    pairs = list(Corpus(str(tmp_path / "y.xlf"), Selection("en", "de")).pairs())
    assert [p.source for p in pairs] == [f"word {n} <&>" for n in range(5)]
    assert [p.target for p in pairs if p.target] == ["Wort 1 <&>", "Wort 3 <&>"]
    filled, report = fill("x.xlf", content)
    assert (report.filled, report.kept) == (3, 2)
    again = factory.parsestring(filled)
    expected = [f"Wort {n} <&>" if n % 2 else f"WORD {n} <&>" for n in range(5)]
    assert [str(unit.target) for unit in again.units] == expected
    if kind == "xliff":
        assert [unit.isfuzzy() for unit in again.units] == [n % 2 == 0 for n in range(5)]
        assert not any(unit.isapproved() for unit in again.units if unit.source.split()[1] in "024")
