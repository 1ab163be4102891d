"""A search in lists of tokens against the same search in a model that has no other tokens."""

import random
from typing import TYPE_CHECKING

import numpy as np
import pytest
from numpy.typing import NDArray

from transduce.data.padding import pad_ids
from transduce.decoding.config import DecodingConfig
from transduce.decoding.search import search
from transduce.decoding.shortlisted import RUN, Shortlisted, padded_lists
from transduce.networks.stepwise import Ids

if TYPE_CHECKING:
    from tests.decoding.conftest import TableModel

SYMBOLS = 90
ALL = list(range(4 + SYMBOLS))
SOURCES = [[4, 3], [5, 5, 5, 3], [6, 6, 3]]


def some(seed: int, count: int) -> list[int]:
    return [0, 1, 2, 3, *sorted(random.Random(seed).sample(ALL[4:], count))]


def pad_rows(rows: list[list[int]]) -> Ids:
    return pad_ids(rows, padding=0)


def without_others(table_NMV: NDArray[np.floating], lists: list[list[int]]) -> NDArray[np.floating]:
    """Return the table of a model that never says what is in no list, source by source."""
    kept_NMV = np.zeros_like(table_NMV)
    for source, own in enumerate(lists):
        kept_NMV[source, :, own] = table_NMV[source, :, own]
    renormalized_NMV: NDArray[np.floating] = kept_NMV / kept_NMV.sum(axis=-1, keepdims=True)
    return renormalized_NMV


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"beam": 1},
        {"beam": 6, "alternatives": 6, "stop": "full"},
        {"sample": True, "alternatives": 5, "temperature": 0.7},
        {"sample": True, "top_k": 3},
    ],
)
def test_it_is_the_search_of_a_model_without_the_other_tokens(
    options: dict[str, object], table_model: type["TableModel"]
) -> None:
    model = table_model.random(7, symbols=SYMBOLS, sources=3)
    # Sources are looked up by their first token: 4, 5 and 6 are 1, 2 and 0 of the table.
    lists = [some(1, 5), some(2, 70), some(3, 20)]
    narrow = table_model(without_others(np.exp(model.log_table_NMV), [lists[2], lists[0], lists[1]]), memory=7)
    config = DecodingConfig.model_validate({"extra_length": 6, **options})
    expected = search(narrow, pad_rows(SOURCES), config)
    found = search(model, pad_rows(SOURCES), config, lists=lists)
    assert [[h.tokens for h in own] for own in found] == [[h.tokens for h in own] for own in expected]
    for own, others in zip(found, expected, strict=True):
        assert [h.log_probability for h in own] == pytest.approx([h.log_probability for h in others], abs=1e-9)


def test_with_all_tokens_in_the_list_nothing_changes(table_model: type["TableModel"]) -> None:
    model, config = table_model.random(3, symbols=SYMBOLS, sources=3), DecodingConfig(extra_length=6)
    whole = search(model, pad_rows(SOURCES), config)
    listed = search(model, pad_rows(SOURCES), config, lists=[ALL] * 3)
    assert [own[0].tokens for own in listed] == [own[0].tokens for own in whole]


def test_a_prefix_is_found_in_the_list(table_model: type["TableModel"]) -> None:
    model, lists = table_model.random(5, symbols=SYMBOLS, sources=3), [some(1, 9), some(2, 9), some(3, 9)]
    prefixes = [lists[0][5:7], [], [lists[2][-1]]]
    found = search(model, pad_rows(SOURCES), DecodingConfig(extra_length=6), prefixes=prefixes, lists=lists)
    for own, prefix, listed in zip(found, prefixes, lists, strict=True):
        assert list(own[0].tokens[: len(prefix)]) == prefix
        assert set(own[0].tokens) <= set(listed)


def test_a_longer_list_beside_it_changes_no_bit_of_a_sentence(table_model: type["TableModel"]) -> None:
    model, config = table_model.random(9, symbols=900, sources=3), DecodingConfig(extra_length=6)
    lists = [some(1, 50), list(range(904)), list(range(250))]
    together = search(model, pad_rows(SOURCES), config, lists=lists)
    alone = [search(model, pad_rows([s]), config, lists=[own])[0] for s, own in zip(SOURCES, lists, strict=True)]
    assert together == alone


@pytest.mark.parametrize(("longest", "width"), [(4, RUN), (RUN, RUN), (RUN + 1, 2 * RUN)])
def test_lists_fill_whole_runs(longest: int, width: int) -> None:
    lists_BL, is_padding_BL = padded_lists([list(range(longest)), list(range(4))])
    assert lists_BL.shape == is_padding_BL.shape == (2, width)
    assert (~is_padding_BL).sum(axis=1).tolist() == [longest, 4]


def test_a_list_without_an_end_token_is_our_own_mistake(table_model: type["TableModel"]) -> None:
    with pytest.raises(AssertionError, match="begins with special tokens"):
        Shortlisted(table_model.random(1, symbols=9), [[0, 1, 2, 9]])
