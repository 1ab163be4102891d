"""Tokens of a page: together they are the page, they are what the HTML standard says, and time grows with its size."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.documents.growth import require_linear_growth

from transduce.documents.page_tokens import page_tokens

PIECES = [
    *("<", ">", "/", "!", "--", "-", "=", "'", '"', " ", "\n", "a", "B", "ü", "&lt;", "?", "[CDATA[", "]]>", "<!--"),
    *("-->", "<p>", "</p>", "<a x='", '<a x="', "<title>", "</title>", "<script>", "</SCRIPT >", "<!doctype", "<b/>"),
]


def shown(page: str) -> list[str]:
    """Return the tokens as `kind name: text`."""
    content = page.encode()
    return [
        f"{token.kind} {token.name}: {content[token.start : token.end].decode()}".replace(" :", ":")
        for token in page_tokens(content)
    ]


@pytest.mark.parametrize(
    ("page", "tokens"),
    [
        ("a<b>c</b >", ["text: a", "opens b: <b>", "text: c", "closes b: </b >"]),
        ("1 < 2 <3", ["text: 1 < 2 <3"]),
        ("""<a b='>' c=">" d=x/>t""", ["""opens a: <a b='>' c=">" d=x/>""", "text: t"]),
        ("<br/><br />", ["alone br: <br/>", "alone br: <br />"]),
        ("<!-- a > b --!>c", ["comment: <!-- a > b --!>", "text: c"]),
        ("<!-->a<!--->b", ["comment: <!-->", "text: a", "comment: <!--->", "text: b"]),
        ("<!DOCTYPE html>\n<?xml?>", ["other: <!DOCTYPE html>", "text: \n", "other: <?xml?>"]),
        ("a</ b>c</>", ["text: a", "comment: </ b>", "text: c", "comment: </>"]),
        ("<Title>a <b> c</tiTLE>", ["opens title: <Title>", "text: a <b> c", "closes title: </tiTLE>"]),
        ("<script>'</b>'</script>", ["opens script: <script>", "other: '</b>'", "closes script: </script>"]),
        ("<style>a</styles>", ["opens style: <style>", "other: a</styles>"]),
        ("a<b c='d", ["text: a", "other: <b c='d"]),
        ("a<!-- b", ["text: a", "comment: <!-- b"]),
    ],
)
def test_tokens_are_those_of_the_standard(page: str, tokens: list[str]) -> None:
    assert shown(page) == tokens


@pytest.mark.parametrize(
    ("tag", "is_kept"), [("<p translate=no>", True), ("<p TRANSLATE = 'No' a>", True), ("<p>", False)]
)
def test_elements_that_are_not_to_be_translated(tag: str, is_kept: bool) -> None:
    (token,) = page_tokens(tag.encode())
    assert token.is_kept is is_kept


@given(st.lists(st.sampled_from(PIECES)))
def test_the_tokens_are_the_page(pieces: list[str]) -> None:
    page = "".join(pieces).encode()
    tokens = list(page_tokens(page))
    assert b"".join(page[token.start : token.end] for token in tokens) == page
    assert all(token.start < token.end for token in tokens)


@pytest.mark.parametrize(
    "shape",
    [
        lambda n: b"<a " * n,
        lambda n: b"<a x='" * n,
        lambda n: b"<!--" * n,
        lambda n: b"<![" * n,
        lambda n: b"<script>" * n,
        lambda n: b"<title></b>" * n,
        lambda n: b"</" * n,
        lambda n: b"<a" + b" a" * n,
        lambda n: b"<b>" * n + b"x",
        lambda n: b"<img>" * n + b"x",
        lambda n: b"x" + b"<b>x</b>" * n,
        lambda n: b"x" + b"<b>" * n + b"x" + b"</b>" * n + b"x",
        lambda n: b"<p>x" + b" " * n + b"<b>y</b>",
        lambda n: b"<code>" * n + b"x",
        lambda n: b"&am" * n,
    ],
)
def test_time_and_memory_grow_with_the_page(shape: Callable[[int], bytes]) -> None:
    require_linear_growth("html", shape)
