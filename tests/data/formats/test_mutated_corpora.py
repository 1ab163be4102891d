"""Corpora as the world has them: any damage gives a correct read or a DataError, never another exception."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from transduce.data.formats import Corpus, Selection
from transduce.errors import DataError

PAIRS = [(f"Sentence {n}, with a “quote”.", f"Satz {n} mit „Anführung“; größer.") for n in range(40)]


def table(delimiter: str, *, quoted: bool) -> str:
    mark = '"' if quoted else ""
    return "".join(f"{mark}{source}{mark}{delimiter}{mark}{target}{mark}\n" for source, target in PAIRS)


CONTENTS = {
    "x.tsv": table("\t", quoted=False),
    "x.csv": table(";", quoted=True),
    "x.jsonl": "".join(
        json.dumps({"en": s, "de": t}, ensure_ascii=n % 2 == 0) + "\n" for n, (s, t) in enumerate(PAIRS)
    ),
    "x.po": 'msgid ""\nmsgstr "Language: de\\n"\n'
    + "".join(f'\n#: a.c:{n}\nmsgid "{s}"\nmsgstr "{t}"\n' for n, (s, t) in enumerate(PAIRS)),
    "x.tmx": '<tmx version="1.4"><header srclang="en"/><body>\n'
    + "".join(
        f'<tu><tuv xml:lang="en"><seg>{s}</seg></tuv>\n<tuv xml:lang="de"><seg>{t}</seg></tuv></tu>\n' for s, t in PAIRS
    )
    + "</body></tmx>\n",
    "x.xlf": '<xliff version="1.2"><file source-language="en" target-language="de"><body>\n'
    + "".join(f"<trans-unit><source>{s}</source>\n<target>{t}</target></trans-unit>\n" for s, t in PAIRS)
    + "</body></file></xliff>\n",
    "x.en": "".join(f"{source}\n" for source, _ in PAIRS),
}
SNIPPETS = [
    b"\0",
    b"\xff",
    b"\xc3",
    b"\n",
    b"\r",
    b"\r\n",
    b"\t",
    b'"',
    b";",
    b",",
    b"{",
    b"\\ud800",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\xe2\x80\xa8",
    b"[" * 3000,
    b"<tu>",
    b"</seg>",
    b"<ph/>",
    b"&",
    b"&lt;",
    b"&#0;",
    b"]]>",
    b"<!DOCTYPE x [<!ENTITY a 'b'>]>",
    b'\nmsgid "',
    b'\nmsgstr[9999] "x"\n',
    b"\n#~ ",
    b"\n#, fuzzy\n",
    b"\\",
    b"charset=base64",
]


def mutate(content: bytes, chance: random.Random) -> bytes:
    mutated = bytearray(content)
    for _ in range(chance.choice([0, 1, 1, 2, 5])):
        place = chance.randrange(len(mutated) + 1)
        match chance.randrange(5):
            case 0:
                mutated[place : place + 1] = bytes([chance.randrange(256)])
            case 1:
                mutated[place:place] = chance.choice(SNIPPETS)
            case 2:
                del mutated[place : place + chance.randrange(1, 60)]
            case 3:
                del mutated[place:]
            case _:
                mutated[place:place] = mutated[max(0, place - 50) : place]
    return bytes(mutated)


def check(folder: Path, name: str, pack: Callable[[bytes], bytes], *, suffix: str, chance: random.Random) -> bool:
    """Read one damaged corpus; return whether it was read."""
    encoding = chance.choice(["utf-8", "utf-8", "utf-16"])
    content = CONTENTS[name].encode(encoding)
    damaged = mutate(pack(content), chance) if chance.random() < 0.5 else pack(mutate(content, chance))
    path = folder / f"{name}{suffix}"
    path.write_bytes(damaged)
    spec = str(path)
    if name == "x.en":
        (folder / "x.de").write_text("".join(f"{target}\n" for _, target in PAIRS), encoding="utf-8")
        spec += f",{folder / 'x.de'}"
    try:
        pairs = list(Corpus(spec, Selection("en", "de")).pairs())
    except DataError as error:
        message = str(error)
        pairs = []
    else:
        message = ""
    if message:
        assert str(path) in message or "x.de" in message
        return False
    if damaged == pack(content):
        assert [(pair.source, pair.target) for pair in pairs] == PAIRS
    for pair in pairs:
        assert "\n" not in pair.source or name != "x.tsv"
        (pair.source + pair.target).encode("utf-8")
    return True


def campaign(folder: Path, packers: dict[str, Callable[[bytes], bytes]], *, rounds: int) -> None:
    chance = random.Random(rounds)
    outcomes = [
        check(folder, name, pack, suffix=suffix, chance=chance)
        for _ in range(rounds)
        for name in CONTENTS
        for suffix, pack in packers.items()
    ]
    assert 0.1 < sum(outcomes) / len(outcomes) < 0.9, "both outcomes should be common, else little is tested"


def test_some_mutated_corpora(tmp_path: Path, packers: dict[str, Callable[[bytes], bytes]]) -> None:
    campaign(tmp_path, packers, rounds=12)


@pytest.mark.slow
@pytest.mark.extended
def test_ten_thousand_mutated_corpora(tmp_path: Path, packers: dict[str, Callable[[bytes], bytes]]) -> None:
    campaign(tmp_path, packers, rounds=500)
