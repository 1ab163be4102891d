"""Hostile documents of any size: random fragments of a format, each repeated, within what makes the document one.

A document of size n is a few fragments chosen at random, repeated in runs or in turns, so that the same choice can be
grown. The choices for a number are always the same.
"""

import io
import random
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass

ESCAPES = (b"\\", b"\\\\", b'\\"', b"\\u00e4", b"\\ud83d")
TEXT = (b"a cat ", b"\n", b" ", "ä".encode(), b"%s ", b"{a} ", b"<b>", b"</b>", b"&", b"https://a.b/c ", b"1,2 ", b"\t")
XML = (b"a cat ", b"\n", b" ", "ä".encode(), b"%s ", b"<!-- c -->", b"<![CDATA[a]]>", b"&amp;", b"&#228;", b"<?p q?>")
BROKEN = (b"<g id='1'>", b"</g>", b"&", b"<!--", b" a='b'", b"<x:y/>", b"]]>")


@dataclass(frozen=True)
class Grammar:
    """What a document of a format begins and ends with, and fragments that may be repeated between."""

    start: bytes
    end: bytes
    fragments: tuple[bytes, ...]
    packed: Callable[[bytes], bytes] = bytes


def _docx(content: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", content)
    return file.getvalue()


_CUE = b"00:00:01,000 --> 00:00:02,000\n"
_WORD = b"<w:document xmlns:w='http://schemas.openxmlformats.org/wordprocessingml/2006/main'><w:body>"
_RUN = b"<w:r><w:rPr><w:b/></w:rPr><w:t>cat </w:t></w:r>"
GRAMMARS: Mapping[str, tuple[Grammar, ...]] = {
    "po": (
        Grammar(
            b'msgid ""\nmsgstr "Language: de\\n"\n\n',
            b'\nmsgid "z"\nmsgstr ""\n',
            (
                *(
                    b'msgid "a"\nmsgstr ""\n\n',
                    b"#: a.c:1\n",
                    b"#, fuzzy\n",
                    b'#| msgid "o"\n',
                    b"#~ ",
                    b'msgctxt "c"\n',
                ),
                *(b'msgid_plural "d"\n', b'msgstr[1] ""\n', *TEXT),
            ),
        ),
        Grammar(b'msgid ""\n', b'\nmsgstr ""\n', (b'"b"\n', b'"\\n"\n', b"  ", b'"', *ESCAPES)),
        Grammar(b'msgid "', b'"\nmsgstr ""\n', (*ESCAPES, *TEXT)),
    ),
    "tmx": (
        Grammar(
            b"<tmx><header srclang='en'/><body>",
            b"</body></tmx>",
            (b"<tu><tuv xml:lang='en'><seg>a <ph x='1'/>b</seg></tuv></tu>", b"<e/>", b"<note>n</note>", *XML, *BROKEN),
        ),
        Grammar(
            b"<tmx><body><tu><tuv xml:lang='en'><seg>b ",
            b"</seg></tuv></tu></body></tmx>",
            (b"<ph x='1'/>", b"<bpt i='1'>c</bpt>a<ept i='1'/>", b"<hi>a</hi>", *XML, *BROKEN),
        ),
    ),
    "xliff": (
        Grammar(
            b"<xliff version='1.2'><file source-language='en'><body>",
            b"</body></file></xliff>",
            (
                b"<trans-unit id='u'><source>a <g id='1'>b</g></source></trans-unit>",
                b"<group><trans-unit><source>a</source><target/></trans-unit></group>",
                *XML,
            ),
        ),
        Grammar(
            b"<xliff version='1.2'><file source-language='en'><body><trans-unit><source>b ",
            b"</source></trans-unit></body></file></xliff>",
            (b"<g id='1'>b</g>", b"<x id='2'/>", b"<mrk mtype='seg' mid='1'>a</mrk>", *XML, *BROKEN),
        ),
    ),
    "html": (
        Grammar(
            b"<html><body>",
            b"</body></html>",
            (
                *(
                    b"<p>a <i>b</i></p>",
                    b"<a ",
                    b"<a x='",
                    b'<a x="',
                    b"<!--",
                    b"-->",
                    b"<script>",
                    b"</script>",
                    b"</",
                ),
                *(b"<title>", b"<meta charset=punycode>", b"<meta charset=utf-16>", b"<![", b"<td>", b"<pre>", *TEXT),
            ),
        ),
    ),
    "tsv": (Grammar(b"en\tde\n", b"", (b"a cat\t\n", b"\t", b"a\tb\tc\n", b'"', *ESCAPES, *TEXT)),),
    "csv": (Grammar(b"en,de\n", b"", (b"a cat,\n", b",", b'"', b'""', b'"a\nb",\n', b"\r", b"\r\n", *ESCAPES, *TEXT)),),
    "jsonl": (
        Grammar(
            b'{"source": "a"}\n', b"", (b'{"source": "a", "target": ""}\n', b'{"a":', b"[", b"]", b"}", b"1e9", *TEXT)
        ),
        Grammar(b'{"source": "', b'", "target": ""}\n', (*ESCAPES, *TEXT)),
        Grammar(b'{"source": "a"', b', "target": ""}\n', (b', "k": 1', b', "l": [[]]', b', "source": "b"', b" ")),
    ),
    "json": (
        Grammar(b'{"a": ["', b'"]}', (b'", "b', b"{{a}} ", b"$t(b) ", b"{a, plural, ", b"}", *ESCAPES, *TEXT)),
        Grammar(b'{"a": "b"', b"}", (b', "k": "a cat"', b', "l": ["b c"]', b', "m": {"n": "d e"}', b" ", b"[")),
    ),
    "srt": (
        Grammar(_CUE, b"\nend\n", (b"\n" + _CUE + b"a cat\n", b"7\n", b" --> ", b"<i>", b"</i>", b"{\\an8}", *TEXT)),
    ),
    "vtt": (
        Grammar(
            b"WEBVTT\n\n",
            b"\n",
            (b"00:01.000 --> 00:02.000\na cat\n\n", b"NOTE\n\n", b"<c.x>", b"<00:01.000>", b"&am", b"STYLE\n", *TEXT),
        ),
        Grammar(b"WEBVTT\n\n00:01.000 --> 00:02.000\na", b"\n", (b"<c.x>", b"</c>", b"&lt;", b"<b>c</b>", *TEXT)),
    ),
    "markdown": (
        Grammar(
            b"# T\n\n",
            b"\n",
            (
                *(b"a *b* c\n\n", b"[b](", b"](c)", b"`", b"```\n", b"> ", b"- ", b"|a|b|\n", b"|-|-|\n", b"**", b"_"),
                *(b"![", b"[a]: b\n", b"<b ", b"---\n", b"    ", b"{%", b"1. ", *ESCAPES, *TEXT),
            ),
        ),
    ),
    "properties": (
        Grammar(b"# c\n", b"\n", (b"k = v \\\n  w\n", b"=", b":", b"! c\n", b"\\\n", b"{0}", b"''", *ESCAPES, *TEXT)),
    ),
    "docx": (
        Grammar(
            _WORD,
            b"</w:body></w:document>",
            (b"<w:p>" + _RUN * 3 + b"</w:p>", b"<w:tbl><w:tr><w:tc><w:p/></w:tc></w:tr></w:tbl>", *XML, *BROKEN),
            _docx,
        ),
        Grammar(
            _WORD + b"<w:p><w:r><w:t>a b</w:t></w:r>",
            b"</w:p></w:body></w:document>",
            (
                *(_RUN, b"<w:r><w:tab/></w:r>", b"<w:r><w:t>d </w:t></w:r>", b"<w:bookmarkStart w:id='1'/>", *XML),
                *(b"<w:hyperlink>" + _RUN + b"</w:hyperlink>", b"<w:ins>" + _RUN + b"</w:ins>", *BROKEN),
            ),
            _docx,
        ),
    ),
}


def grown(format_name: str, number: int) -> Callable[[int], bytes]:
    """Return the function that makes a hostile document of about so many bytes, unpacked; the choice has a number."""
    chance = random.Random(f"{format_name}-{number}")
    grammar = chance.choice(GRAMMARS[format_name])
    chosen = [chance.choice(grammar.fragments) for _ in range(chance.choice((1, 1, 2, 3)))]
    takes_turns = chance.random() < 0.5

    def of_size(size: int) -> bytes:
        if takes_turns:
            unit = b"".join(chosen)
            middle = unit * max(1, size // len(unit))
        else:
            middle = b"".join(fragment * max(1, size // len(chosen) // len(fragment)) for fragment in chosen)
        return grammar.packed(grammar.start + middle + grammar.end)

    return of_size
