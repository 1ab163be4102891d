"""Which experiment a run is, and what may change once it has begun."""

from pathlib import Path

import pytest

from transduce.errors import ConfigError, RunError
from transduce.pipeline.planning import (
    Choice,
    Request,
    alters_the_trajectory,
    choose_experiment,
    choose_preset,
    keep_experiment,
    read_kept_experiment,
)
from transduce.progress import Silent


def corpus(folder: Path, pairs: int = 30) -> Path:
    path = folder / "corpus.tsv"
    path.write_text("".join(f"word {n}\tWort {n}\n" for n in range(pairs)), encoding="utf-8")
    return path


def begun(folder: Path, *overrides: str) -> tuple[Path, Choice]:
    request = Request(overrides=overrides, sections={"data": {"train": [str(corpus(folder))]}})
    choice = choose_experiment(request, folder / "run", progress=Silent())
    keep_experiment(choice.experiment, folder / "run")
    return folder / "run", choice


def test_a_small_corpus_gets_the_tiny_preset_and_a_reason(tmp_path: Path) -> None:
    _, choice = begun(tmp_path)
    assert choice.preset == "tiny"
    assert "30 pairs are few" in choice.reason
    assert [choose_preset(pairs)[0] for pairs in (0, 59_999, 60_000, 999_999, 10**6)] == [
        "tiny",
        "tiny",
        "small",
        "small",
        "base",
    ]


def test_a_run_goes_on_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    corpus(tmp_path)
    request = Request(sections={"data": {"train": ["corpus.tsv"]}})
    keep_experiment(choose_experiment(request, Path("run"), progress=Silent()).experiment, Path("run"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    kept = read_kept_experiment(Path("../run"))
    assert kept.data.train == (str(tmp_path / "corpus.tsv"),)
    monkeypatch.chdir(tmp_path)
    again = choose_experiment(request, Path("run"), progress=Silent())
    assert again.goes_on
    assert again.experiment == kept


def test_budgets_may_change_and_what_alters_the_weights_may_not(tmp_path: Path) -> None:
    run, choice = begun(tmp_path, "training.steps=10")
    more = choose_experiment(Request(overrides=["training.steps=20"]), run, progress=Silent())
    assert (more.goes_on, more.experiment.training.steps) == (True, 20)
    assert choose_experiment(Request(), run, progress=Silent()).experiment == choice.experiment
    with pytest.raises(RunError) as caught:
        choose_experiment(Request(overrides=["training.seed=5", "model.dropout=0.2"]), run, progress=Silent())
    message = str(caught.value)
    assert "training.seed: 1 in the run, 5 now" in message
    assert "model.dropout: 0.3 in the run, 0.2 now" in message
    assert "give another --output" in message
    assert "--start-from" in message


@pytest.mark.parametrize(
    ("key", "alters"),
    [
        ("training.steps", False),
        ("training.patience", False),
        ("training.validate_every", False),
        ("decoding.beam", False),
        ("training.batch_tokens", True),
        ("model.heads", True),
        ("data.train", True),
    ],
)
def test_keys_that_alter_the_trajectory(key: str, alters: bool) -> None:
    assert alters_the_trajectory(key) is alters


def test_nothing_to_learn_from_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds no run yet, so say what to learn from"):
        choose_experiment(Request(), tmp_path / "run", progress=Silent())
    with pytest.raises(ConfigError, match="There is no training text"):
        choose_experiment(Request(preset="tiny"), tmp_path / "run", progress=Silent())
    with pytest.raises(RunError, match="is not a run"):
        read_kept_experiment(tmp_path)
