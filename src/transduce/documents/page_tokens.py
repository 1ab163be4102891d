"""HTML tokenizer with byte offsets; it cuts a page as a browser does (HTML standard), in linear time.

The tokenizer never looks at a byte twice: a construct that lacks its end, such as a comment or a quoted attribute,
reaches to the end of the page, as in a browser, and is not searched for again. The standard library's HTMLParser does
search again, in quadratic time.

Departures: the content of a script is cut at the first `</script`, also after `<!--<script>`; `<b/>` is one tag alone,
as in XHTML; `<![CDATA[` is a comment in SVG too.
"""

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

_MARKUP = re.compile(rb"<(?=[a-zA-Z/!?])")
_NAME = re.compile(rb"[a-zA-Z][^ \t\r\n\f/>]*+")
_ATTRIBUTE = re.compile(rb"[ \t\r\n\f/]*+(?:([^ \t\r\n\f/>][^ \t\r\n\f/>=]*+)[ \t\r\n\f]*+(=[ \t\r\n\f]*+)?)?")
_UNQUOTED = re.compile(rb"[^ \t\r\n\f>]*+")
_COMMENT_END = re.compile(rb"--!?>")
# Elements whose content has no tags. The content of _TEXT_ONLY is text for readers, that of _RAW is not.
_TEXT_ONLY = frozenset([b"title", b"textarea"])
_RAW = frozenset([b"script", b"style", b"xmp", b"iframe", b"noembed", b"noframes"])


class PageToken(NamedTuple):
    """A tag, a comment or a run of text, and its offsets in the page."""

    kind: Literal["text", "opens", "closes", "alone", "comment", "other"]
    start: int
    end: int
    name: str = ""
    is_kept: bool = False
    """Whether the tag says translate="no"."""


def page_tokens(page: bytes) -> Iterator[PageToken]:
    """Yield the tokens of a page in order; joined, they are the page."""
    position = 0
    while position < len(page):
        markup = _MARKUP.search(page, position)
        start = markup.start() if markup else len(page)
        if position < start:
            yield PageToken("text", position, start)
        if start == len(page):
            return
        token = _tag_at(page, start) or _other_at(page, start)
        yield token
        position = token.end
        if token.kind == "opens" and (raw := token.name.encode()) in _TEXT_ONLY | _RAW:
            closing = re.compile(rb"</" + raw + rb"(?=[ \t\r\n\f/>])", re.IGNORECASE).search(page, position)
            end = closing.start() if closing else len(page)
            if position < end:
                yield PageToken("text" if raw in _TEXT_ONLY else "other", position, end)
            position = end


def _tag_at(page: bytes, start: int) -> PageToken | None:
    """Return the tag that begins at `start`, or None; a tag without an end extends to the end of the page."""
    is_closing = page[start + 1 : start + 2] == b"/"
    name = _NAME.match(page, start + 1 + is_closing)
    if name is None:
        return None
    position = name.end()
    is_kept = False
    while attribute := _ATTRIBUTE.match(page, position):
        position = attribute.end()
        following = page[position : position + 1]
        if attribute[2] is not None and following in (b'"', b"'"):
            value, position = position + 1, page.find(following, position + 1)
            if position < 0:
                break
            is_kept |= attribute[1].lower() == b"translate" and page[value:position].lower() == b"no"
            position += 1
        elif attribute[2] is not None and (unquoted := _UNQUOTED.match(page, position)):
            is_kept |= attribute[1].lower() == b"translate" and unquoted[0].lower() == b"no"
            position = unquoted.end()
        elif following == b">":
            is_alone = attribute[0].endswith(b"/")
            kind: Literal["opens", "closes", "alone"] = "closes" if is_closing else "alone" if is_alone else "opens"
            return PageToken(kind, start, position + 1, name[0].decode("utf-8").lower(), is_kept)
        elif not following:
            break
    return PageToken("other", start, len(page))


def _other_at(page: bytes, start: int) -> PageToken:
    """Return the comment, declaration or processing instruction that begins at `start`."""
    if page.startswith(b"<!--", start):
        if page.startswith((b"<!-->", b"<!--->"), start):
            return PageToken("comment", start, page.index(b">", start) + 1)
        ending = _COMMENT_END.search(page, start + 4)
        return PageToken("comment", start, ending.end() if ending else len(page))
    is_other = page[start + 1 : start + 2] == b"?" or page[start + 2 : start + 9].lower() == b"doctype"
    end = page.find(b">", start) + 1
    return PageToken("other" if is_other else "comment", start, end or len(page))
