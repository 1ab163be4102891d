import pytest
from pydantic import ValidationError

from transduce.training.config import MAY_CHANGE_BETWEEN_STARTS, PATIENCE_WITHOUT_BUDGET, TrainingConfig, seconds


def test_defaults_are_the_values_of_section_5() -> None:
    config = TrainingConfig()
    assert (config.beta1, config.beta2, config.epsilon) == (0.9, 0.98, 1e-9)
    assert (config.schedule, config.warmup_steps, config.scale) == ("paper", 4000, 1.0)
    assert (config.label_smoothing, config.batch_tokens, config.clip_norm) == (0.1, 25_000, None)
    assert (config.checkpoint_every, config.average_last) == ("10m", 5)


@pytest.mark.parametrize(
    ("duration", "expected"), [("90s", 90), ("10m", 600), ("2h", 7200), ("1h30m", 5400), ("1.5h", 5400), ("1d", 86400)]
)
def test_durations_are_read(duration: str, expected: float) -> None:
    assert seconds(duration) == expected


@pytest.mark.parametrize("time", ["10", "m", "10 m", "-5m", "10m!", ""])
def test_what_is_no_duration_is_refused(time: str) -> None:
    with pytest.raises(ValidationError, match="time"):
        TrainingConfig(time=time)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"schedule": "cosine", "peak": 1e-3}, "needs decay_steps"),
        ({"schedule": "cosine", "peak": 1e-3, "decay_steps": 4000}, "more than warmup_steps = 4000"),
        ({"schedule": "constant"}, "needs peak"),
        ({"schedule": "constant", "peak": 1e-3, "scale": 2.0}, "Multiply peak instead"),
        ({"schedule": "constant", "peak": 1e-3, "decay_steps": 9}, "Remove it"),
        ({"peak": 1e-3}, "Set scale instead"),
        ({"warmup_steps": 0}, "Set it to 4000"),
        ({"average_last": 20}, "Keep at least 20"),
        ({"batch_tokens": 100, "micro_batch_tokens": 101}, "exceeds batch_tokens = 100"),
    ],
)
def test_impossible_settings_say_what_to_do(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        TrainingConfig.model_validate(settings)


def test_without_a_budget_patience_ends_training() -> None:
    assert TrainingConfig().allowed_patience == PATIENCE_WITHOUT_BUDGET
    assert TrainingConfig(steps=5).allowed_patience is None
    assert TrainingConfig(epochs=5).allowed_patience is None
    assert TrainingConfig(time="5m").allowed_patience is None
    assert TrainingConfig(steps=5, patience=3).allowed_patience == 3


def test_a_cosine_ends_where_it_reaches_zero() -> None:
    config = TrainingConfig(schedule="cosine", peak=1e-3, warmup_steps=10, decay_steps=50)
    assert config.step_budget == 50
    assert TrainingConfig(schedule="cosine", peak=1e-3, warmup_steps=10, decay_steps=50, steps=30).step_budget == 30


def test_what_may_change_between_starts_exists_and_is_not_part_of_the_trajectory() -> None:
    assert set(TrainingConfig.model_fields) >= MAY_CHANGE_BETWEEN_STARTS
    assert TrainingConfig(steps=7, patience=2).trajectory() == TrainingConfig(time="2h", report_every=3).trajectory()
    assert TrainingConfig(seed=2).trajectory() != TrainingConfig().trajectory()


def test_every_setting_is_explained() -> None:
    assert [name for name, setting in TrainingConfig.model_fields.items() if not setting.description] == []
