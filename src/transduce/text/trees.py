"""Constituency trees: brackets, and the linear form in which a network writes them (section 6.3).

    (TOP (S (NP (DT the) (NN cat)) (VP (VBZ sits)) (. .)))     a tree; a leaf is a tag and a word
    the cat sits .                                             its words, the source
    (S (NP XX XX )NP (VP XX )VP XX )S                          its symbols, the target

as in "Grammar as a Foreign Language" (Vinyals et al. 2015), which the paper follows: a symbol opens a bracket, closes
one, or stands for a word. For a word it is XX, or its tag if tags are kept. The root is not written.

Nothing here recurses without bound: a tree is at most `DEEPEST` brackets deep.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from transduce.errors import DataError

DEEPEST = 200
"""The most brackets inside each other."""
ROOT, WORD_SLOT, EMPTY = "TOP", "XX", "-NONE-"
TreePart = Literal["tags", "functions", "empty"]
"""What the linear form may keep: the tags of words, the functions of labels (NP-SBJ), empty elements (-NONE-)."""

_ROOTS = ("", "TOP", "ROOT", "S1", "VROOT")
_FUNCTION = re.compile("(?<=.)[-=|].*")
_TOKEN = re.compile("[()]|[^() \t\r\n]+")
_WORD = re.compile("[^ \t\r\n]+")
_PARENTHESES = {"-LRB-": "(", "-RRB-": ")"}


@dataclass(frozen=True)
class Tree:
    """A leaf, which has a word and a tag as its label, or a bracket, which has children."""

    label: str
    children: tuple["Tree", ...] = ()
    word: str | None = None

    def brackets(self) -> str:
        """Return the tree on one line, with parentheses in words as -LRB- and -RRB-."""
        if self.word is not None:
            escaped = self.word.replace("(", "-LRB-").replace(")", "-RRB-")
            return f"({self.label} {escaped})"
        return f"({self.label} {' '.join([child.brackets() for child in self.children])})"

    def leaves(self) -> list["Tree"]:
        """Return the leaves from left to right."""
        return [self] if self.word is not None else [leaf for child in self.children for leaf in child.leaves()]

    def words(self) -> list[str]:
        """Return the words from left to right."""
        return [leaf.word or "" for leaf in self.leaves()]


def words_of(line: str) -> list[str]:
    """Return the words of a line as trees have them: only plain spaces and tabs separate words."""
    return _WORD.findall(line)


def read_trees(lines: Iterable[str], *, name: str) -> Iterator[tuple[int, Tree]]:
    """Yield the trees of a bracketed text, each with the line where it begins; a tree may span lines.

    Errors say `name` and the line.
    """
    open_brackets: list[tuple[str | None, list[Tree]]] = []
    first, number, word = 0, 0, None
    for number, line in enumerate(lines, start=1):
        for token in _TOKEN.findall(line):
            place = f"{name}:{number}"
            if token == "(":
                first = first if open_brackets else number
                if word is not None or len(open_brackets) >= DEEPEST:
                    fault = f"more than {DEEPEST} brackets deep" if word is None else f"the word {word!r} has brackets"
                    raise DataError(f"{place}: {fault} inside. Fix the tree, or leave it out.")
                open_brackets.append((None, []))
            elif not open_brackets:
                raise DataError(f"{place}: {token!r} is outside of all brackets. A tree is written (S (NN word) …).")
            elif token == ")":
                tree, word = _closed(*open_brackets.pop(), word, place=place), None
                if not open_brackets:
                    yield first, tree
                else:
                    label, children = open_brackets[-1]
                    open_brackets[-1] = label or "", [*children, tree]
            elif open_brackets[-1] == (None, []):
                open_brackets[-1] = token, []
            elif word is not None or open_brackets[-1][1]:
                raise DataError(f"{place}: {token!r} is beside another word or bracket. A leaf is (TAG word).")
            else:
                word = token
    if open_brackets:
        raise DataError(f"{name}:{first}: the tree that begins here is not closed. {len(open_brackets)} ) are missing.")


def _closed(label: str | None, children: list[Tree], word: str | None, *, place: str) -> Tree:
    if word is not None:
        return Tree(label or "", word=_PARENTHESES.get(word, word))
    if not children:
        raise DataError(f"{place}: the bracket ({label or ''}) is empty. A leaf is (TAG word).")
    return Tree(label or "", tuple(children))


def prepared_tree(tree: Tree, *, keeps: Iterable[TreePart] = ()) -> Tree | None:
    """Return the tree under one root TOP, without what is not kept; None if no word is left. Tags stay."""
    top = tree if tree.word is None and tree.label in _ROOTS else Tree(ROOT, (tree,))
    kept = _without(top, frozenset(keeps))
    return kept and replace(kept, label=ROOT)


def _without(tree: Tree, keeps: frozenset[TreePart]) -> Tree | None:
    if tree.word is not None:
        return None if tree.label == EMPTY and "empty" not in keeps else tree
    children = tuple(kept for child in tree.children if (kept := _without(child, keeps)) is not None)
    label = tree.label if "functions" in keeps else _FUNCTION.sub("", tree.label)
    return Tree(label, children) if children else None


def linear_form(tree: Tree, *, keeps_tags: bool = False) -> tuple[list[str], list[str]]:
    """Return the words and the symbols of a tree under its root."""
    words, symbols = list[str](), list[str]()

    def write(node: Tree) -> None:
        if node.word is not None:
            words.append(node.word)
            symbols.append(node.label if keeps_tags else WORD_SLOT)
            return
        symbols.append(f"({node.label}")
        for child in node.children:
            write(child)
        symbols.append(f"){node.label}")

    for child in tree.children:
        write(child)
    return words, symbols


def tree_of(words: Sequence[str], symbols: Iterable[str]) -> Tree:
    """Return the tree that `linear_form` wrote; raise DataError for symbols that are no tree over these words."""
    open_brackets: list[tuple[str, list[Tree]]] = [(ROOT, [])]
    used = 0
    for place, symbol in enumerate(symbols, start=1):
        if symbol.startswith("("):
            open_brackets.append((symbol[1:], []))
            if len(open_brackets) > DEEPEST:
                raise DataError(f"symbol {place} opens more than {DEEPEST} brackets inside each other")
            continue
        if symbol.startswith(")"):
            label, children = open_brackets[-1]
            if len(open_brackets) == 1 or symbol[1:] != label or not children:
                raise DataError(f"symbol {place}, {symbol!r}, closes no bracket of that name with words in it")
            open_brackets.pop()
            node = Tree(label, tuple(children))
        elif used < len(words):
            node, used = Tree(symbol, word=words[used]), used + 1
        else:
            raise DataError(f"symbol {place}, {symbol!r}, is a word more than the {len(words)} there are")
        open_brackets[-1][1].append(node)
    if len(open_brackets) > 1 or used < len(words) or not words:
        raise DataError(f"{len(open_brackets) - 1} brackets are not closed and {len(words) - used} words not used")
    return Tree(ROOT, tuple(open_brackets[0][1]))
