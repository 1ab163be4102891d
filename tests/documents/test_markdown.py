"""Markdown: words change, markup stays around the right ones, everything else is untouched."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from transduce.documents.filling import FillingReport

Fill = Callable[..., tuple[bytes, FillingReport]]

PIECES = [
    *(
        "word",
        " ",
        "\n",
        "\n\n",
        "*",
        "**",
        "_",
        "`",
        "[",
        "]",
        "(",
        ")",
        "](x)",
        "<b>",
        "</b>",
        "\\",
        "# ",
        "- ",
        "> ",
    ),
    *(
        "1. ",
        "|",
        "---",
        "ü",
        "&amp;",
        "&",
        "  \n",
        "![",
        "~~",
        "    ",
        "```\n",
        "<https://a.b>",
        "[x]: /y\n",
        "\t",
        "$",
    ),
]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("# a title #\n\nsome words\n", "# A TITLE #\n\nSOME WORDS\n"),
        ("a title\n===\n", "A TITLE\n===\n"),
        ("see *this* and **that** ~~not~~ now", "SEE *THIS* AND **THAT** ~~NOT~~ NOW"),
        ("***both*** are __here__ a_b_c", "***BOTH*** ARE __HERE__ A_B_C"),
        ("run `ls -l` or ``a ` b`` now", "RUN `ls -l` OR ``a ` b`` NOW"),
        ('go [to it](http://x.y/z_a_b "a title") now', 'GO [TO IT](http://x.y/z_a_b "a title") NOW'),
        ("go [to *it*][ref] now\n\n[ref]: /path 'kept'\n", "GO [TO *IT*][ref] NOW\n\n[ref]: /path 'kept'\n"),
        ("go [to it] now\n\n[to it]: /path\n", "GO [TO IT][to it] NOW\n\n[to it]: /path\n"),
        (
            "an ![alt text](a.png) here <br> and <https://x.y/> x",
            "AN ![alt text](a.png) HERE <br> AND <https://x.y/> X",
        ),
        ("- one\n- two\n  more\n\n  1. three\n", "- ONE\n- TWO\n  MORE\n\n  1. THREE\n"),
        ("> quoted words\n> go on\n\n> > twice", "> QUOTED WORDS\n> GO ON\n\n> > TWICE"),
        ("```python\ncode = 1\n```\n\n    indented\n\nword", "```python\ncode = 1\n```\n\n    indented\n\nWORD"),
        ("<div>\nkept html\n</div>\n\nword", "<div>\nkept html\n</div>\n\nWORD"),
        ("---\ntitle: kept\n---\n\nword\n", "---\ntitle: kept\n---\n\nWORD\n"),
        ("+++\r\ntitle = 'kept'\r\n+++\r\nword\r\n", "+++\r\ntitle = 'kept'\r\n+++\r\nWORD\r\n"),
        ("| one | two |\n|:--|---|\n| `a` | b c |\n", "| ONE | TWO |\n|:--|---|\n| `a` | B C |\n"),
        ("one  \ntwo\\\nthree", "ONE  \nTWO\\\nTHREE"),
        ("one\r\ntwo\r\n", "ONE\r\nTWO\r\n"),
        (r"not \*emphasis\* here &amp; \q", r"NOT \*EMPHASIS\* HERE \& \\Q"),
        ("- [ ] a task\n- [x] done[^1]\n\n[^1]: a note here\n", "- [ ] A TASK\n- [x] DONE[^1]\n\n[^1]: A NOTE HERE\n"),
        ("use {{name}} and https://example.org/a_b_c", "USE {{name}} AND https://example.org/a_b_c"),
        ("12 — 34\n\n***\n", "12 — 34\n\n***\n"),
    ],
)
def test_only_words_change(fill: Fill, before: str, after: str) -> None:
    content, report = fill("x.md", before)
    assert report.left == []
    assert content.decode() == after


@pytest.mark.parametrize(
    ("translation", "written"),
    [
        ("3. oktober", r"3\. oktober"),
        ("# kein titel", r"\# kein titel"),
        ("- keine liste", r"\- keine liste"),
        ("ein *stern* <b>", r"ein \*stern\* \<b\>"),
        ("nichts [besonderes] & a_b", "nichts [besonderes] & a_b"),
        ("zwei\n\nabsätze", "zwei absätze"),
    ],
)
def test_a_translation_stays_the_paragraph_that_it_was(fill: Fill, translation: str, written: str) -> None:
    content, _ = fill("x.md", "before\n\nword\n\nafter\n", answer=lambda text: translation if text == "word" else text)
    assert content.decode() == f"before\n\n{written}\n\nafter\n"


def test_a_long_paragraph_is_broken_at_the_width_it_had(fill: Fill) -> None:
    before = "> " + "\n> ".join(["some words in a line of forty characters"] * 4) + "\n"
    content, _ = fill("x.md", before, answer=lambda text: text + " and 1. more" * 6)
    lines = content.decode().rstrip("\n").split("\n")
    assert len(lines) > 4
    assert all(line.startswith("> ") and len(line) <= 42 for line in lines)
    assert MarkdownIt().parse(content.decode())[2].content.replace("\n", " ").endswith("and 1. more")


def test_pipes_in_cells_stay_escaped(fill: Fill) -> None:
    content, report = fill("x.md", "| a \\| b | b |\n|---|---|\n| `c\\|d` e | d |\n")
    assert content.decode() == "| A \\| B | B |\n|---|---|\n| `c\\|d` E | D |\n"
    assert report.left == []


def outline(text: str) -> list[Any]:
    """Return the structure of a document as CommonMark readers see it, and its words without spaces."""
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
    inner = [child for token in tokens for child in (token.children or [token])]
    words = "".join("".join(token.content.split()) for token in inner)
    kinds = [token.type for token in inner if token.type not in ("text", "softbreak", "text_special")]
    return [kinds, words, [token.attrs for token in inner if token.attrs]]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(st.lists(st.sampled_from(PIECES), max_size=25))
def test_a_model_that_changes_nothing_changes_nothing_that_a_reader_sees(fill: Fill, pieces: list[str]) -> None:
    text = "".join(pieces)
    content, _ = fill("x.md", text, answer=lambda text: text)
    assert outline(content.decode()) == outline(text)
