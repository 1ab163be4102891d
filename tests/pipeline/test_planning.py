"""Which experiment a run is, and what may change once it has begun."""

from pathlib import Path
from typing import Any

import pytest

from transduce.errors import ConfigError, ModelError, RunError
from transduce.model import ModelConfig, Transformer
from transduce.model_directory import Description, save_model
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
from transduce.text.tokenizer import Tokenizer


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


def test_starting_from_a_model_takes_its_sizes_and_tokenizer(tmp_path: Path) -> None:
    tokenizer = Tokenizer.learn(["word Wort"] * 3, vocabulary_size=300)
    config = ModelConfig(vocabulary_size=tokenizer.vocabulary_size, d_model=6, heads=3, d_ff=5, layers=1)
    parameters = {name: parameter.detach() for name, parameter in Transformer(config).named_parameters()}
    model = tmp_path / "model"
    save_model(model, Description(architecture=config), parameters, tokenizer=tokenizer, card="")
    sections: dict[str, dict[str, Any]] = {
        "data": {"train": [str(corpus(tmp_path))]},
        "training": {"start_from": str(model)},
    }
    request = Request(sections=sections, overrides=["model.dropout=0.3"])
    experiment = choose_experiment(request, tmp_path / "run", progress=Silent()).experiment
    assert experiment.model == config.model_copy(update={"dropout": 0.3})
    assert experiment.data.tokenizer == model / "tokenizer.model"
    with pytest.raises(
        ConfigError, match=r"has other sizes than this experiment asks for: .*model\.d_model = 6, not 128"
    ):
        choose_experiment(Request(preset="tiny", sections=sections), tmp_path / "run", progress=Silent())
    missing = {**sections, "training": {"start_from": str(tmp_path / "nowhere")}}
    with pytest.raises(ModelError, match="There is no model at"):
        choose_experiment(Request(sections=missing), tmp_path / "run", progress=Silent())
