"""Search needs no torch, and finds the same in every vocabulary, wherever its special tokens are."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from transduce.decoding.config import DecodingConfig
from transduce.decoding.constrained_search import constrained_search
from transduce.decoding.constraints import Constraint, Constraints, Form
from transduce.decoding.search import search
from transduce.special_tokens import OWN_SPECIAL_TOKENS, SpecialTokens
from transduce.text.word_edges import WordEdges

if TYPE_CHECKING:
    from tests.decoding.conftest import TableModel

    from transduce.networks.stepwise import Ids, LogProbabilities

SYMBOLS = 6
SIZE = 4 + SYMBOLS
VOCABULARIES = {
    "start and end are one": SpecialTokens(padding=1, unknown=3, start=2, end=2),
    "the end comes first, padding starts": SpecialTokens(padding=9, unknown=1, start=9, end=0),
    "the end comes last": SpecialTokens(padding=0, unknown=4, start=7, end=9),
}
WAYS = [{"beam": 1}, {"beam": 3, "alternatives": 3}, {"beam": 4, "stop": "full", "minimum_length": 3}]
SOURCES = [[5, 7, 6], [4], [8, 8, 9, 4, 5]]  # without an end token


class Renamed:
    """A model over the same symbols as another, under other ids."""

    def __init__(self, inner: TableModel, tokens: SpecialTokens) -> None:
        self.inner, self.tokens, self.source_padding = inner, tokens, tokens.padding
        special = {tokens.padding, tokens.unknown, tokens.start, tokens.end}
        symbols = [token for token in range(SIZE) if token not in special][:SYMBOLS]
        self.outer = {4 + n: symbol for n, symbol in enumerate(symbols)} | {OWN_SPECIAL_TOKENS.end: tokens.end}
        # A start token that also ends is fed as a start: no output goes on after its end.
        self.own = {outer: own for own, outer in self.outer.items()} | {tokens.start: OWN_SPECIAL_TOKENS.start}

    def longest_target(self, source_length: int) -> int | None:
        return None

    def start(self, source_BS: Ids) -> Any:  # noqa: ANN401
        return self.inner.start(np.vectorize(lambda token: self.own.get(token, 0))(source_BS))

    def step(self, state: Any, tokens_BW: Ids) -> LogProbabilities:  # noqa: ANN401
        log_probabilities_BWV = self.inner.step(state, np.vectorize(lambda token: self.own.get(token, 0))(tokens_BW))
        renamed_BWV = np.full((*tokens_BW.shape, SIZE), -np.inf)
        for own, outer in self.outer.items():
            renamed_BWV[..., outer] = log_probabilities_BWV[..., own]
        # One special token has the probability of all, and would often be generated if it were allowed.
        renamed_BWV[..., self.tokens.never_generated[0]] = np.logaddexp.reduce(log_probabilities_BWV[..., :3], axis=-1)
        return renamed_BWV

    def select(self, state: Any, sentences_B: Ids, beams_BW: Ids) -> Any:  # noqa: ANN401
        return self.inner.select(state, sentences_B, beams_BW)

    def names(self, tokens: Any) -> tuple[int, ...]:  # noqa: ANN401
        return tuple(self.outer[token] for token in tokens)

    def padded(self, sources: list[list[int]]) -> Ids:
        width = max(map(len, sources))
        rows = [[*self.names(row), *[self.tokens.padding] * (width - len(row))] for row in sources]
        return np.array(rows, dtype=np.int64)


def padded(sources: list[list[int]]) -> Ids:
    width = max(map(len, sources))
    return np.array([[*row, *[0] * (width - len(row))] for row in sources], dtype=np.int64)


@pytest.mark.parametrize("tokens", VOCABULARIES.values(), ids=VOCABULARIES)
@pytest.mark.parametrize("way", WAYS)
def test_other_ids_change_nothing_but_ids(
    way: dict[str, object], tokens: SpecialTokens, table_model: type[TableModel]
) -> None:
    config = DecodingConfig.model_validate({"extra_length": 6, **way})
    for seed in range(20):
        inner = table_model.random(seed, symbols=SYMBOLS, sources=3)
        model = Renamed(inner, tokens)
        expected = search(inner, padded(SOURCES), config)
        found = search(model, model.padded(SOURCES), config)
        for ours, theirs in zip(found, expected, strict=True):
            assert [own.tokens for own in ours] == [model.names(own.tokens) for own in theirs]
            assert [own.score for own in ours] == [own.score for own in theirs]
            assert [own.is_finished for own in ours] == [own.is_finished for own in theirs]


@pytest.mark.parametrize("tokens", VOCABULARIES.values(), ids=VOCABULARIES)
def test_samples_hold_no_special_token_and_end_where_they_end(
    tokens: SpecialTokens, table_model: type[TableModel]
) -> None:
    model = Renamed(table_model.random(1, symbols=SYMBOLS, sources=3), tokens)
    found = search(model, model.padded(SOURCES), DecodingConfig(sample=True, alternatives=50, extra_length=6))
    outputs = [own for outputs in found for own in outputs]
    assert {own.is_finished for own in outputs} == {True, False}
    for own in outputs:
        assert tokens.end not in own.tokens[:-1]
        assert own.is_finished == (own.tokens[-1] == tokens.end)
        assert not set(own.tokens).intersection(tokens.never_generated)


@pytest.mark.parametrize("tokens", VOCABULARIES.values(), ids=VOCABULARIES)
def test_prefixes_and_lists_are_kept_under_other_ids(tokens: SpecialTokens, table_model: type[TableModel]) -> None:
    prefixes, rest = [[5, 4], [], [6]], [[4, 5, 7], [4, 6, 8, 9], [5, 6, 9]]
    config = DecodingConfig(extra_length=1)
    for seed in range(20):
        inner = table_model.random(seed, symbols=SYMBOLS, sources=3)
        model, lists = Renamed(inner, tokens), [[0, 1, 2, 3, *own] for own in rest]
        expected = search(inner, padded(SOURCES), config, prefixes=prefixes, lists=lists)
        renamed_prefixes = [model.names(prefix) for prefix in prefixes]
        lists = [[*tokens.ids, *model.names(own)] for own in rest]
        found = search(model, model.padded(SOURCES), config, prefixes=renamed_prefixes, lists=lists)
        assert [own[0].tokens for own in found] == [model.names(own[0].tokens) for own in expected]
        assert [own[0].score for own in found] == pytest.approx([own[0].score for own in expected])


@pytest.mark.parametrize("tokens", VOCABULARIES.values(), ids=VOCABULARIES)
def test_terms_are_enforced_under_other_ids(tokens: SpecialTokens, table_model: type[TableModel]) -> None:
    inner = table_model.random(5, symbols=SYMBOLS, sources=3)
    model, config = Renamed(inner, tokens), DecodingConfig(extra_length=6)
    edges = WordEdges((True,) * SIZE, (True,) * SIZE)
    terms = [Constraint((Form((6, 4), needs_edge_after=True),))]
    renamed = [Constraint((Form(model.names((6, 4)), needs_edge_after=True),))]
    expected = constrained_search(inner, padded(SOURCES), config, constraints=[Constraints(terms, edges)] * 3)
    found = constrained_search(model, model.padded(SOURCES), config, constraints=[Constraints(renamed, edges)] * 3)
    assert [own[0].tokens for own in found] == [model.names(own[0].tokens) for own in expected]


def test_it_imports_neither_torch_nor_a_network() -> None:
    program = (
        "import sys, transduce.decoding.search, transduce.decoding.constrained_search, transduce.decoding.ensemble\n"
        "assert 'torch' not in sys.modules\n"
        "assert {name for name in sys.modules if name.startswith('transduce.networks')} == "
        "{'transduce.networks', 'transduce.networks.stepwise', 'transduce.networks.beam_searching'}\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
