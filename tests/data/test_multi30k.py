"""The figures that the issue names, on the real corpus where it is at hand (it may not be committed)."""

from pathlib import Path

import pytest

from transduce.data.batching import BatchPlan
from transduce.data.config import DataConfig
from transduce.data.preparation import prepare

MULTI30K = Path(__file__).parents[2].parent / "shared" / "data" / "multi30k"


@pytest.mark.slow
@pytest.mark.skipif(not MULTI30K.is_dir(), reason="Multi30k is not at ../shared/data/multi30k")
def test_padding_at_4096_tokens_is_at_most_nine_percent_in_every_epoch(tmp_path: Path) -> None:
    names = {
        split: f"{MULTI30K / file}.en.gz,{MULTI30K / file}.de.gz"
        for split, file in [("train", "train"), ("valid", "val")]
    }
    prepared = prepare(DataConfig.model_validate(names), tmp_path, vocabulary_size=8000)
    assert (len(prepared.train), prepared.valid and len(prepared.valid)) == (29_000, 1014)
    plan = BatchPlan(prepared.train.source_lengths, prepared.train.target_lengths, tokens_per_step=4096, seed=1)
    for epoch in range(5):
        assert plan.padding(plan.epoch(epoch)).share <= 0.09
