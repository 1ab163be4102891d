"""The inline parts of a Markdown paragraph with their offsets: emphasis, links, code, tags, escapes, line breaks.

markdown-it-py parses Markdown (CommonMark, tables and strikethrough) but keeps no offsets of inline parts. We wrap its
rules: a rule consumed the text between the parser's positions before and after it. Which delimiters are emphasis is
known only at the end of the paragraph, so their tokens are examined then.
"""

import html
import re
import string
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from transduce.documents.marked_text import Markup, Part, joined_texts, pair_tags, tagged_parts

# Code in running text that CommonMark does not know: footnotes, alerts, tasks, template tags, attributes.
_CODE = re.compile(
    r"\[\^[^\]\s]{1,60}+\]:?|\[![A-Z]{1,20}+\]|\[[ xX]\]|\{%[^{}]{1,200}+%\}|\{\{[^{}]{1,200}+\}\}|\{[#.][^{}]{1,80}+\}"
)
_MOST_SPACES = 100  # before a line break
_Rule = Callable[[StateInline, bool], bool]


class _Inline(NamedTuple):
    """A part of a paragraph that is not plain text, and its offsets."""

    start: int
    end: int
    kind: Literal["opens", "closes", "alone", "text"]
    written: str
    """The part as written; of the kind `text`, the character that it stands for."""


class MarkdownParser:
    """markdown-it-py with offsets of inline parts."""

    def __init__(self) -> None:
        self._markdown = MarkdownIt("commonmark").enable(["table", "strikethrough"])
        self._markdown.disable("inline")  # the rule that parses every paragraph; `parts` does it
        self.references: dict[str, Any] = {}
        self._inlines: list[_Inline] = []
        self._delimiters: dict[StateInline, list[tuple[Token, int]]] = {}
        self._found: dict[StateInline, list[_Inline]] = {}
        inline = self._markdown.inline
        for rule in inline.ruler.__rules__:
            inline.ruler.at(rule.name, self._recorded(rule.name, rule.fn), {"alt": rule.alt})
        inline.ruler2.before("fragments_join", "offsets", self._end_paragraph)

    def blocks(self, text: str, *, is_whole: bool) -> list[Token]:
        """Return the block tokens of a text; those of the whole document define its link references."""
        environment = self.references if is_whole else {"references": dict(self.references.get("references", {}))}
        return self._markdown.parse(text, environment)

    def parts(self, paragraph: str) -> list[Part]:
        """Return the text and the markup of a paragraph; a soft line break is a space."""
        self._markdown.inline.parse(paragraph, self._markdown, self.references, [])
        parts: list[Part] = []
        done = 0
        for number, inline in enumerate(sorted(self._inlines)):
            parts.append(paragraph[done : inline.start])
            done = inline.end
            if inline.kind == "text":
                parts.append(inline.written)
            elif inline.kind == "opens":
                parts.append(Markup(f'<g id="{number}">', inline.written, "opens", str(number)))
            elif inline.kind == "closes":
                parts.append(Markup("</g>", inline.written, "closes"))
            else:
                parts.append(Markup(f'<x id="{number}"/>', inline.written, "alone"))
        parts.append(paragraph[done:])
        assert pair_tags(parts), "emphasis and links nest"
        return _with_code(joined_texts(parts))

    def _recorded(self, name: str, rule: _Rule) -> _Rule:
        def recorded(state: StateInline, silent: bool) -> bool:
            start = state.pos
            label_end = -1
            if name == "link" and not silent and state.src[start] == "[":
                label_end = state.md.helpers.parseLinkLabel(state, start, True)
            if not rule(state, silent):
                return False
            if not silent:
                self._record(name, state, start, label_end)
            return True

        return recorded

    def _record(self, name: str, state: StateInline, start: int, label_end: int) -> None:
        """Record what a rule consumed: the text from `start` to the parser's position."""
        found = self._found.setdefault(state, [])
        end = state.pos
        raw = state.src[start:end]
        if name in ("backticks", "autolink", "html_inline", "image") and state.tokens:
            if name != "backticks" or state.tokens[-1].type == "code_inline":  # else a run of backticks is text
                found.append(_Inline(start, end, "alone", raw))
        elif name == "link":
            closing = state.src[label_end:end]
            if closing in ("]", "][]"):  # the label is its own reference: keep it beside the translated text
                closing = f"][{state.src[start + 1 : label_end]}]"
            found += [_Inline(start, start + 1, "opens", "["), _Inline(label_end, end, "closes", closing)]
        elif name in ("newline", "escape") and raw != "\\":
            if "\n" in raw and state.tokens[-1].type == "hardbreak":
                before = state.src[max(0, start - _MOST_SPACES) : start]
                start -= len(before) - len(before.rstrip(" "))
                found.append(_Inline(start, end, "alone", state.src[start:end]))
            elif name == "newline":
                found.append(_Inline(start, end, "text", " "))
            elif raw[1] in string.punctuation:
                found.append(_Inline(start, end, "text", raw[1:]))
        elif name == "entity":
            found.append(_Inline(start, end, "text", html.unescape(raw)))
        elif name in ("emphasis", "strikethrough"):
            position = end
            for token in reversed(state.tokens):
                if position <= start:
                    break
                position -= len(token.content)
                self._delimiters.setdefault(state, []).append((token, position))

    def _end_paragraph(self, state: StateInline) -> None:
        """Record the delimiters that turned out to be emphasis; `**` was two tokens, of which one is now empty."""
        found = self._found.pop(state, [])
        for token, start in self._delimiters.pop(state, []):
            if token.type == "text":
                continue
            size = len(token.markup)
            first = start - size + 1 if token.nesting > 0 and token.markup in ("**", "__") else start
            found.append(_Inline(first, first + size, "opens" if token.nesting > 0 else "closes", token.markup))
        self._inlines = found


def _with_code(parts: list[Part]) -> list[Part]:
    found: list[Part] = []
    for number, part in enumerate(parts):
        if isinstance(part, Markup) or not _CODE.search(part):
            found.append(part)
            continue
        for inner, piece in enumerate(tagged_parts(part, _CODE)):
            text = f'<x id="{number}.{inner}"/>'
            found.append(piece if isinstance(piece, str) else Markup(text, piece.raw, "alone"))
    return found
