"""The demonstration with a small size: every stage runs, and an interrupted one continues."""

import json
from pathlib import Path

import pytest

from transduce.demo.demonstration import FULL, DemoSize, demonstrate, demonstrate_writing
from transduce.pipeline.planning import TrainRequest, choose_experiment, keep_experiment, read_kept_experiment
from transduce.progress import Silent

pytestmark = pytest.mark.slow

SMALL = DemoSize(pairs=300, held_out=12, training_seconds=1.0)


def test_a_demonstration_writes_model_pages_and_scores(tmp_path: Path) -> None:
    shown = demonstrate(tmp_path, SMALL, seed=1, threads=1, progress=Silent(), stop_requested=lambda: False)
    assert not shown.was_stopped
    for name in (
        "model/weights.safetensors",
        "model/README.md",
        "report.html",
        "attention.html",
        "corpus/test_long.tsv",
    ):
        assert (tmp_path / name).is_file(), name
    content = json.loads(shown.to_json())
    assert content.keys() == {"held_out", "combinations", "long", "seconds"}
    for split in ("held_out", "combinations", "long"):
        assert 0 <= content[split]["bleu"] <= 100
        assert 0 <= content[split]["exact"] <= 1
    assert content["seconds"]["total"] == pytest.approx(sum(shown.seconds.values()))
    train = {line.split("\t")[0] for line in (tmp_path / "corpus/train.tsv").read_text(encoding="utf-8").splitlines()}
    assert len(shown.examples) == 5
    assert train.isdisjoint(english for english, _, _ in shown.examples)


def test_an_interrupted_demonstration_continues_with_its_settings(tmp_path: Path) -> None:
    looked = 0

    def after_some_steps() -> bool:
        nonlocal looked
        looked += 1
        return looked > 20

    first = demonstrate(tmp_path / "a", SMALL, seed=2, threads=1, progress=Silent(), stop_requested=after_some_steps)
    assert first.was_stopped
    assert not first.scores
    settings = (tmp_path / "a/experiment.toml").read_text(encoding="utf-8")
    second = demonstrate(tmp_path / "a", SMALL, seed=2, threads=1, progress=Silent(), stop_requested=lambda: False)
    assert second.scores
    assert (tmp_path / "a/experiment.toml").read_text(encoding="utf-8") == settings


def test_a_demonstration_without_a_checkpoint_measures_again(tmp_path: Path) -> None:
    begun = choose_experiment(
        TrainRequest(preset="demo", sections={"data": {"train": ["left.tsv"]}}), tmp_path, progress=Silent()
    )
    keep_experiment(begun.experiment, tmp_path)
    never_long = DemoSize(pairs=300, held_out=12, training_seconds=1e-9, fewest_steps=16)
    demonstrate(tmp_path, never_long, seed=2, threads=1, progress=Silent(), stop_requested=lambda: True)
    assert read_kept_experiment(tmp_path).training.decay_steps == 16


def test_the_number_of_steps_fits_the_time_within_bounds() -> None:
    assert FULL.steps(0.04) == 3_000
    assert FULL.steps(2.0) == 800
    assert FULL.steps(1e-4) == 8_000


def test_a_language_model_learns_the_english_side_and_writes(tmp_path: Path) -> None:
    size = DemoSize(pairs=300, held_out=12, training_seconds=1.0)
    shown = demonstrate_writing(tmp_path, size, seed=1, threads=1, progress=Silent(), stop_requested=lambda: False)
    assert shown.bits_per_character is not None
    assert 0 < shown.bits_per_character < 5  # 5 bits choose among 32 characters
    assert len(shown.written) == 5
    assert all("\n" not in rest for _, rest in shown.written)
    assert (tmp_path / "attention.html").is_file()
    assert json.loads(shown.to_json())["bits_per_character"] == shown.bits_per_character
