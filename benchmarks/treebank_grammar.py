"""Two parsers to compare a network with: a right-branching one, and a probabilistic grammar read off a treebank.

The grammar is unlexicalised (Charniak 1996): rules and their relative frequencies, tags by word with the shape of a
rare word in its place, made binary with one label to the left as memory. CKY finds the most probable tree.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from transduce.text.trees import ROOT, Tree

_RARE = 2  # words seen this often or less also teach what a word of their shape is
_MARK = "@"
_UNARY_ROUNDS = 3
_LEAST = -1e30


def right_branching(words: Sequence[str]) -> Tree:
    """Return S around everything, and a VP from each word to the end, but for a last full stop."""
    leaves = [Tree("XX", word=word) for word in words]
    end = [leaves.pop()] if len(leaves) > 1 and words[-1] in ".?!" else []
    first, *others = leaves
    inner = others[-1:]
    for leaf in reversed(others[:-1]):
        inner = [Tree("VP", (leaf, *inner))]
    return Tree(ROOT, (Tree("S", (first, *inner, *end)),))


def shape(word: str, place: int) -> str:
    """Return what stands for an unknown word: capitals, digits, hyphens, and its ending."""
    kind = "9" if any(c.isdigit() for c in word) else "A" if word[0].isupper() and place else "a"
    return f"{_MARK}{kind}{'-' if '-' in word else ''}{word[-3:].lower() if word[-1].isalpha() else ''}"


class TreebankGrammar:
    """A grammar whose probabilities are relative frequencies."""

    def __init__(self, trees: Iterable[Tree]) -> None:
        trees = list(trees)
        known = Counter(word for tree in trees for word in tree.words())
        self._tags: defaultdict[str, Counter[str]] = defaultdict(Counter)
        binary: Counter[tuple[str, str, str]] = Counter()
        unary: Counter[tuple[str, str]] = Counter()
        of: Counter[str] = Counter()
        for tree in trees:
            for place, leaf in enumerate(tree.leaves()):
                word = str(leaf.word)
                of[leaf.label] += 1
                self._tags[word][leaf.label] += 1
                if known[word] <= _RARE:
                    self._tags[shape(word, place)][leaf.label] += 1
                    self._tags[_MARK][leaf.label] += 1
            for parent, children in _rules(tree):
                of[parent] += 1
                if len(children) == 2:
                    binary[parent, children[0], children[1]] += 1
                else:
                    unary[parent, children[0]] += 1
        self._of, self.labels = of, sorted(of)
        self._number = n = {label: number for number, label in enumerate(self.labels)}
        rules = sorted((n[a], n[b], n[c], math.log(count / of[a])) for (a, b, c), count in binary.items())
        self._parent_R, self._left_R, self._right_R = np.array([rule[:3] for rule in rules]).T
        self._log_R = np.array([rule[3] for rule in rules])
        self._parents, self._begins = np.unique(self._parent_R, return_index=True)
        self._chains = _chains({(n[a], n[b]): math.log(count / of[a]) for (a, b), count in unary.items()}, len(of))
        self._chain_LL = np.full((len(of), len(of)), _LEAST)
        for (top, bottom), (log, _) in self._chains.items():
            self._chain_LL[top, bottom] = log
        self._phrases = np.array([n for n, label in enumerate(self.labels) if not label.startswith(_MARK)])
        self._chain_PP = self._chain_LL[np.ix_(self._phrases, self._phrases)]

    def parse(self, words: Sequence[str]) -> Tree | None:
        """Return the most probable tree, or None if the grammar has none."""
        size, count = len(words), len(self.labels)
        base = np.full((size, size + 1, count), _LEAST)  # of tags and binary rules
        best = base.copy()  # with chains of unary rules on top
        for length in range(1, size + 1):
            for first in range(size - length + 1):
                last = first + length
                if length == 1:
                    for tag, log in self._word(words[first], first):
                        base[first, last, self._number[tag]] = log
                else:
                    scores_R = self._cuts(best, first, last).max(axis=0)
                    base[first, last, self._parents] = np.maximum.reduceat(scores_R, self._begins)
                best[first, last] = base[first, last]
                best[first, last, self._phrases] = (self._chain_PP + base[first, last, self._phrases]).max(axis=1)
        top = self._number[ROOT]
        return self._built(base, best, words, (0, size, top)) if best[0, size, top] > _LEAST / 2 else None

    def _word(self, word: str, place: int) -> Iterator[tuple[str, float]]:
        tags = self._tags.get(word) or self._tags.get(shape(word, place)) or self._tags[_MARK]
        for tag, count in tags.items():
            yield tag, math.log(count / self._of[tag])

    def _cuts(self, best: NDArray[np.float64], first: int, last: int) -> NDArray[np.float64]:
        """Return the score of each cut of a span and each rule."""
        left, right = best[first, first + 1 : last], best[first + 1 : last, last]
        scores: NDArray[np.float64] = left[:, self._left_R] + right[:, self._right_R] + self._log_R
        return scores

    def _built(
        self,
        base: NDArray[np.float64],
        best: NDArray[np.float64],
        words: Sequence[str],
        place: tuple[int, int, int],
    ) -> Tree:
        first, last, top = place
        bottom = int((self._chain_LL[top] + base[first, last]).argmax())
        *above, label = (self.labels[number] for number in self._chains[top, bottom][1])
        if last - first == 1:
            tree = Tree(label, word=words[first])
        else:
            scores_CR = np.where(self._parent_R == bottom, self._cuts(best, first, last), _LEAST)
            cut, rule = divmod(int(scores_CR.argmax()), len(self._parent_R))
            middle = first + 1 + cut
            halves = (first, middle, int(self._left_R[rule])), (middle, last, int(self._right_R[rule]))
            children = [self._built(base, best, words, half) for half in halves]
            parts = [part for own in children for part in (own.children if own.label.startswith(_MARK) else (own,))]
            tree = Tree(label, tuple(parts))
        for name in reversed(above):
            tree = Tree(name, (tree,))
        return tree


def _chains(
    unary: Mapping[tuple[int, int], float], labels: int
) -> dict[tuple[int, int], tuple[float, tuple[int, ...]]]:
    """Return the most probable chain of up to `_UNARY_ROUNDS` unary rules from one label down to another."""
    found: dict[tuple[int, int], tuple[float, tuple[int, ...]]] = {(n, n): (0.0, (n,)) for n in range(labels)}
    for _ in range(_UNARY_ROUNDS):
        for (top, middle), log in unary.items():
            for (start, bottom), (rest, chain) in list(found.items()):
                if start == middle and top not in chain and log + rest > found.get((top, bottom), (_LEAST, ()))[0]:
                    found[top, bottom] = (log + rest, (top, *chain))
    return found


def _rules(tree: Tree) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the rules of a tree; a rule of more than two parts becomes several of two."""
    if tree.word is not None:
        return
    labels, parent = [child.label for child in tree.children], tree.label
    while len(labels) > 2:
        rest = f"{_MARK}{tree.label}|{labels[0]}"
        yield parent, (labels[0], rest)
        parent, labels = rest, labels[1:]
    yield parent, tuple(labels)
    for child in tree.children:
        yield from _rules(child)
