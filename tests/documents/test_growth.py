"""The time and memory of every parser grow in proportion to its input, also for hostile shapes."""

from collections.abc import Callable

import pytest
from tests.documents.growth import require_linear_growth

PO = b'msgid ""\nmsgstr "Language: de\\n"\n\n'
SHAPES: dict[str, dict[str, Callable[[int], bytes]]] = {
    "po": {
        "a long line of spaces": lambda n: PO + b'msgid "a"\nmsgstr ""\n' + b" " * n,
        "spaces after a keyword": lambda n: PO + b'msgid "a"\nmsgstr' + b" " * n,
        "lines of one string": lambda n: PO + b'msgid ""\n' + b'"a"\n' * n + b'msgstr ""\n',
        "lines of comments": lambda n: PO + b"#  a\n" * n + b'msgid "a"\nmsgstr ""\n',
        "lines of places": lambda n: PO + b"#: a:1\n" * n + b'msgid "a"\nmsgstr ""\n',
        "backslashes": lambda n: PO + b'msgid "' + b"\\" * 2 * n + b'"\nmsgstr ""\n',
        "entries": lambda n: PO + b"".join(b'msgid "a%d"\nmsgstr ""\n\n' % k for k in range(n // 8)),
    },
    "tmx": {
        "many names before many units": lambda n: (
            b"<tmx><body>"
            + b"".join(b"<e%d/>" % k for k in range(n // 8))
            + b"<tu><tuv xml:lang='en'><seg>a</seg></tuv></tu>" * (n // 8)
            + b"</body></tmx>"
        ),
        "lines of one segment": lambda n: (
            b"<tmx><body><tu><tuv xml:lang='en'><seg>" + b"a\n" * n + b"</seg></tuv></tu></body></tmx>"
        ),
        "variants": lambda n: (
            b"<tmx><body><tu>" + b"<tuv xml:lang='en'><seg>a</seg></tuv>" * (n // 4) + b"</tu></body></tmx>"
        ),
        "tags": lambda n: (
            b"<tmx><body><tu><tuv xml:lang='en'><seg>a"
            + b"<bpt i='1'/>b<ept i='1'/>" * (n // 4)
            + b"</seg></tuv></tu></body></tmx>"
        ),
    },
    "xliff": {
        "attributes of a file": lambda n: (
            b"<xliff version='1.2'><file source-language='en' "
            + b"".join(b"a%d='' " % k for k in range(n // 8))
            + b">"
            + b"<trans-unit><source>a</source></trans-unit>" * (n // 8)
            + b"</file></xliff>"
        ),
    },
    "tsv": {
        "columns": lambda n: b"en\tde" + b"\t" * n,
        "rows of many columns": lambda n: b"en\tde\n" + (b"a\t" + b"\t" * 900 + b"\n") * (n // 900),
        "rows": lambda n: b"a\t\n" * n,
    },
    "csv": {
        "columns": lambda n: b"en,de" + b"," * n,
        "unclosed quotes": lambda n: b'en,de\na,"' + b'""' * n,
        "quotes": lambda n: b'en,de\n"' + b'""' * n + b'",\n',
        "rows": lambda n: b'"a",\n' * n,
        "carriage returns": lambda n: b"en,de\n" + b"\r" * n,
    },
    "json": {
        "strings": lambda n: b"[" + b'"a b",' * n + b'""]',
        "nesting": lambda n: b"[" * n,
        "backslashes": lambda n: b'{"a": "' + b"\\\\" * n + b'"}',
        "unclosed string": lambda n: b'"\\"' * n,
        "tags": lambda n: b'["a' + b"<b>c</b>" * (n // 4) + b'"]',
        "braces": lambda n: b'["a' + b"{a, " * n + b'"]',
        "references": lambda n: b'["a' + b"$t(" * n + b'"]',
    },
    "jsonl": {
        "members": lambda n: b'{"source": "a"' + b', "k": 1' * n + b"}",
        "lines": lambda n: b'{"source": "a", "target": ""}\n' * (n // 4),
    },
    "markdown": {
        "paragraphs": lambda n: b"a *b* c\n\n" * (n // 8),
        "lines of one paragraph": lambda n: b"a\n" * n,
        "emphasis": lambda n: b"a" + b" *b" * n,
        "brackets": lambda n: b"a" + b"[" * n,
        "links": lambda n: b"a" + b"[b](" * n,
        "backticks": lambda n: b"a" + b"".join(b"`" * k + b" " for k in range(int(n**0.5))),
        "angles": lambda n: b"a" + b"<b " * n,
        "quotes": lambda n: b">" * n + b"a",
        "lists": lambda n: b"- " * n + b"a",
        "cells": lambda n: b"|a|b|\n|-|-|\n" + b"|c|d|\n" * (n // 8),
        "spaces": lambda n: b"a" + b" " * n + b"\nb",
        "front matter": lambda n: b"---\n" + b"--- \x0b\n" * n,
        "definitions": lambda n: b"[a]: b\n" * n + b"[a]",
        "code": lambda n: b"a" + b"{%" * n,
    },
    "properties": {
        "backslashes": lambda n: b"a=" + b"\\" * n,
        "spaces": lambda n: b"a" + b" " * n,
        "continuations": lambda n: b"a=b" + b"\\\n " * n,
        "values": lambda n: "a=ä b\n".encode() * n,
        "keys": lambda n: b"\\" * n,
    },
    "srt": {
        "cues": lambda n: b"1\n00:00:01,000 --> 00:00:02,000\na b\n\n" * (n // 4),
        "lines of one cue": lambda n: b"00:00:01,000 --> 00:00:02,000\n" + b"a\n" * n,
        "long line": lambda n: b"00:00:01,000 --> 00:00:02,000\nb\n" + b"a " * n,
        "long word": lambda n: b"00:00:01,000 --> 00:00:02,000\nb\n" + b"a" * n,
        "tags": lambda n: b"00:00:01,000 --> 00:00:02,000\na" + b"<i>b</i>" * (n // 4),
        "times": lambda n: b"1" * n + b" " * n,
        "spaces in times": lambda n: b"00:00:01,000" + b" " * n + b"-->" + b" " * n,
    },
    "vtt": {
        "notes": lambda n: b"WEBVTT\n\n" + b"NOTE\n\n" * n,
        "ampersands": lambda n: b"WEBVTT\n\n00:01.000 --> 00:02.000\na" + b"&am" * n,
    },
}
CASES = [(name, shape) for name, shapes in SHAPES.items() for shape in shapes]


@pytest.mark.parametrize(("format_name", "shape"), CASES, ids=[f"{name}: {shape}" for name, shape in CASES])
def test_time_and_memory_grow_with_the_size(format_name: str, shape: str) -> None:
    require_linear_growth(format_name, SHAPES[format_name][shape])
