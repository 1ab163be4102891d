"""Which experiment a run is, and what may change once it has begun."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from transduce.data.preparation import prepare
from transduce.errors import ConfigError, ModelError, RunError
from transduce.model import ModelConfig, Transformer
from transduce.model_directory import Description, save_model
from transduce.pipeline.planning import (
    Choice,
    TrainRequest,
    alters_the_trajectory,
    choose_experiment,
    choose_preset,
    has_learned,
    keep_experiment,
    read_kept_experiment,
)
from transduce.progress import Silent
from transduce.text.bpe_tokenizer import BpeTokenizer
from transduce.text.tokenizer_pair import TokenizerPair


def corpus(folder: Path, pairs: int = 30) -> Path:
    path = folder / "corpus.tsv"
    path.write_text("".join(f"word {n}\tWort {n}\n" for n in range(pairs)), encoding="utf-8")
    return path


def begun(folder: Path, *overrides: str) -> tuple[Path, Choice]:
    request = TrainRequest(overrides=overrides, sections={"data": {"train": [str(corpus(folder))]}})
    choice = choose_experiment(request, folder / "run", progress=Silent())
    keep_experiment(choice.experiment, folder / "run")
    (folder / "run" / "checkpoints" / "step-00000001").mkdir(parents=True)
    return folder / "run", choice


@pytest.mark.parametrize(
    "learned", ["model", "checkpoints/step-00000020", "teachers/backward/checkpoints/step-00000020"]
)
def test_until_there_is_something_to_lose_a_run_may_be_named_anew(tmp_path: Path, learned: str) -> None:
    run = tmp_path / "run"
    mistaken = TrainRequest(preset="tiny", sections={"data": {"train": ["corpus.tvs"]}}, overrides=["training.seed=3"])
    begun = choose_experiment(mistaken, run, progress=Silent()).experiment
    keep_experiment(begun, run)
    # "base" has another schedule, for which tiny's peak would be a fault
    right = TrainRequest(preset="base", sections={"data": {"train": [str(corpus(tmp_path))]}})
    again = choose_experiment(right, run, progress=Silent())
    assert again == choose_experiment(right, tmp_path / "another", progress=Silent())
    keep_experiment(again.experiment, run)
    (run / learned).mkdir(parents=True)
    with pytest.raises(RunError, match=r"data\.train"):
        choose_experiment(TrainRequest(sections={"data": {"train": ["corpus.tvs"]}}), run, progress=Silent())
    with pytest.raises(RunError, match=r"training\.seed was 1 and is now 3"):
        keep_experiment(begun, run)  # chosen before, by a process that waited for the lock meanwhile
    assert choose_experiment(TrainRequest(), run, progress=Silent()).resumes


def test_a_save_that_was_not_finished_is_nothing_to_lose(tmp_path: Path) -> None:
    (tmp_path / "experiment.toml").touch()
    (tmp_path / "checkpoints" / "step-00000020.being-written-1").mkdir(parents=True)
    assert not has_learned(tmp_path)


def test_what_names_no_text_changes_nothing_of_a_run_that_has_learned_nothing(tmp_path: Path) -> None:
    """Laid over what is kept, it could give a mixture that was not asked for."""
    begin = TrainRequest(overrides=["training.seed=7"], sections={"data": {"train": [str(corpus(tmp_path))]}})
    choice = choose_experiment(begin, tmp_path / "run", progress=Silent())
    keep_experiment(choice.experiment, tmp_path / "run")
    small_model(tmp_path / "model")
    for request in (
        TrainRequest(overrides=["training.seed=4"]),
        TrainRequest(preset="small"),
        TrainRequest(sections={"training": {"start_from": str(tmp_path / "model")}}),
    ):
        with pytest.raises((RunError, ConfigError)):
            choose_experiment(request, tmp_path / "run", progress=Silent())
    the_same_text = TrainRequest(sections=begin.sections)
    assert choose_experiment(the_same_text, tmp_path / "run", progress=Silent()).experiment == choice.experiment


@pytest.mark.parametrize("section", ["data", "training"])
def test_a_section_that_is_none_is_told(tmp_path: Path, section: str) -> None:
    (tmp_path / "mine.toml").write_text(f"{section} = 3\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=f"{section} = 3"):
        choose_experiment(TrainRequest(file=tmp_path / "mine.toml"), tmp_path / "run", progress=Silent())


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


def test_text_alone_gets_a_language_model_even_if_sizes_are_given(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("to be or not to be\n" * 30, encoding="utf-8")
    request = TrainRequest(
        overrides=("model.vocabulary_size=500",), sections={"data": {"text": [str(tmp_path / "text.txt")]}}
    )
    choice = choose_experiment(request, tmp_path / "run", progress=Silent())
    assert (choice.preset, choice.experiment.model.kind) == ("gpt-tiny", "language-model")
    assert choice.experiment.model.vocabulary_size == 500


def test_a_run_goes_on_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    corpus(tmp_path)
    request = TrainRequest(sections={"data": {"train": ["corpus.tsv"]}})
    keep_experiment(choose_experiment(request, Path("run"), progress=Silent()).experiment, Path("run"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    kept = read_kept_experiment(Path("../run"))
    assert kept.data.train == (str(tmp_path / "corpus.tsv"),)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run" / "model").mkdir()
    again = choose_experiment(request, Path("run"), progress=Silent())
    assert again.resumes
    assert again.experiment == kept


def test_budgets_may_change_and_what_alters_the_weights_may_not(tmp_path: Path) -> None:
    run, choice = begun(tmp_path, "training.steps=10")
    more = choose_experiment(TrainRequest(overrides=["training.steps=20"]), run, progress=Silent())
    assert (more.resumes, more.experiment.training.steps) == (True, 20)
    assert choose_experiment(TrainRequest(), run, progress=Silent()).experiment == choice.experiment
    with pytest.raises(RunError) as caught:
        choose_experiment(TrainRequest(overrides=["training.seed=5", "model.dropout=0.2"]), run, progress=Silent())
    message = str(caught.value)
    assert "training.seed was 1 and is now 5" in message
    assert "model.dropout was 0.3 and is now 0.2" in message
    assert "give another --output" in message
    assert "--start-from" in message


@pytest.mark.parametrize(
    ("defaults", "used", "what"),
    [
        ("risk_peak = 0.0005\nrisk_candidates = 8\n", "risk_steps = 300\n", r"risk_steps: minimum risk training was"),
        ("r_drop = 0.0\n", "", ""),
        ("", "r_drop = 1.0\n", r"r_drop: R-Drop was"),
    ],
)
def test_a_run_of_a_version_with_more_settings_goes_on_unless_it_used_them(
    tmp_path: Path, defaults: str, used: str, what: str
) -> None:
    run, choice = begun(tmp_path)
    file = run / "experiment.toml"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("[training]\n", f"[training]\n{defaults}"), encoding="utf-8")
    assert read_kept_experiment(run) == choice.experiment
    assert choose_experiment(TrainRequest(), run, progress=Silent()).experiment == choice.experiment
    if not used:
        return
    file.write_text(text.replace("[training]\n", f"[training]\n{used}{defaults}"), encoding="utf-8")
    for command in (
        lambda: read_kept_experiment(run),
        lambda: choose_experiment(TrainRequest(), run, progress=Silent()),
    ):
        with pytest.raises(ConfigError, match=rf"training\.{what} removed\. Delete"):
            command()


def prepared(run: Path, choice: Choice) -> Path:
    prepare(choice.experiment.data, run / "data", vocabulary_size=300)
    return Path(choice.experiment.data.train[0])


def named(run: Path, *files: Path) -> Choice:
    sections = {"data": {"train": [str(file) for file in files]}}
    return choose_experiment(TrainRequest(sections=sections), run, progress=Silent())


def test_a_run_goes_on_with_its_text_in_another_place(tmp_path: Path) -> None:
    run, choice = begun(tmp_path)
    text = prepared(run, choice)
    (tmp_path / "elsewhere").mkdir()
    moved = text.rename(tmp_path / "elsewhere" / "renamed.tsv")
    assert named(run, moved).experiment == choice.experiment


def test_a_run_is_refused_other_text_wherever_it_lies(tmp_path: Path) -> None:
    run, choice = begun(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    copy = corpus(tmp_path / "elsewhere")
    with pytest.raises(RunError, match=r"data\.train"):
        named(run, copy)  # nothing was prepared, so nothing tells what the text was
    text = prepared(run, choice)
    assert named(run, copy).experiment == choice.experiment
    with pytest.raises(RunError, match=r"data\.train"):
        named(run, copy, text)
    with pytest.raises(RunError, match=r"data\.train"):
        named(run, copy.with_name("nowhere.tsv"))
    copy.write_text(copy.read_text(encoding="utf-8").replace("Wort 7", "Wort 8"), encoding="utf-8")
    with pytest.raises(RunError, match=r"data\.train"):
        named(run, copy)
    corpus(tmp_path / "elsewhere")
    whole = text.read_text(encoding="utf-8")
    text.write_text("other\tanderes\n", encoding="utf-8")
    with pytest.raises(RunError, match=r"data\.train"):  # going on would prepare again from what lies in the old place
        named(run, copy)
    text.write_text(whole, encoding="utf-8")
    assert named(run, copy).resumes
    changed = choice.experiment.data.model_copy(update={"max_length": 9})
    prepare(changed, run / "data", vocabulary_size=300)
    with pytest.raises(RunError, match=r"data\.train"):  # what is prepared is another run's
        named(run, copy)


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
        ("data.expected_pairs", False),
    ],
)
def test_keys_that_alter_the_trajectory(key: str, alters: bool) -> None:
    assert alters_the_trajectory(key) is alters


def test_nothing_to_learn_from_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"holds no run yet\. Name the training text"):
        choose_experiment(TrainRequest(), tmp_path / "run", progress=Silent())
    with pytest.raises(ConfigError, match="There is no training text"):
        choose_experiment(TrainRequest(preset="tiny"), tmp_path / "run", progress=Silent())
    with pytest.raises(RunError, match="is not a run"):
        read_kept_experiment(tmp_path)


def small_model(folder: Path) -> ModelConfig:
    tokenizer = BpeTokenizer.learn(["word Wort"] * 3, vocabulary_size=300)
    config = ModelConfig(vocabulary_size=tokenizer.vocabulary_size, d_model=6, heads=3, d_ff=5, layers=1)
    parameters = {name: parameter.detach() for name, parameter in Transformer(config).named_parameters()}
    save_model(
        folder, Description(architecture=config), parameters, tokenizers=TokenizerPair.shared(tokenizer), card=""
    )
    return config


def test_the_command_that_started_from_a_model_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    small_model(tmp_path / "earlier" / "model")
    small_model(tmp_path / "other")
    begin: dict[str, dict[str, Any]] = {
        "data": {"train": [str(corpus(tmp_path))]},
        "training": {"start_from": "earlier"},
    }
    choice = choose_experiment(TrainRequest(sections=begin), Path("run"), progress=Silent())
    keep_experiment(choice.experiment, Path("run"))
    Path("run/model").mkdir()
    assert (
        choose_experiment(TrainRequest(sections=begin), Path("run"), progress=Silent()).experiment == choice.experiment
    )
    with pytest.raises(RunError, match=r"training\.start_from"):
        choose_experiment(TrainRequest(sections={"training": {"start_from": "other"}}), Path("run"), progress=Silent())
    prepare(choice.experiment.data, Path("run/data"), vocabulary_size=300)
    copy = TrainRequest(
        sections={"data": {"tokenizer": "other/tokenizer.model"}}
    )  # learned of the same text, so the same
    assert choose_experiment(copy, Path("run"), progress=Silent()).experiment == choice.experiment
    Path("earlier/model/tokenizer.model").write_bytes(b"another one")
    with pytest.raises(RunError, match=r"data\.tokenizer"):
        choose_experiment(copy, Path("run"), progress=Silent())
    shutil.rmtree("earlier")
    assert choose_experiment(copy, Path("run"), progress=Silent()).experiment == choice.experiment
    assert (
        choose_experiment(TrainRequest(sections=begin), Path("run"), progress=Silent()).experiment == choice.experiment
    )


def test_starting_from_a_model_takes_its_sizes_and_tokenizer(tmp_path: Path) -> None:
    model = tmp_path / "model"
    config = small_model(model)
    sections: dict[str, dict[str, Any]] = {
        "data": {"train": [str(corpus(tmp_path))]},
        "training": {"start_from": str(model)},
    }
    request = TrainRequest(sections=sections, overrides=["model.dropout=0.3"])
    experiment = choose_experiment(request, tmp_path / "run", progress=Silent()).experiment
    assert experiment.model == config.model_copy(update={"dropout": 0.3})
    assert experiment.data.tokenizer == model / "tokenizer.model"
    with pytest.raises(ConfigError, match=r"has other sizes than this experiment: .*model\.d_model = 6, not 128"):
        choose_experiment(TrainRequest(preset="tiny", sections=sections), tmp_path / "run", progress=Silent())
    missing = {**sections, "training": {"start_from": str(tmp_path / "nowhere")}}
    with pytest.raises(ModelError, match="There is no model at"):
        choose_experiment(TrainRequest(sections=missing), tmp_path / "run", progress=Silent())
