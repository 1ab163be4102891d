"""Constraints on an output: terms that it must contain, as sequences of tokens, and the progress of a hypothesis.

A term has one or more forms. It is met when all tokens of one form occur in a row and the next token, which may be the
end token, does not extend its last word. Terms do not share tokens; a term that is required twice must occur twice.

A hypothesis matches one form at a time: the one that begins with the longest run of its last tokens. If the next token
does not continue the form, the run is dropped, or shortened to one that begins a form, as in the search of Knuth,
Morris and Pratt. A term that counts as met is always in the output. The converse can fail: if the tokens of a term
begin another term, or end with the beginning of another, they count for the longer run, and the term must occur again.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property

from transduce.text.word_edges import WordEdges

Tokens = tuple[int, ...]


class TermPlace(IntEnum):
    """A place in an output where a form may begin; a form allowed at one member is allowed at all later members."""

    INSIDE = 0
    """Right after a letter, where only a word's mark separates the form from the word before it."""
    EDGE = 1
    """Where a word may begin without a mark."""
    START = 2
    """At the beginning of the output."""


@dataclass(frozen=True)
class Form:
    """One way to write a term."""

    tokens: Tokens
    begins_from: TermPlace = TermPlace.INSIDE
    needs_edge_after: bool = False
    """Whether the next token must not extend its last word."""


@dataclass(frozen=True)
class Constraint:
    """A term that must appear, in one of its forms."""

    forms: tuple[Form, ...]
    after: int | None = None
    """The number of the constraint that must be met first: a closing tag comes after its opening tag."""

    @cached_property
    def size(self) -> int:
        """How many tokens count as met once the term is met."""
        return max(len(form.tokens) for form in self.forms)


@dataclass
class _Node:
    """A run of tokens that begins forms: the tokens that continue it, and the constraint that it meets, if any."""

    continuations: set[int] = field(default_factory=set)
    whole: int | None = None
    needs_edge_after: bool = False


@dataclass(frozen=True)
class ConstraintProgress:
    """The constraints that a hypothesis has not met yet, and how far it has written one of them."""

    unmet: tuple[int, ...]
    """Which constraints are not met yet."""
    node: _Node
    """The run of tokens that it has written of one of them."""
    matched: int = 0
    """How many tokens the run has: the last ones, which begin an unmet form, or are a whole one."""


class Constraints:
    """All constraints on the outputs of one sentence."""

    def __init__(
        self,
        constraints: Sequence[Constraint],
        edges: WordEdges,
        *,
        limited: Iterable[int] = (),
        avoided: Sequence[Tokens] = (),
    ) -> None:
        """Only a constraint may put a `limited` token into an output, or complete an `avoided` run of tokens."""
        assert all(form.tokens for constraint in constraints for form in constraint.forms), "a form needs tokens"
        self._constraints = tuple(constraints)
        self.banks = 1 + sum(constraint.size for constraint in constraints)
        """The number of banks: one for each number of met tokens, from none to all."""
        self.edges = edges
        self._limited = frozenset(limited)
        self._avoided: defaultdict[Tokens, set[int]] = defaultdict(set)
        for run in avoided:
            self._avoided[run[:-1]].add(run[-1])
        self._longest_avoided = max((len(run) - 1 for run in avoided), default=-1)
        self._tries: dict[tuple[int, ...], dict[tuple[Tokens, TermPlace], _Node]] = {}
        all_of_them = tuple(range(len(constraints)))
        self.start = ConstraintProgress(all_of_them, self._trie(all_of_them)[(), TermPlace.START])

    @property
    def are_empty(self) -> bool:
        """Whether any output without limited tokens meets them."""
        return not self._constraints and not self._avoided

    def bank(self, progress: ConstraintProgress) -> int:
        """Return how many tokens of the constraints are met: of whole terms, and of the one that is being written."""
        left = sum([self._constraints[n].size for n in progress.unmet])
        return self.banks - 1 - left + progress.matched

    def advance(self, progress: ConstraintProgress, tokens: Tokens, token: int) -> ConstraintProgress:
        """Return the progress of a hypothesis that adds `token` to its `tokens`."""
        if not progress.unmet:
            return progress
        node, unmet, matched = progress.node, progress.unmet, progress.matched
        if node.whole is not None and token not in node.continuations and self._leaves_whole(node, token):
            unmet, matched = tuple(n for n in unmet if n != node.whole), 0
        return self._longest_run(unmet, (*tokens, token), grown_from=matched)

    def wanted(self, progress: ConstraintProgress, tokens: Tokens) -> set[int]:
        """Return the tokens that would begin a term now, or continue one."""
        beginnings = self._trie(progress.unmet)[(), self._place(tokens, len(tokens))].continuations
        return beginnings | progress.node.continuations

    def forbidden(self, progress: ConstraintProgress, tokens: Tokens) -> list[int]:
        """Return the tokens that may not come next."""
        wanted = self.wanted(progress, tokens) if self._limited or self._avoided else set[int]()
        forbidden = set(self._limited)
        for length in range(min(self._longest_avoided, len(tokens)) + 1):
            forbidden |= self._avoided.get(tokens[len(tokens) - length :], set())
        return list(forbidden - wanted)

    def awaits_edge(self, progress: ConstraintProgress) -> bool:
        """Return whether a term has just been written and is met unless the next token extends its last word."""
        return progress.node.needs_edge_after

    def _leaves_whole(self, node: _Node, token: int) -> bool:
        return not node.needs_edge_after or self.edges.is_closed_by[token]

    def _longest_run(self, unmet: tuple[int, ...], tokens: Tokens, *, grown_from: int) -> ConstraintProgress:
        trie = self._trie(unmet)
        # A run grows by one token at most. It is empty once a term has been met, so that no term uses another's tokens.
        for start in range(len(tokens) - 1 - grown_from, len(tokens) + 1):
            node = trie.get((tokens[start:], self._place(tokens, start)))
            if node is not None:
                return ConstraintProgress(unmet, node, len(tokens) - start)
        raise AssertionError("the empty run is in the trie")

    def _place(self, tokens: Tokens, start: int) -> TermPlace:
        if start == 0:
            return TermPlace.START
        return TermPlace.EDGE if self.edges.is_open_after[tokens[start - 1]] else TermPlace.INSIDE

    def _trie(self, unmet: tuple[int, ...]) -> dict[tuple[Tokens, TermPlace], _Node]:
        """Return the trie of the unmet forms: nodes by their tokens, and by the place where these begin."""
        if unmet not in self._tries:
            trie: defaultdict[tuple[Tokens, TermPlace], _Node] = defaultdict(_Node)
            trie.update({((), place): _Node() for place in TermPlace})
            for number in reversed(unmet):
                if self._constraints[number].after in unmet:
                    continue
                for form in self._constraints[number].forms:
                    for place in list(TermPlace)[form.begins_from :]:
                        for cut, token in enumerate(form.tokens):
                            trie[form.tokens[:cut], place].continuations.add(token)
                        end = trie[form.tokens, place]
                        end.whole, end.needs_edge_after = number, form.needs_edge_after
            self._tries[unmet] = dict(trie)
        return self._tries[unmet]
