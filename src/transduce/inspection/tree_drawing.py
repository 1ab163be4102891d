"""Drawings of trees: indented lines, an SVG, and a page of several trees. Words of the user are escaped."""

from collections.abc import Iterable
from html import escape

from transduce.text.trees import Tree

_CHARACTER, _GAP, _LEVEL, _MARGIN = 8.0, 14.0, 44.0, 16.0  # pixels: of a letter, between leaves, of a level, around
_STYLE = "text{font:14px ui-monospace,monospace;text-anchor:middle;fill:#222}.label{fill:#0b5cad}path{stroke:#999}"
_PAGE_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;margin:1rem;background:#fdfdfb;color:#1d1f21}div{overflow-x:auto}"
    "h1{font-size:1.35rem;overflow-wrap:anywhere}section{border-top:1px solid #999}"
    # In the dark, the colours inside the drawings give way: these selectors are more specific.
    "@media(prefers-color-scheme:dark){body{background:#15171a;color:#e6e6e3}svg text{fill:#e6e6e3}"
    "svg .label{fill:#6cb3f5}}"
)


def indented_lines(tree: Tree) -> str:
    """Return the tree with a bracket a line, and the leaves under a bracket on its line where it has nothing else."""
    lines: list[str] = []

    def write(node: Tree, depth: int) -> None:
        if node.word is not None or all(child.word is not None for child in node.children):
            lines.append("  " * depth + node.brackets())
            return
        lines.append("  " * depth + f"({node.label}")
        for child in node.children:
            write(child, depth + 1)
        lines[-1] += ")"

    write(tree, 0)
    return "\n".join(lines)


def svg_of(tree: Tree) -> str:
    """Return the tree as an SVG: words in a row at the bottom, each bracket in the middle above its parts."""
    marks: list[str] = []
    levels = _depth(tree)
    right = _MARGIN

    def text(x: float, level: int, content: str, kind: str) -> None:
        marks.append(
            f'<text class="{kind}" x="{x:.1f}" y="{_MARGIN + 14 + level * _LEVEL:.1f}">{escape(content)}</text>'
        )

    def edge(x: float, level: int, child: float, child_level: int) -> None:
        top, bottom = _MARGIN + 19 + level * _LEVEL, _MARGIN + child_level * _LEVEL
        marks.append(f'<path d="M{x:.1f} {top:.1f}L{child:.1f} {bottom:.1f}"/>')

    def draw(node: Tree, level: int) -> float:
        nonlocal right
        if node.word is not None:
            width = _CHARACTER * max(len(node.label), len(node.word)) + _GAP
            x, right = right + width / 2, right + width
            text(x, levels, node.word, "word")
            edge(x, level, x, levels)
        else:
            children = [draw(child, level + 1) for child in node.children]
            x = (children[0] + children[-1]) / 2
            for child in children:
                edge(x, level, child, level + 1)
        text(x, level, node.label, "label")
        return x

    draw(tree, 0)
    width, height = right + _MARGIN, 2 * _MARGIN + 20 + levels * _LEVEL
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{_STYLE}</style>{"".join(marks)}</svg>'


def page_of(trees: Iterable[Tree], *, title: str) -> str:
    """Return a page that shows the trees below each other; it needs no network."""
    parts = [
        f'<section><p>{escape(" ".join(tree.words()))}</p><div tabindex="0" role="region" '
        f'aria-label="tree of sentence {number}">{svg_of(tree)}</div></section>'
        for number, tree in enumerate(trees, start=1)
    ]
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><title>{escape(title)}</title><style>{_PAGE_STYLE}</style>'
    )
    said = "Each label names a phrase and stands above its parts; the words are at the bottom. XX stands for any word."
    body = f"<main><h1>{escape(title)}</h1><p>{said}</p>{''.join(parts)}</main>"
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{body}</body></html>\n'


def _depth(tree: Tree) -> int:
    """Return how many levels lie between the root and the row of words."""
    return 1 if tree.word is not None else 1 + max(_depth(child) for child in tree.children)
