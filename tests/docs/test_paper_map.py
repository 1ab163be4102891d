"""The map leads somewhere: every dotted name exists, every preset too, and the hyperparameters are the presets'."""

import importlib
import re
from pathlib import Path

import pytest

from transduce.experiment import preset_names, resolve_experiment

PAGE = Path(__file__).parents[2] / "docs" / "paper_map.md"
TEXT = PAGE.read_text(encoding="utf-8")
SYMBOLS = sorted(set(re.findall(r"`(transduce(?:\.\w+)+)`", TEXT)))
SECTIONS = {"ModelConfig": "model", "TrainingConfig": "training", "DecodingConfig": "decoding", "DataConfig": "data"}
ROWS = re.findall(r"^\| ([^|]+) \| (\S+) \| (\S+) \| \S+ \| `transduce\.\S+\.(\w+)\.(\w+)` \|$", TEXT, re.MULTILINE)


def resolve(name: str) -> object:
    """Import the longest part of `name` that is a module, and follow the rest as attributes or fields."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError as missing:
            if not name.startswith(str(missing.name)):
                raise
            continue
        for part in parts[length:]:
            fields = getattr(found, "model_fields", {})
            found = fields[part] if part in fields else getattr(found, part)
        return found
    raise ModuleNotFoundError(name)


@pytest.mark.parametrize("name", SYMBOLS)
def test_every_symbol_exists(name: str) -> None:
    resolve(name)


def test_a_symbol_that_does_not_exist_is_noticed() -> None:
    with pytest.raises(AttributeError, match="attend_slowly"):
        resolve("transduce.model.attention.attend_slowly")
    with pytest.raises(AttributeError, match="utilities"):
        resolve("transduce.utilities.anything")


def test_all_parts_of_the_paper_are_on_the_map() -> None:
    assert len(SYMBOLS) > 60
    for part in ("3.1", "3.2.1", "3.2.2", "3.2.3", "3.3", "3.4", "3.5", "4", "5.1", "5.2", "5.3", "5.4", "6.1", "6.2"):
        assert re.search(rf"^\| {re.escape(part)}\b", TEXT, re.MULTILINE), part
    for part in ("equation 1", "equation 2", "equation 3", "Table 1", "Table 2", "Table 3", "Table 4", "Figure 1"):
        assert part in TEXT, part


def test_every_preset_of_table_3_is_on_the_map_and_exists() -> None:
    named = set(re.findall(r"`(table3-\w+|base|big)`", TEXT))
    assert named == {name for name in preset_names() if name.startswith("table3-")} | {"base", "big"}


def test_hyperparameters_are_those_of_the_presets() -> None:
    assert len(ROWS) == 20
    base, big = resolve_experiment(preset="base"), resolve_experiment(preset="big")
    for name, in_base, in_big, owner, key in ROWS:
        for written, experiment in ((in_base, base), (in_big, big)):
            value = getattr(getattr(experiment, SECTIONS[owner]), key)
            assert value == (written if isinstance(value, str) else float(written)), name


def test_every_option_that_departs_is_named() -> None:
    """Whatever of the model's settings is not a size of Table 3 must be explained among the departures."""
    sizes = {
        "vocabulary_size",
        "layers",
        "d_model",
        "d_ff",
        "heads",
        "d_k",
        "d_v",
        "dropout",
        "learned_positions",
        "kind",
    }
    departures = TEXT[TEXT.index("### By name") :]
    experiment = resolve_experiment(preset="base")
    options = set(type(experiment.model).model_fields) - sizes - {"kind"}
    assert [name for name in sorted(options) if f"ModelConfig.{name}`" not in departures] == []
