"""Damaged documents: a DataError that names the file, or a filled-in document that can be read again; nothing else."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from transduce.documents.filling import FillingReport
from transduce.errors import DataError

Fill = Callable[..., tuple[bytes, FillingReport]]

ROWS = [(f"sentence {n} with <b>ü</b> & %s", f"Satz {n}" if n % 3 == 0 else "") for n in range(12)]
ESCAPED = [(f"sentence {n} <g id='1'>ü</g> &amp; <x id='2'/>", target) for n, (_, target) in enumerate(ROWS)]
DOCUMENTS = {
    "x.po": 'msgid ""\nmsgstr "Language: de\\nPlural-Forms: nplurals=2; plural=n!=1;\\n"\n'
    + "".join(f'\n#, c-format\n#| msgid "o"\nmsgid "{s}"\nmsgstr "{t}"\n' for s, t in ROWS)
    + '\nmsgctxt "c"\nmsgid "a"\nmsgid_plural "b"\nmsgstr[0] ""\nmsgstr[1] ""\n\n#~ msgid "z"\n#~ msgstr ""\n',
    "x.tmx": "<tmx version='1.4'><header srclang='en'/><body>\n"
    + "".join(
        f"<tu>\n<tuv xml:lang='en'><seg>{s}</seg></tuv>"
        + f"<tuv xml:lang='de'><seg>{t}</seg></tuv>" * (n % 2)
        + "</tu>\n"
        for n, (s, t) in enumerate(ESCAPED)
    )
    + "</body></tmx>\n",
    "x.xlf": "<xliff version='1.2'><file source-language='en'><body>\n"
    + "".join(
        f"<trans-unit id='{n}' approved='yes'><source>{s}</source>"
        + f"<target>{t}</target>" * (n % 2)
        + "</trans-unit>\n"
        for n, (s, t) in enumerate(ESCAPED)
    )
    + "</body></file></xliff>\n",
    "x.xliff": "<xliff version='2.0' srcLang='en' trgLang='de'><file id='f'>\n"
    + "".join(
        f"<unit id='{n}'><segment><source>{s}</source><target>{t}</target></segment></unit>\n"
        for n, (s, t) in enumerate(ESCAPED)
    )
    + "</file></xliff>\n",
    "x.tsv": "en\tde\n" + "".join(f"{s}\t{t}\n" for s, t in ROWS),
    "x.jsonl": "".join(f'{{"en": "{s}", "n": [1, "x"], "de": "{t}"}}\n' for s, t in ROWS),
    "x.csv": "en,de\n" + "".join(f'"{s}",{t}\n' for s, t in ROWS),
    "x.json": "{" + ",\n".join(f'"k{n}": {{"t": "{s}", "n": [1, "x"]}}' for n, (s, _) in enumerate(ROWS)) + "}\n",
    "x.properties": "# c\n" + "".join(f"k{n} = {s} \\\n  more\n" for n, (s, _) in enumerate(ROWS)),
    "x.srt": "".join(f"{n}\n00:00:0{n % 10},000 --> 00:00:09,000\n{s}\nmore\n\n" for n, (s, _) in enumerate(ROWS)),
    "x.vtt": "WEBVTT\n\n"
    + "".join(f"00:0{n % 10}.000 --> 00:09.000\n{s.replace('&', '&amp;')}\n\n" for n, (s, _) in enumerate(ROWS)),
    "x.md": "---\na: b\n---\n# T\n\n" + "".join(f"- {s}\n  *y* `c` [z](u)\n\n> q\n\n" for s, _ in ROWS),
    "x.html": "<html><body>"
    + "".join(f"<p class='a'>{s} <a href='x'>y</a> z</p>\n" for s, _ in ROWS)
    + "</body></html>",
}
IN_PLACE = {"x.html", "x.json", "x.properties", "x.srt", "x.vtt", "x.md"}
SNIPPETS = [
    *(b"\0", b"\xff", b"\n", b"\r", b"\t", b'"', b"'", b"<", b">", b"&", b"/", b"</g>", b"<g id='9'>", b"<seg/>"),
    *(b"<target/>", b"<tu>", b"<!--", b"]]>", b"<![CDATA[", b"<?x?>", b"\nmsgid ", b'\nmsgid "', b'\nmsgstr ""\n'),
    *(b"\n#~ ", b"\n# ", b"\n#, fuzzy\n", b"\n#| msgid ", b"\\", b"{", b"}", b",", b"\xef\xbb\xbf", b"\xff\xfe"),
    *(
        b"\xef\xb7\x90",
        b"<script>",
        b"<mrk mtype='seg' mid='1'>",
        b"xmlns='u'",
        b"<x:y/>",
        b'msgstr[2] ""\n',
        b"=",
        b" ",
    ),
]


def mutate(content: bytes, chance: random.Random) -> bytes:
    mutated = bytearray(content)
    for _ in range(chance.choice([0, 1, 1, 2, 4])):
        place = chance.randrange(len(mutated) + 1)
        match chance.randrange(5):
            case 0:
                mutated[place : place + 1] = bytes([chance.randrange(256)])
            case 1 | 2:
                mutated[place:place] = chance.choice(SNIPPETS)
            case 3:
                del mutated[place : place + chance.randrange(1, 40)]
            case _:
                mutated[place:place] = mutated[max(0, place - 60) : place]
    return bytes(mutated)


def check(fill: Fill, name: str, content: bytes) -> bool:
    """Fill in one damaged document; return whether it could be."""
    try:
        untouched, _ = fill(name, content, answer=lambda text: "")
    except DataError as error:
        message = str(error)
    else:
        message = ""
    if message:
        assert name in message
        return False
    assert untouched == content
    filled, report = fill(name, content)
    again, second = fill(name, filled)
    if name not in IN_PLACE:
        assert second.filled == 0, "what was filled in once is no gap any more"
        assert again == filled
    assert report.filled or filled == content
    return True


def campaign(fill: Fill, *, rounds: int) -> None:
    chance = random.Random(rounds)
    outcomes = [
        check(fill, name, mutate(content.encode(), chance))
        for _ in range(rounds)
        for name, content in DOCUMENTS.items()
    ]
    assert 0.1 < sum(outcomes) / len(outcomes) < 0.95, "both outcomes should be common, else little is tested"


def test_some_mutated_documents(fill: Fill) -> None:
    campaign(fill, rounds=25)


@pytest.mark.slow
@pytest.mark.extended
def test_ten_thousand_mutated_documents(fill: Fill) -> None:
    campaign(fill, rounds=1500)


def test_the_documents_themselves_can_be_filled_in(fill: Fill, tmp_path: Path) -> None:
    for name, content in DOCUMENTS.items():
        _, report = fill(name, content)
        assert report.filled >= 6, name
        assert report.left == [], name
