import math

import pytest

from transduce.training.state import TrainingProgress, differences


def test_a_step_counts_and_ends_its_epoch() -> None:
    state = TrainingProgress(step=4, epoch=1, position=0, tokens=100)
    state = state.after_step(tokens=7, steps_in_epoch=2)
    assert (state.step, state.epoch, state.position, state.tokens) == (5, 1, 1, 107)
    state = state.after_step(tokens=7, steps_in_epoch=2)
    assert (state.step, state.epoch, state.position, state.tokens) == (6, 2, 0, 114)


def test_the_best_validation_is_the_lowest_loss_and_others_wear_patience() -> None:
    state = TrainingProgress(step=10)
    history = []
    for loss in [3.0, 2.0, 2.5, 2.0, 1.0]:
        state = state.model_copy(update={"step": state.step + 1}).after_validation(measure="loss", value=loss)
        assert state.best is not None
        history.append((state.best.step, state.validations_without_better))
    assert history == [(11, 0), (12, 0), (12, 1), (12, 2), (15, 0)]


def test_the_best_bleu_is_the_highest() -> None:
    state = TrainingProgress(step=1).after_validation(measure="bleu", value=20.0)
    state = state.model_copy(update={"step": 2}).after_validation(measure="bleu", value=21.0)
    assert state.best is not None
    assert state.best.step == 2


def test_a_changed_measure_begins_anew() -> None:
    state = TrainingProgress(step=1).after_validation(measure="loss", value=2.0)
    state = state.model_copy(update={"step": 2}).after_validation(measure="bleu", value=1.0)
    assert state.best is not None
    assert (state.best.measure, state.best.value) == ("bleu", 1.0)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_never_the_best(value: float) -> None:
    state = TrainingProgress(step=1).after_validation(measure="loss", value=value)
    assert (state.best, state.validations_without_better) == (None, 1)


def test_differences_are_named_one_by_one() -> None:
    assert differences({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 5, "d": None}) == [
        "b was 2 and is now 5",
        "c was 3 and is now None",
    ]
