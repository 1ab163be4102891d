"""The claims' trainings run, resume and are read back."""

from pathlib import Path

import pytest

from transduce.demo import write_corpus
from transduce.paper import Claim, ClaimRunner, claims
from transduce.paper.experiments import common_settings
from transduce.progress import Silent

SMALL = [
    "model.layers=1", "model.d_model=16", "model.d_ff=16", "model.heads=1", "model.vocabulary_size=300",
    "training.batch_tokens=256", "training.steps=4", "training.validate_every=2", "training.checkpoint_every=2",
]  # fmt: skip


def test_the_settings_of_every_experiment_are_valid() -> None:
    from transduce.experiment import resolve_experiment

    for claim in claims():
        for settings in claim.runs.values():
            resolve_experiment(overrides=[*common_settings(), *settings])


@pytest.mark.slow
def test_a_claim_is_run_within_its_budget_and_not_twice(tmp_path: Path) -> None:
    write_corpus(tmp_path, pairs=300, held_out=20)
    corpora = {split: str(tmp_path / f"{split}.tsv") for split in ("train", "valid")}
    claim = Claim("depth", "table3", "deeper is better", "sign", {"base": SMALL, "N 2": [*SMALL, "model.layers=2"]})

    def run(budget: float) -> dict[str, float]:
        runner = ClaimRunner(tmp_path / "runs", corpora=corpora, seeds=1, budget=budget, progress=Silent())
        return {name: found.number for name, found in runner.run(claim, stop_requested=lambda: False).items()}

    assert run(-1.0) == {}
    first = run(600.0)
    assert first.keys() == {"depth/base", "depth/N 2"}
    written = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("metrics.jsonl")}
    assert run(-1.0) == first
    assert written == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("metrics.jsonl")}
