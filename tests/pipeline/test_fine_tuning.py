"""The schedule of a run that starts from a model."""

from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.test_planning import corpus, small_model

from transduce.experiment import validate_experiment
from transduce.model.config import ModelConfig
from transduce.pipeline.fine_tuning import fine_tuned
from transduce.pipeline.planning import Choice, TrainRequest, choose_experiment
from transduce.progress import Silent
from transduce.training.config import TrainingConfig

SIZES = ModelConfig(d_model=256, heads=4).model_dump(mode="json", exclude_none=True)


def adapted(folder: Path, *overrides: str, **data: Any) -> Choice:  # noqa: ANN401
    small_model(folder / "model")
    sections = {
        "data": {"train": [str(corpus(folder))], **data},
        "training": {"start_from": str(folder / "model")},
    }
    request = TrainRequest(sections=sections, overrides=overrides)
    return choose_experiment(request, folder / "run", progress=Silent())


@pytest.mark.parametrize("pairs", [5, 300, 3_000, 30_000, 300_000, 3_000_000])
def test_every_amount_of_text_is_validated_early_and_often(pairs: int) -> None:
    settings, reason = fine_tuned({}, SIZES, pairs=pairs)
    experiment = validate_experiment(settings, where="test")
    training = experiment.training
    assert training.batch_tokens <= 4096
    assert training.warmup_steps <= 200
    assert training.allowed_patience == 5
    assert 10 <= training.validate_every <= max(10, pairs // 30)
    assert experiment.data.held_out_valid is not None
    assert 1 <= experiment.data.held_out_valid <= max(1, pairs // 10)
    assert f"{pairs:,} pairs" in reason


def test_less_text_gets_smaller_batches_and_more_dropout() -> None:
    chosen = [fine_tuned({}, SIZES, pairs=pairs)[0] for pairs in (300, 30_000, 300_000)]
    batches = [settings["training"]["batch_tokens"] for settings in chosen]
    dropouts = [settings["model"]["dropout"] for settings in chosen]
    assert batches == sorted(batches)
    assert dropouts == sorted(dropouts, reverse=True)
    assert dropouts[-1] == SIZES["dropout"]


def test_a_wider_network_gets_a_lower_rate() -> None:
    rates = [fine_tuned({}, {**SIZES, "d_model": width}, pairs=9)[0]["training"]["peak"] for width in (256, 1024)]
    assert rates[0] == 4 * rates[1]


def test_a_run_that_starts_from_a_model_is_fine_tuned(tmp_path: Path) -> None:
    choice = adapted(tmp_path)
    assert choice.experiment.training.schedule == "inverse_sqrt"
    assert choice.in_words.startswith(f"fine-tuning {tmp_path / 'model'}: 30 pairs are little text")


def test_what_is_given_wins(tmp_path: Path) -> None:
    given = ("training.batch_tokens=77", "training.peak=0.01", "model.dropout=0.05", "training.patience=9")
    experiment = adapted(tmp_path, *given, held_out_valid=3).experiment
    assert experiment.training.batch_tokens == 77
    assert experiment.training.peak == 0.01
    assert experiment.training.patience == 9
    assert experiment.model.dropout == 0.05
    assert experiment.data.held_out_valid == 3


def test_the_schedule_of_the_paper_is_had_by_its_name(tmp_path: Path) -> None:
    experiment = adapted(tmp_path, "training.schedule=paper").experiment
    start = {"start_from": str(tmp_path / "model")}
    assert experiment.training == TrainingConfig.model_validate(start)
