"""Experiments: presets, precedence, faults, and the list of settings."""

import re
import tomllib
from pathlib import Path

import pytest

from transduce import experiment
from transduce.architectures import CONFIGS
from transduce.errors import ConfigError
from transduce.experiment import ExperimentConfig, resolve_experiment, write_toml
from transduce.model.config import ModelConfig
from transduce.networks.cost import parameter_count
from transduce.rivals.rnnsearch_config import RnnSearchConfig

# Table 3, the columns that are not blank: N, d_model, d_ff, h, d_k, d_v, P_drop, eps_ls, steps.
BASE = {
    "layers": 6,
    "d_model": 512,
    "d_ff": 2048,
    "heads": 8,
    "d_k": 64,
    "d_v": 64,
    "dropout": 0.1,
    "eps": 0.1,
    "steps": 100_000,
}
TABLE_3: dict[str, dict[str, float]] = {
    "base": {},
    "table3-A1": {"heads": 1, "d_k": 512, "d_v": 512},
    "table3-A2": {"heads": 4, "d_k": 128, "d_v": 128},
    "table3-A3": {"heads": 16, "d_k": 32, "d_v": 32},
    "table3-A4": {"heads": 32, "d_k": 16, "d_v": 16},
    "table3-B1": {"d_k": 16},
    "table3-B2": {"d_k": 32},
    "table3-C1": {"layers": 2},
    "table3-C2": {"layers": 4},
    "table3-C3": {"layers": 8},
    "table3-C4": {"d_model": 256, "d_k": 32, "d_v": 32},
    "table3-C5": {"d_model": 1024, "d_k": 128, "d_v": 128},
    "table3-C6": {"d_ff": 1024},
    "table3-C7": {"d_ff": 4096},
    "table3-D1": {"dropout": 0.0},
    "table3-D2": {"dropout": 0.2},
    "table3-D3": {"eps": 0.0},
    "table3-D4": {"eps": 0.2},
    "table3-E": {},
    "big": {"d_model": 1024, "d_ff": 4096, "heads": 16, "dropout": 0.3, "steps": 300_000},
}


@pytest.mark.parametrize("name", TABLE_3)
def test_presets_are_the_rows_of_table_3(name: str) -> None:
    preset = resolve_experiment(preset=name)
    model, training = preset.model, preset.training
    assert isinstance(model, ModelConfig)
    found = {
        "layers": model.layers,
        "d_model": model.d_model,
        "d_ff": model.d_ff,
        "heads": model.heads,
        "d_k": model.query_width,
        "d_v": model.value_width,
        "dropout": model.dropout,
        "eps": training.label_smoothing,
        "steps": training.steps,
    }
    assert found == {**BASE, **TABLE_3[name]}
    assert model.positions == ("learned" if name == "table3-E" else "sinusoidal")
    assert model.norm == "post"
    assert (training.warmup_steps, training.batch_tokens) == (4000, 25_000)
    assert (training.beta1, training.beta2, training.epsilon) == (0.9, 0.98, 1e-9)
    assert (preset.decoding.beam, preset.decoding.length_penalty, preset.decoding.extra_length) == (4, 0.6, 50)


def test_averaging_follows_section_6_and_table_3() -> None:
    averaged = {name: resolve_experiment(preset=name).training.average_last for name in ("base", "big", "table3-C1")}
    assert averaged == {"base": 5, "big": 20, "table3-C1": 1}


def test_every_preset_is_valid() -> None:
    for name in experiment.preset_names():
        assert isinstance(resolve_experiment(preset=name), ExperimentConfig)


