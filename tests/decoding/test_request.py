"""Lengths and prefixes are kept, whether outputs are searched for or drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transduce.decoding.config import DecodingConfig
from transduce.decoding.request import OutputRequest
from transduce.decoding.search import search
from transduce.special_tokens import OWN_SPECIAL_TOKENS

EOS = OWN_SPECIAL_TOKENS.end
UNK = OWN_SPECIAL_TOKENS.unknown

if TYPE_CHECKING:
    from tests.decoding.conftest import TableModel

    from transduce.networks.stepwise import Stepwise

SOURCES_BS = np.array([[7, 8, 9, EOS, 0, 0], [7, EOS, 0, 0, 0, 0], [7, 8, 9, 10, 11, EOS]])
WAYS = [{"beam": 1}, {"beam": 3, "alternatives": 3}, {"sample": True, "alternatives": 3}]


class Bounded:
    """As much of a model as its limits depend on: it can predict this many tokens more than its source has."""

    tokens, source_padding = OWN_SPECIAL_TOKENS, 0

    def __init__(self, more: int | None) -> None:
        self.more = more

    def longest_target(self, source_length: int) -> int | None:
        return None if self.more is None else source_length + self.more


def limits(prefixes: list[list[int]] | None = None, more: int | None = None, **settings: int) -> list[int]:
    config = DecodingConfig.model_validate(settings)
    request = OutputRequest.of(cast("Stepwise[Any]", Bounded(more)), SOURCES_BS, config, prefixes=prefixes)
    result: list[int] = request.limit_B.tolist()
    return result


def test_the_limit_is_the_own_length_of_the_source_and_some_more() -> None:
    assert limits() == [54, 52, 56]
    assert limits(extra_length=3) == [7, 5, 9]
    assert limits(extra_length=0) == [4, 2, 6]


def test_an_absolute_maximum_a_minimum_and_the_models_own_reach_bound_the_limit() -> None:
    assert limits(extra_length=3, maximum_length=6) == [6, 5, 6]
    assert limits(extra_length=0, minimum_length=5) == [5, 5, 6]
    assert limits(more=3) == [7, 5, 9]
    assert limits(more=3, extra_length=2) == [6, 4, 8]


def test_a_prefix_gets_room_for_itself_and_an_end() -> None:
    assert limits([[4] * 9, [], [4]], extra_length=0) == [10, 2, 6]


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), minimum=st.integers(0, 6), extra=st.integers(0, 4))
def test_lengths_are_kept(
    table_model: type[TableModel], way: dict[str, object], seed: int, minimum: int, extra: int
) -> None:
    model = table_model.random(seed, symbols=3)
    config = DecodingConfig.model_validate({"minimum_length": minimum, "extra_length": extra, **way})
    for source_S, outputs in zip(SOURCES_BS, search(model, SOURCES_BS, config), strict=True):
        limit = max(int((source_S != 0).sum()) + extra, minimum)
        for output in outputs:
            assert min(minimum, limit) <= len(output.tokens) <= limit
            assert output.is_finished or len(output.tokens) == limit
            assert output.is_finished == (EOS in output.tokens)


@pytest.mark.parametrize("way", WAYS)
def test_an_absolute_maximum_is_kept(table_model: type[TableModel], way: dict[str, object]) -> None:
    config = DecodingConfig.model_validate({"minimum_length": 3, "maximum_length": 3, **way})
    outputs = search(table_model.random(1, symbols=9), SOURCES_BS, config)
    assert {len(output.tokens) for found in outputs for output in found} == {3}


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), prefixes=st.lists(st.lists(st.integers(4, 6), max_size=5), min_size=3, max_size=3))
def test_a_forced_prefix_is_kept_and_counts(
    table_model: type[TableModel], way: dict[str, object], seed: int, prefixes: list[list[int]]
) -> None:
    model = table_model.random(seed, symbols=3)
    config = DecodingConfig.model_validate({"extra_length": 2, **way})
    found = search(model, SOURCES_BS, config, prefixes=prefixes)
    for outputs, prefix in zip(found, prefixes, strict=True):
        for output in outputs:
            assert list(output.tokens[: len(prefix)]) == prefix
            by_hand = [
                model.log_probabilities(7, output.tokens[:place])[token] for place, token in enumerate(output.tokens)
            ]
            assert output.log_probability == pytest.approx(sum(by_hand), abs=1e-10)


def test_a_sentence_forced_to_begin_so_is_searched_as_if_that_were_its_best(table_model: type[TableModel]) -> None:
    model = table_model.random(3, symbols=3)
    config = DecodingConfig(beam=27, alternatives=1, extra_length=2, length_penalty=0.0)
    free = search(model, SOURCES_BS, config.model_copy(update={"alternatives": 27, "beam": 81}))
    for outputs, forced in zip(free, search(model, SOURCES_BS, config, prefixes=[[5]] * 3), strict=True):
        assert forced[0] == next(output for output in outputs if output.tokens[0] == 5)


@pytest.mark.parametrize("way", WAYS)
def test_no_special_token_is_ever_generated_unless_a_prefix_has_it(
    table_model: type[TableModel], way: dict[str, object]
) -> None:
    # Padding, unknown and start together hold nine tenths of the probability everywhere.
    table_MV = np.tile([0.3, 0.3, 0.3, 0.02, 0.04, 0.04], (101, 1))
    config = DecodingConfig.model_validate({"extra_length": 4, **way})
    for outputs in search(table_model(table_MV[None], memory=7), SOURCES_BS, config):
        assert all(min(output.tokens) >= EOS for output in outputs)
    forced = search(table_model(table_MV[None], memory=7), SOURCES_BS, config, prefixes=[[UNK, 4]] * 3)
    assert all(output.tokens[:2] == (UNK, 4) for outputs in forced for output in outputs)
