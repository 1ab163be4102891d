"""An ensemble is a mean of probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from transduce.decoding.config import DecodingConfig
from transduce.decoding.ensemble import Ensemble
from transduce.decoding.search import search
from transduce.special_tokens import OWN_SPECIAL_TOKENS

BOS = OWN_SPECIAL_TOKENS.start
EOS = OWN_SPECIAL_TOKENS.end

if TYPE_CHECKING:
    from tests.decoding.conftest import TableModel

WAYS = [{"beam": 1}, {"beam": 5, "alternatives": 3}, {"sample": True, "alternatives": 3}]
SOURCES_BS = np.array([[4 + n, EOS] for n in range(5)])


@pytest.mark.parametrize("way", WAYS)
def test_a_model_with_itself_is_itself(way: dict[str, object], table_model: type[TableModel]) -> None:
    model = table_model.random(3, symbols=9, sources=5)
    config = DecodingConfig.model_validate({"extra_length": 9, **way})
    alone = search(model, SOURCES_BS, config)
    for size in (1, 2, 3):
        together = search(Ensemble([model] * size), SOURCES_BS, config)
        for ours, theirs in zip(together, alone, strict=True):
            assert [output.tokens for output in ours] == [output.tokens for output in theirs]
            assert [output.score for output in ours] == pytest.approx([output.score for output in theirs], abs=1e-12)


@pytest.mark.parametrize("way", WAYS)
def test_an_ensemble_is_searched_as_the_mean_of_its_members_probabilities(
    way: dict[str, object], table_model: type[TableModel]
) -> None:
    members = [table_model.random(seed, symbols=3, sources=5) for seed in range(3)]
    mean = table_model(np.mean([np.exp(member.log_table_NMV) for member in members], axis=0), memory=7)
    config = DecodingConfig.model_validate({"extra_length": 4, **way})
    for ours, theirs in zip(
        search(Ensemble(members), SOURCES_BS, config), search(mean, SOURCES_BS, config), strict=True
    ):
        assert [output.tokens for output in ours] == [output.tokens for output in theirs]
        assert [output.score for output in ours] == pytest.approx([output.score for output in theirs], abs=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_probabilities_near_and_far_and_of_zero_have_their_mean(
    dtype: type[np.floating], table_model: type[TableModel]
) -> None:
    rows = [[0.0, 0.0, 0.0, 1e-30, 1e-3, 0.5, 0.499], [0.0, 1e-20, 0.0, 0.3, 1e-3, 0.0, 0.699]]
    members = [table_model(np.tile(np.array(row, dtype=dtype), (1, 7, 1))) for row in rows]
    ensemble = Ensemble(members)
    found_BWV = ensemble.step(ensemble.start(SOURCES_BS[:1]), np.array([[BOS]]))
    assert found_BWV.dtype == dtype
    np.testing.assert_allclose(np.exp(found_BWV[0, 0].astype(np.float64)), np.mean(rows, axis=0), rtol=1e-5)


def test_the_shortest_reach_of_a_member_bounds_the_ensemble(table_model: type[TableModel]) -> None:
    members = [table_model.random(seed, symbols=3) for seed in range(3)]
    assert Ensemble(members).longest_target(4) is None
    members[1].bound, members[2].bound = 9, 7
    assert Ensemble(members).longest_target(4) == 7