def test_precedence_is_preset_then_file_then_set(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('preset = "base"\n[model]\nlayers = 3\nheads = 4\n', encoding="utf-8")
    resolved = resolve_experiment(file, overrides=["model.heads=2", "training.time=2h", "data.source_language=en"])
    assert isinstance(resolved.model, ModelConfig)
    assert (resolved.model.d_ff, resolved.model.layers, resolved.model.heads) == (2048, 3, 2)
    assert (resolved.training.time, resolved.data.source_language) == ("2h", "en")
    assert resolve_experiment(file, preset="small").model.d_model == 256


def test_each_kind_of_network_has_its_own_keys() -> None:
    kinds = {setting.kind for setting in experiment.settings() if setting.key == "model.kind"}
    assert kinds == set(CONFIGS)
    recurrent = resolve_experiment(overrides=["model.kind=rnnsearch", "model.embedding_width=7"])
    assert isinstance(recurrent.model, RnnSearchConfig)
    with pytest.raises(ConfigError, match=r"model\.heads: unknown"):
        resolve_experiment(overrides=["model.kind=rnnsearch", "model.heads=2"])
    with pytest.raises(
        ConfigError, match=r"model\.kind = 'lstn': there is no such network\. There are: transformer, lstm"
    ):
        resolve_experiment(overrides=["model.kind=lstn"])


def test_a_table_is_replaced_and_not_added_to(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('[data.expected_pairs]\n"a.tsv" = 7\n', encoding="utf-8")
    assert resolve_experiment(file).data.expected_pairs == {"a.tsv": 7}
    assert resolve_experiment(file, overrides=["data.expected_pairs={}"]).data.expected_pairs == {}
    other = resolve_experiment(file, overrides=['data.expected_pairs={"b.tsv"=3}'])
    assert other.data.expected_pairs == {"b.tsv": 3}


def test_all_faults_are_listed_at_once_with_their_keys(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        "[model]\nhead = 4\nd_model = -1\n[training]\nstep = 10\nlabel_smoothing = 2\n[dekoding]\n", encoding="utf-8"
    )
    with pytest.raises(ConfigError) as caught:
        resolve_experiment(file)
    message = str(caught.value)
    assert "mine.toml has 5 faults" in message
    assert "model.head: unknown (did you mean model.heads?)" in message
    assert "model.d_model = -1: Input should be greater than 0" in message
    assert "training.step: unknown (did you mean training.steps?)" in message
    assert "training.label_smoothing = 2: " in message
    assert "dekoding: unknown" in message


def test_a_validator_speaks_with_its_key() -> None:
    with pytest.raises(ConfigError, match=r"model: d_model = 512 cannot be shared equally by 7 heads\. Set it to 511"):
        resolve_experiment(overrides=["model.heads=7"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[model\n", "is not valid TOML: .* line 1"),
        (b'[data]\ntrain = ["a.tsv" "b.tsv"]\n', "line 2, .* just before it for a missing comma"),
        (b"\xff\xfe", "is not UTF-8"),
        (b"preset = 3\n", "preset must be a name"),
        (b'preset = "bas"\n', r"no preset 'bas' \(did you mean base\?\)"),
    ],
)
def test_files_that_are_no_experiment(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "broken.toml"
    file.write_bytes(content)
    with pytest.raises(ConfigError, match=message):
        resolve_experiment(file)


def test_missing_file_folder_and_malformed_override(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="There is no experiment file"):
        resolve_experiment(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="is a folder"):
        resolve_experiment(tmp_path)
    with pytest.raises(ConfigError, match=r"not of the form section\.key=value"):
        resolve_experiment(overrides=["steps"])


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (("data.pieces=characters", "training.bpe_dropout=0.1"), "cuts a text in one way only. Set training.bpe_drop"),
        (("data.source_end=false", "training.teacher_steps=10"), "Leave out one of the two"),
        (("data.vocabularies=separate", "model.kind=lstm"), "has one vocabulary for both sides"),
    ],
)
def test_what_tokenizers_cannot_do_is_refused_before_anything_is_prepared(
    overrides: tuple[str, ...], message: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        resolve_experiment(overrides=overrides)


@pytest.mark.parametrize("with_meanings", [False, True])
def test_written_toml_reads_back_equal(tmp_path: Path, with_meanings: bool) -> None:
    odd = 'a"b\\c\n\t€ \u2028'
    resolved = resolve_experiment(preset="tiny", overrides=["training.steps=7"])
    resolved = resolved.model_copy(update={"data": resolved.data.model_copy(update={"train": (odd,)})})
    file = tmp_path / "again.toml"
    file.write_text(write_toml(resolved, with_meanings=with_meanings), encoding="utf-8", newline="\n")
    assert tomllib.loads(file.read_text(encoding="utf-8"))["data"]["train"] == [odd]
    assert resolve_experiment(file) == resolved


def test_every_setting_has_a_meaning() -> None:
    listed = list(experiment.settings())
    assert {s.key.partition(".")[0] for s in listed} == {"data", "model", "training", "decoding"}
    assert all(len(s.meaning) > 10 and s.meaning.endswith(".") for s in listed), [s for s in listed if not s.meaning]
    by_key = {s.key: s for s in listed if s.kind in ("", "transformer")}
    assert by_key["model.d_model"].default == "512"
    assert by_key["model.d_model"].paper == "3.1"
    assert by_key["model.vocabulary_size"].unit == "pieces"
    assert len(ModelConfig.model_fields) == sum(key.startswith("model.") for key in by_key)


def test_settings_page_is_current() -> None:
    from typer.testing import CliRunner

    from transduce.cli.application import app

    page = Path(__file__).parents[1] / "docs" / "settings.md"
    result = CliRunner().invoke(app, ["settings", "--markdown"])
    assert result.exit_code == 0
    assert page.read_text(encoding="utf-8") == result.stdout, "run `transduce settings --markdown > docs/settings.md`"


NOT_SIZES = {"vocabulary_size", "initialization", "dropout"}
RIVALS = ("lstm", "rnnsearch", "luong", "gnmt", "convs2s", "bytenet", "neural-gpu", "memory-network")


@pytest.mark.parametrize("name", RIVALS)
def test_each_rival_has_the_parameters_of_small_and_a_preset_of_its_papers_size(name: str) -> None:
    small = parameter_count(resolve_experiment(preset="small").model)
    rival, paper = resolve_experiment(preset=name).model, resolve_experiment(preset=f"{name}-paper").model
    assert parameter_count(rival) == pytest.approx(small, rel=0.05)
    sizes = {key: value for key, value in paper.model_dump().items() if key not in NOT_SIZES}
    defaults = CONFIGS[name].model_validate({}).model_dump()
    assert sizes == {key: defaults[key] for key in sizes}
