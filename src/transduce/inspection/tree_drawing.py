"""Drawings of trees: indented lines, an SVG, and a page of several trees. Words of the user are escaped."""

from collections.abc import Iterable, Sequence
from html import escape

from transduce.text.trees import Tree

_CHARACTER, _GAP, _LEVEL, _MARGIN = 8.0, 14.0, 44.0, 16.0  # pixels: of a letter, between leaves, of a level, around
_STYLE = "text{font:14px ui-monospace,monospace;text-anchor:middle;fill:#222}.label{fill:#0b5cad}path{stroke:#999}"


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
    parts: Sequence[str] = [
        f"<section><p>{escape(' '.join(tree.words()))}</p><div>{svg_of(tree)}</div></section>" for tree in trees
    ]
    style = "body{font-family:system-ui;margin:2rem}div{overflow-x:auto}section{border-top:1px solid #ddd}"
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{style}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>\n'


def _depth(tree: Tree) -> int:
    """Return how many levels lie between the root and the row of words."""
    return 1 if tree.word is not None else 1 + max(_depth(child) for child in tree.children)
