"""Corpora as the world has them: every format, plain and packed, mutated in every way.

A file is refused with a clear error that names it, or read; and what is read are pairs of sound text. Packed files
carry checksums, so there is no third way: the same pairs, or an error. In formats of one pair a line, a line that is
damaged harms no other line.
"""

import bz2
import gzip
import json
import lzma
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import zstandard
from tests.faults.mutations import bytewise

from transduce.data.formats import Corpus, Pair, Selection
from transduce.errors import DataError

PAIRS = (
    ("Das Haus ist alt.", "The house is old."),
    ("Er sagte: „Komm\u00a0mit!“", "He said: “Come along!”"),
    ("Fünf & sechs < elf", "Five & six < eleven"),
    ("%(name)s hat {n} Äpfel.", "%(name)s has {n} apples."),
    ("Zeile mit \\ und Tab", "A line with \\ and tab"),
    ("日本語のテキスト", "Japanese text 🙂"),
)
_PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": lambda content: gzip.compress(content, mtime=0),
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor(write_checksum=True).compress,
}


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


def _po(texts: tuple[tuple[str, str], ...], *, keys: bool = False) -> str:
    def quoted(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    header = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n"Language: en\\n"\n'
    forms = '"Plural-Forms: nplurals=2; plural=(n != 1);\\n"\n\n'
    entries = "".join(
        f"#: a.c:{n}\nmsgid {quoted(f'key.{n}' if keys else source)}\nmsgstr {quoted(target)}\n\n"
        for n, (source, target) in enumerate(texts)
    )
    plural = 'msgid "one"\nmsgid_plural "many"\nmsgstr[0] "eins"\nmsgstr[1] "viele"\n'
    return header + forms + entries + ("" if keys else plural)


def _tmx() -> str:
    units = "".join(
        f'<tu><tuv xml:lang="de"><seg>{_escaped(source)}</seg></tuv><tuv xml:lang="en"><seg>{_escaped(target)}'
        "<ph x='1'>&lt;b></ph></seg></tuv></tu>\n"
        for source, target in PAIRS
    )
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4"><header srclang="de"/><body>{units}</body></tmx>'
    )


def _xliff(version: str) -> str:
    if version == "1.2":
        units = "".join(
            f'<trans-unit id="{n}"><source>{_escaped(source)}</source><target state="final">{_escaped(target)}'
            '<g id="1">x</g></target></trans-unit>\n'
            for n, (source, target) in enumerate(PAIRS)
        )
        body = f'<file source-language="de" target-language="en" original="a" datatype="x"><body>{units}</body></file>'
        return f'<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">{body}</xliff>'
    units = "".join(
        f'<unit id="u{n}"><segment state="final"><source>{_escaped(source)}</source><target>{_escaped(target)}'
        '<ph id="1"/></target></segment></unit>\n'
        for n, (source, target) in enumerate(PAIRS)
    )
    start = '<xliff version="2.0" srcLang="de" trgLang="en" xmlns="urn:oasis:names:tc:xliff:document:2.0">'
    return f'{start}<file id="f">{units}</file></xliff>'


@dataclass
class Format:
    """A corpus of one format: the files it is made of, the one that is mutated, and what may be asked of it."""

    name: str
    folder: Path
    files: dict[str, bytes]
    by_line: bool = False
    is_packed: bool = False
    selection: Selection = field(default_factory=Selection)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        for name, content in self.files.items():
            (self.folder / name).write_bytes(content)
        self.corpus = ",".join(str(self.folder / name) for name in self.files)
        self.pairs = self.read()
        assert len(self.pairs) >= len(PAIRS), self.name

    def read(self) -> list[Pair]:
        """Return the pairs of the corpus as it is."""
        return list(Corpus(self.corpus, self.selection).pairs())

    def __call__(self, chance: random.Random) -> None:
        """Mutate a file, read, put it back; raise what reading raised."""
        name = chance.choice(list(self.files))
        content = self.files[name]
        mutated = self._one_line_damaged(content, chance) if self.by_line and chance.random() < 0.5 else None
        (self.folder / name).write_bytes(bytewise(content, chance) if mutated is None else mutated[1])
        try:
            pairs = self.read()
        except DataError as fault:
            if str(self.folder) not in str(fault):
                raise AssertionError(f"the error does not name its file: {fault}") from fault
            raise
        finally:
            (self.folder / name).write_bytes(content)
        for pair in pairs:
            pair.source.encode("utf-8")
            pair.target.encode("utf-8")
            assert pair.line >= 0
        if self.is_packed:
            assert pairs == self.pairs, "a damaged archive was read as something else"
        if mutated is not None:
            others = [pair for pair in self.pairs if pair.line != mutated[0]]
            assert [pair for pair in pairs if pair.line != mutated[0]] == others, "other lines were harmed"

    def _one_line_damaged(self, content: bytes, chance: random.Random) -> tuple[int, bytes]:
        """Return the number of a line, and the content with a byte of that line replaced by a printable one."""
        lines = content.split(b"\n")
        number = chance.randrange(1, len(lines) - 1) if len(lines) > 2 else 0
        line = bytearray(lines[number])
        place = chance.randrange(len(line))
        line[place] = chance.choice(b"abcxyz 0123{}[],:'\\/")
        lines[number] = bytes(line)
        return number + 1, b"\n".join(lines)


def formats(folder: Path) -> list[Format]:
    """Return a corpus of every format."""
    columns = "".join(f"{source}\t{target}\n" for source, target in PAIRS)
    quoted = "source,target\n" + "".join(f'"{source}","{target}"\n' for source, target in PAIRS)
    objects = "".join(json.dumps({"source": s, "target": t}) + "\n" for s, t in PAIRS)
    sides = ["".join(f"{pair[side]}\n" for pair in PAIRS) for side in (0, 1)]
    keyed = [_po(tuple((pair[0], pair[side]) for pair in PAIRS), keys=True) for side in (0, 1)]
    german_english = Selection("de", "en")
    texts: list[tuple[str, dict[str, str], bool, Selection]] = [
        ("TSV", {"a.tsv": columns}, True, Selection()),
        ("CSV", {"a.csv": quoted}, False, Selection()),
        ("JSON lines", {"a.jsonl": objects}, True, Selection()),
        ("aligned files", {"a.de": sides[0], "a.en": sides[1]}, True, Selection()),
        ("PO", {"a.po": _po(PAIRS)}, False, Selection()),
        ("PO by key", {"de.po": keyed[0], "en.po": keyed[1]}, False, Selection()),
        ("TMX", {"a.tmx": _tmx()}, False, german_english),
        ("XLIFF 1.2", {"a.xlf": _xliff("1.2")}, False, german_english),
        ("XLIFF 2", {"b.xlf": _xliff("2.0")}, False, german_english),
    ]
    plain = [
        Format(name, folder / name, {file: text.encode() for file, text in files.items()}, by_line, selection=selection)
        for name, files, by_line, selection in texts
    ]
    packed = [
        Format(f"TSV{kind}", folder / f"TSV{kind}", {f"a.tsv{kind}": pack(columns.encode())}, is_packed=True)
        for kind, pack in _PACKERS.items()
    ]
    return [*plain, *packed]


def cases(folder: Path, *, seed: int) -> tuple[int, Callable[[int], str]]:
    """Return how many formats there are, and the function that makes and reads the mutated corpus of a number."""
    found = formats(folder)

    def case(number: int) -> str:
        one = found[number % len(found)]
        one(random.Random(f"{seed}-{number}"))
        return one.name

    return len(found), case
