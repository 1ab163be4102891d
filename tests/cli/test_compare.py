"""`transduce compare` as a user meets it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from transduce.cli.comparison_tables import letter_of, sparkline
from transduce.errors import ConfigError, RunError
from transduce.evaluation.comparison import Curve
from transduce.evaluation.protocols import detokenised
from transduce.evaluation.record import EvaluationRecord, hash_of_lines, write_evaluation
from transduce.evaluation.scores import score
from transduce.experiment import resolve_experiment, write_toml

Command = Callable[..., Result]
REFERENCES = ["the quick brown fox jumps over the dog", "it rains in the old garden", "two cats sleep all day"] * 5


def make_run(folder: Path, *settings: str, hypotheses: list[str] | None = None, losses: tuple[float, ...] = ()) -> Path:
    folder.mkdir(parents=True)
    experiment = resolve_experiment(preset="tiny", overrides=settings)
    (folder / "experiment.toml").write_text(write_toml(experiment), encoding="utf-8")
    with (folder / "metrics.jsonl").open("w", encoding="utf-8") as file:
        for number, loss in enumerate(losses, start=1):
            file.write(json.dumps({"kind": "train", "step": 100 * number, "loss": 9.0}) + "\n")
            file.write(json.dumps({"kind": "valid", "step": 100 * number, "loss": loss, "bleu": 40 - loss}) + "\n")
    if hypotheses is not None:
        record = EvaluationRecord(
            system=str(folder),
            test="data/test.en,data/test.de",
            data={"sources": hash_of_lines(REFERENCES)},
            sentences=len(REFERENCES),
            protocol="detokenised",
            scores=score(hypotheses, [REFERENCES], protocol=detokenised()),
        )
        write_evaluation(folder / "model", record, hypotheses=hypotheses, references=[REFERENCES])
    return folder


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    monkeypatch.chdir(tmp_path)
    good = [*REFERENCES[:-1], "cats sleep"]
    better = [*REFERENCES[:-1], "two cats sleep a day"]
    make_run(Path("runs/one"), hypotheses=good, losses=(5.0, 3.0, 2.5, 2.75))
    make_run(Path("runs/two"), "training.seed=2", hypotheses=better, losses=(5.0, 3.5))
    make_run(Path("runs/three"), "model.heads=2", hypotheses=[line[:11] for line in REFERENCES])
    return [Path("runs/one"), Path("runs/two"), Path("runs/three")]


def test_a_page_holds_the_same_numbers(transduce: Command, runs: list[Path]) -> None:
    result = transduce("compare", *runs, "--json", "--html", "page.html")
    assert result.exception is None, result.output
    found = json.loads(result.stdout)
    page = Path("page.html").read_text(encoding="utf-8")
    content = json.loads(page.split('id="content">')[1].split("</script>")[0])
    assert content["facts"] == [["A", "runs/one"], ["B", "runs/two"], ["C", "runs/three"]]
    loss = content["curves"][0]["series"]
    assert [own["name"] for own in loss] == ["A", "B"]
    assert loss[0]["points"] == [[100, 5.0], [200, 3.0], [300, 2.5], [400, 2.75]]
    tables = {table["title"]: table["rows"] for table in content["tables"]}
    assert [row[2:] for row in tables["Scores"]] == [[f"{v:.2f}" for v in row["values"]] for row in found["scores"]]
    assert len(tables["Against A, by paired bootstrap"]) == len(found["differences"])


def test_everything_is_shown_in_80_columns(transduce: Command, runs: list[Path]) -> None:
    result = transduce("compare", *runs)
    assert result.exception is None, result.output
    text = result.stdout
    assert all(len(line) <= 80 for line in text.splitlines())
    squeezed = [" ".join(line.split()) for line in text.splitlines()]
    assert squeezed[:3] == ["A runs/one", "B runs/two", "C runs/three"]
    assert "training.seed 1 2 1" in squeezed
    assert any(line.startswith("model.heads 4 4 2") for line in squeezed)
    assert any(line.startswith("A, B test.de BLEU") for line in squeezed), "only A and B differ in nothing but the seed"
    assert any(line.startswith("C test.de BLEU -") and line.endswith("worse") for line in squeezed)
    assert any(line.endswith("5.000 2.750 2.500 300") for line in squeezed), "first, last, best, and its step"
    assert "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|" in text


def test_json_holds_the_same(transduce: Command, runs: list[Path]) -> None:
    found = json.loads(transduce("compare", *runs, "--json", "--samples", "100").stdout)
    assert found["runs"] == ["runs/one", "runs/two", "runs/three"]
    assert {row["key"]: row["values"] for row in found["settings"]} == {
        "training.seed": [1, 2, 1],
        "model.heads": [4, 4, 2],
    }
    bleu = next(row for row in found["scores"] if row["name"] == "BLEU")
    assert len(bleu["values"]) == 3
    (spread,) = (row for row in found["seeds"] if row["name"] == "BLEU")
    assert spread["runs"] == ["runs/one", "runs/two"]
    assert spread["mean"] == pytest.approx(sum(bleu["values"][:2]) / 2)
    assert {row["system"] for row in found["differences"]} == {"runs/two", "runs/three"}
    assert [curve["values"] for curve in found["curves"] if curve["name"] == "valid/loss"] == [
        [5.0, 3.0, 2.5, 2.75],
        [5.0, 3.5],
    ]


def test_runs_without_scores_say_what_to_do(transduce: Command, tmp_path: Path) -> None:
    first, second = make_run(tmp_path / "a"), make_run(tmp_path / "b")
    text = transduce("compare", first, second).stdout
    assert "All settings are the same." in text
    assert "No run has scores yet. Score each one with: transduce evaluate RUN TEST" in text


def test_one_run_or_the_same_run_twice_is_no_comparison(transduce: Command, runs: list[Path]) -> None:
    for given in ([runs[0]], [runs[0], runs[0].absolute()]):
        result = transduce("compare", *given)
        assert isinstance(result.exception, ConfigError)
        assert "at least two runs: transduce compare runs/a runs/b" in str(result.exception)


def test_what_is_no_run_is_named(transduce: Command, runs: list[Path], tmp_path: Path) -> None:
    result = transduce("compare", runs[0], tmp_path / "nothing")
    assert isinstance(result.exception, RunError)
    assert "nothing is not a run: it has no experiment.toml" in str(result.exception)


def test_a_sparkline_shares_its_scale_with_the_others() -> None:
    curve = Curve(run="a", name="valid/loss", steps=(10, 20, 30), values=(8.0, 4.0, 1.0))
    line = sparkline(curve, last_step=60, lowest=1.0, highest=8.0)
    assert [bar for bar in line if bar != " "] == ["█", "▄", "▁"]
    assert line.index("▁") == len(line) // 2, "half of the steps, half of the width"
    flat = Curve(run="a", name="valid/loss", steps=(1,), values=(2.0,))
    assert "▁" in sparkline(flat, last_step=1, lowest=2.0, highest=2.0)


def test_runs_have_letters() -> None:
    assert [letter_of(place) for place in (0, 25, 26, 52)] == ["A", "Z", "A2", "A3"]
