"""HTML: words change, tags stay around the right ones, everything else is untouched."""

import html
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from transduce.documents.filling import FillingReport

PIECES = [
    *("<p>", "</p>", "<b>", "</b>", "word", "&amp;", "&", "<", "<br>", "<!--", "-->", "<script>", "</script>", "ü"),
    *(
        "<a href='<'>",
        "</a>",
        "<img>",
        "<![CDATA[",
        "<?",
        "&#x41;",
        '"',
        "</",
        "<title>",
        "</title>",
        "<code>",
        " ",
        "\n",
    ),
]
Fill = Callable[..., tuple[bytes, FillingReport]]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("<p>one two</p>", "<p>ONE TWO</p>"),
        (
            '<p class="a b">see <a href="x?a=1&b=2">this</a> now</p>',
            '<p class="a b">SEE <a href="x?a=1&b=2">THIS</a> NOW</p>',
        ),
        ("<ul>\n  <li> one\n    two </li>\n</ul>", "<ul>\n  <li> ONE TWO </li>\n</ul>"),
        ("<p>a &amp; b &lt; ü<br>next</p>", "<p>A &amp; B &lt; Ü<br>NEXT</p>"),
        ("<p><b>all of it</b></p>", "<p><b>ALL OF IT</b></p>"),
        ("<p>run <code>ls -l</code> now</p>", "<p>RUN <code>ls -l</code> NOW</p>"),
        ("<p>an <img src='a.png' alt=word> here<!-- c --></p>", "<p>AN <img src='a.png' alt=word> HERE<!-- c --></p>"),
        ('<p translate="no">kept <i>so</i></p>', '<p translate="no">kept <i>so</i></p>'),
        ('<p>say <span translate="no">Acme</span> now</p>', '<p>SAY <span translate="no">Acme</span> NOW</p>'),
        ("<script>if (a < b) { alert('word') }</script>text", "<script>if (a < b) { alert('word') }</script>TEXT"),
        (
            "<style>p { color: red }</style><pre>kept as is</pre>",
            "<style>p { color: red }</style><pre>kept as is</pre>",
        ),
        (
            "<!DOCTYPE html>\n<html lang=en><body>word</body></html>\n",
            "<!DOCTYPE html>\n<html lang=en><body>WORD</body></html>\n",
        ),
        ("<p>12 — 34</p>", "<p>12 — 34</p>"),
        ("<p>one <![unknown[two]]> three</p>", "<p>ONE <![unknown[two]]> THREE</p>"),
        ("<p>one</p><![ü", "<p>ONE</p><![ü"),
    ],
)
def test_only_words_change(fill: Fill, before: str, after: str) -> None:
    content, report = fill("x.html", before)
    assert content.decode() == after
    assert report.left == []


def test_the_title_is_translated_and_the_rest_of_the_head_is_not(fill: Fill) -> None:
    page = '<head><title>a word</title><meta name="description" content="words"></head><h1>a</h1>'
    assert fill("x.html", page)[0].decode() == page.replace("a word", "A WORD").replace("<h1>a", "<h1>A")


@pytest.mark.parametrize("page", ["<p>one <b>two</p><p>x</b></p>", "<p>one <b><i>two</b></i></p>"])
def test_tags_that_are_not_closed_are_reported_and_left(fill: Fill, page: str) -> None:
    content, report = fill("x.html", page)
    assert content.decode() == page
    assert {why for _, why, _ in report.left} == {"its tags are not closed within it"}


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda text: "".join(char for char in text if ord(char) < 0xFDD0), "got lost"),
        (lambda text: text + text[-3:], "is repeated"),
        (lambda text: text[::-1], "closes a tag that is not open"),
    ],
)
def test_tags_that_do_not_come_back_are_reported_and_the_segment_left(
    fill: Fill, answer: Callable[[str], str], reason: str
) -> None:
    page = "<p>go <b>there</b></p>\n<p>see <i>it</i>s <u>end</u>s</p>"
    content, report = fill("x.html", page, answer=answer)
    assert any(reason in why for _, why, _ in report.left)
    for where, _, _ in report.left:
        line = int(where.rpartition(":")[2]) - 1
        assert content.decode().split("\n")[line] == page.split("\n")[line]


def test_words_may_change_places_and_take_their_tags_with_them(fill: Fill) -> None:
    def swap(text: str) -> str:
        first, second = text.split(" ")
        return f"{second} {first}"

    content, _ = fill("x.html", "<p><b>red</b> <i>car</i></p>", answer=swap)
    assert content == b"<p><i>car</i> <b>red</b></p>"


def test_the_encoding_is_what_the_page_says(fill: Fill) -> None:
    page = '<meta charset="iso-8859-1"><p>größe</p>'
    content, _ = fill("x.html", page.encode("latin-1"), answer=lambda text: text.upper() + "Ω")
    assert content == '<meta charset="iso-8859-1"><p>GRÖSSE&#937;</p>'.encode("latin-1")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(PIECES)))
def test_a_model_that_changes_nothing_changes_at_most_how_characters_and_spaces_are_written(
    fill: Fill, pieces: list[str]
) -> None:
    page = "".join(pieces)
    content, _ = fill("x.html", page, answer=lambda text: text)
    assert "".join(html.unescape(content.decode()).split()) == "".join(html.unescape(page).split())
