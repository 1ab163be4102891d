"""The claims' trainings run, resume and are read back."""

from pathlib import Path

import pytest

from transduce.demo import write_corpus
from transduce.paper import Claim, ClaimRunner, claims
from transduce.paper.experiments import settings_of
from transduce.paper.texts import Part
from transduce.progress import Silent

SMALL = [
    "model.layers=1", "model.d_model=16", "model.d_ff=16", "model.heads=1", "model.vocabulary_size=300",
    "training.batch_tokens=256", "training.steps=4", "training.validate_every=2", "training.checkpoint_every=2",
]  # fmt: skip


def test_the_settings_of_every_experiment_are_valid() -> None:
    from transduce.experiment import resolve_experiment

    for claim in claims():
        for run in claim.runs if claim.study is None else ():
            resolve_experiment(preset=claim.presets.get(run), overrides=settings_of(claim, run))


def test_every_study_exists() -> None:
    from transduce.paper.studies import STUDIES

    assert {claim.study for claim in claims()} - {None} == set(STUDIES)


def test_a_finding_is_kept_and_not_made_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from transduce.paper import studies
    from transduce.paper.finding import Finding, StudyContext

    calls = []

    def study(run: str, context: StudyContext) -> Finding:
        calls.append((run, context.seed))
        return Finding(2.0 * context.seed, "a unit", {"more": 1.0}, [[8.0, 1.0 * context.seed]])

    monkeypatch.setattr(studies, "STUDIES", {"ours": study})
    claim = Claim("name", "table1", "text", "sign", "nothing", {"a run": []}, study="ours")
    for _ in range(2):
        runner = ClaimRunner(tmp_path, corpora={}, seeds=2, budget=60.0, progress=Silent())
        found = runner.run(claim, stop_requested=lambda: False)["name/a run"]
        assert (found.number, found.range, found.seeds) == (3.0, [2.0, 4.0], [1, 2])
        assert found.points == [[8.0, 1.5, 1.0, 2.0]]
    assert calls == [("a run", 1), ("a run", 2)]


def test_a_part_is_the_beginning_or_the_shorter_sentences(tmp_path: Path) -> None:
    lines = [f"{'a ' * length}\tb {number}" for number, length in enumerate([5, 1, 2, 4, 3] * 4)]
    corpora = {}
    for split in ("train", "valid"):
        (tmp_path / f"{split}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        corpora[split] = str(tmp_path / f"{split}.tsv")

    def lengths(part: Part, split: str) -> list[int]:
        written = part.written(corpora, tmp_path / str(part))
        assert part.written(dict.fromkeys(corpora, "gone"), tmp_path / str(part)) == written
        return [line.partition("\t")[0].count("a") for line in Path(written[split]).read_text("utf-8").splitlines()]

    assert lengths(Part(pairs=3), "train") == [5, 1, 2]
    assert len(lengths(Part(pairs=3), "valid")) == 20
    assert set(lengths(Part(shorter=0.6), "train")) == {1, 2, 3}
    assert set(lengths(Part(shorter=0.6), "valid")) == {4, 5}


@pytest.mark.slow
def test_a_claim_is_run_within_its_budget_and_not_twice(tmp_path: Path) -> None:
    write_corpus(tmp_path, pairs=300, held_out=20)
    corpora = {split: str(tmp_path / f"{split}.tsv") for split in ("train", "valid")}
    claim = Claim(
        "depth", "table3", "deeper is better", "sign", "nothing", {"base": SMALL, "N 2": [*SMALL, "model.layers=2"]}
    )

    def run(budget: float) -> dict[str, float]:
        runner = ClaimRunner(tmp_path / "runs", corpora=corpora, seeds=1, budget=budget, progress=Silent())
        return {name: found.number for name, found in runner.run(claim, stop_requested=lambda: False).items()}

    assert run(-1.0) == {}
    first = run(600.0)
    assert first.keys() == {"depth/base", "depth/N 2"}
    written = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("metrics.jsonl")}
    assert run(-1.0) == first
    assert written == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("metrics.jsonl")}
