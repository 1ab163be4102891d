"""Experiments: the settings of a run in four sections (data, model, training, decoding), from TOML files and presets.

A file overrides its preset, and `--set section.key=value` overrides both. The run keeps the resolved experiment. Only
this module parses TOML and turns pydantic's errors into a `ConfigError`, which lists every fault with its dotted key
and, for an unknown key, the nearest known key.
"""

import ast
import difflib
import inspect
import json
import re
import tomllib
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files as package_files
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ValidationError, model_validator
from pydantic_core import ErrorDetails

from transduce.architectures import (
    CONFIGS,
    AnyConfig,
    has_source_vocabulary,
    own_source_vocabulary,
    reads_text_alone,
    without_kind,
)
from transduce.data.config import CorpusConfig, DataConfig
from transduce.decoding.config import DecodingConfig
from transduce.errors import ConfigError
from transduce.model.config import ModelConfig
from transduce.training.config import TrainingConfig

REMOVED = {
    **{
        f"training.{key}": "minimum risk training was removed. Delete the line to train without it"
        for key in ("risk_steps", "risk_peak", "risk_candidates")
    },
    "training.r_drop": "R-Drop was removed. Delete the line to train without it",
}
"""Keys of earlier versions, with the message that explains their removal."""


class ExperimentConfig(BaseModel, frozen=True, extra="forbid"):
    """All settings of a run."""

    data: DataConfig = DataConfig()
    model: AnyConfig = ModelConfig()
    training: TrainingConfig = TrainingConfig()
    decoding: DecodingConfig = DecodingConfig()

    @model_validator(mode="after")
    def tokenizers_suit_the_rest(self) -> Self:
        """Refuse settings that the chosen tokenizers do not support."""
        data, training, model = self.data, self.training, self.model
        if data.pieces == "characters" and training.bpe_dropout > 0.0:
            raise ValueError(
                'training.bpe_dropout cuts words at random, and data.pieces = "characters" cuts a text in one way '
                "only. Set training.bpe_dropout = 0."
            )
        if not data.source_end and training.teacher_steps is not None:
            raise ValueError(
                "training.teacher_steps trains a teacher from target to source, whose targets need the end token that "
                "data.source_end = false leaves out. Leave out one of the two."
            )
        if data.corpora and training.teacher_steps is not None:
            raise ValueError(
                "training.teacher_steps translates the whole training text once, and data.corpora has weights and tags "
                "that the translations would not have. Leave out one of the two."
            )
        if data.vocabularies == "separate" and getattr(model, "tied", "none") in ("all", "inputs"):
            raise ValueError(
                f'model.tied = "{model.tied}" makes source and target embeddings one matrix, and data.vocabularies = '
                '"separate" gives each its own vocabulary. Set model.tied = "decoder" or "none".'
            )
        if data.vocabularies == "separate" and not has_source_vocabulary(model):
            raise ValueError(
                f'model.kind = "{model.kind}" has one vocabulary for both sides. Set data.vocabularies = "shared".'
            )
        if data.vocabularies == "shared" and own_source_vocabulary(model) is not None:
            raise ValueError('model.source_vocabulary_size needs data.vocabularies = "separate".')
        return self

    @model_validator(mode="after")
    def a_language_model_reads_text(self) -> Self:
        """Refuse text without translations for another network than a language model, and the other way round."""
        data, training, model = self.data, self.training, self.model
        if not reads_text_alone(model):
            if data.text:
                raise ValueError(
                    f'data.text has no translations, and model.kind = "{model.kind}" learns from pairs. Set model.kind '
                    '= "language-model", choose a preset such as gpt-tiny, or give data.train instead.'
                )
            return self
        if data.training_corpora:
            raise ValueError(
                'model.kind = "language-model" learns from text without translations: give it as data.text '
                "(--text-file), not as data.train."
            )
        named = {
            "training.bpe_dropout": training.bpe_dropout > 0.0,
            "training.teacher_steps": training.teacher_steps is not None,
            "training.shortlist": bool(training.shortlist),
            'training.best_by = "bleu"': training.best_by == "bleu",
        }
        if wrong := [name for name, is_set in named.items() if is_set]:
            raise ValueError(f"A language model does not translate, so leave out {', '.join(wrong)}.")
        longest = model.longest_sentence
        if longest is not None and data.max_length > longest:
            raise ValueError(
                f"data.max_length = {data.max_length} is the length of a block, and model.learned_positions = "
                f"{longest} has fewer positions. Make them equal."
            )
        return self

    @model_validator(mode="after")
    def a_shortlist_is_learned_before_it_is_used(self) -> Self:
        """Refuse a search with a shortlist if training learns none."""
        if self.decoding.shortlist and not self.training.shortlist:
            raise ValueError(
                "decoding.shortlist needs a shortlist, and training.shortlist = 0 learns none. Set training.shortlist "
                "= 50, or leave out decoding.shortlist."
            )
        return self


@dataclass(frozen=True)
class Setting:
    """One key that an experiment may set."""

    key: str
    kind: str
    """The kind of network that the key is for; empty for keys of other sections."""
    type: str
    default: str
    meaning: str
    unit: str
    paper: str


def preset_names() -> list[str]:
    """Return the names of the presets that come with the package."""
    folder = package_files("transduce") / "presets"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def read_preset(name: str) -> dict[str, Any]:
    """Return the settings of a preset, merged over those of the preset that its key `preset` names, if any."""
    if name not in preset_names():
        raise ConfigError(
            f"There is no preset {name!r}{_nearest(name, preset_names())}. There are: {', '.join(preset_names())}."
        )
    text = (package_files("transduce") / "presets" / f"{name}.toml").read_text(encoding="utf-8")
    return _with_its_preset(tomllib.loads(text), where=f"preset {name}")


def resolve_experiment(
    file: Path | None = None, *, preset: str | None = None, overrides: Sequence[str] = ()
) -> ExperimentConfig:
    """Join preset, file and overrides into one valid experiment, or raise a ConfigError that lists every fault."""
    return validate_experiment(
        gather_settings(file, preset=preset, overrides=overrides), where=str(file or preset or "the settings given")
    )


def gather_settings(
    file: Path | None = None, *, preset: str | None = None, overrides: Sequence[str] = ()
) -> dict[str, Any]:
    """Join preset, file and overrides as they are written, without validation or defaults."""
    content = read_toml(file) if file is not None else {}
    if preset is not None:
        content["preset"] = preset
    content = _with_its_preset(content, where=str(file or "the command line"))
    for override in overrides:
        content = merged(content, _parse_override(override))
    return content


def validate_experiment(content: Mapping[str, Any], *, where: str) -> ExperimentConfig:
    """Return the experiment that `content` describes; `where` names its origin in the error."""
    try:
        return ExperimentConfig.model_validate(content)
    except ValidationError as fault:
        faults = [_describe_fault(detail) for detail in fault.errors()]
        count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
        raise ConfigError(f"{where} has {count}:", *faults) from None


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file; a ConfigError names the line of a syntax error."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise ConfigError(f"There is no experiment file {path}. `--write-experiment {path}` makes one.") from None
    except IsADirectoryError:
        raise ConfigError(f"{path} is a folder, not an experiment file. To resume a run, give --output.") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as fault:
        if path.suffix == ".toml":
            if isinstance(fault, UnicodeDecodeError):
                raise ConfigError(f"{path} is not UTF-8 text: {fault}.") from None
            remedy = "Look there and just before it for a missing comma, bracket or quote."
            raise ConfigError(f"{path} is not valid TOML: {fault}. {remedy}") from None
        raise ConfigError(
            f"{path} is not an experiment file (TOML). If it is training text, write --train {path}; two aligned files "
            "are one name with a comma, such as --train a.en,a.de."
        ) from None


def merged(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
    """Return `lower` overridden by the keys of `upper`, section by section; a table inside a section is replaced."""
    result = dict(lower)
    for section, keys in upper.items():
        below = result.get(section)
        result[section] = {**below, **keys} if isinstance(below, dict) and isinstance(keys, dict) else keys
    return result


def write_toml(experiment: ExperimentConfig, *, with_meanings: bool = False) -> str:
    """Return the experiment as TOML with every key; `with_meanings` puts a comment that explains it before each key."""
    lines = ["# An experiment of transduce: `transduce train THIS_FILE --output runs/NAME`."]
    for section in ExperimentConfig.model_fields:
        config = getattr(experiment, section)
        lines += ["", f"[{section}]"]
        for key, value in config.model_dump(mode="json").items():
            if with_meanings:
                lines += [f"# {line}" for line in meanings_of(type(config)).get(key, "").splitlines()]
            lines.append(f"{key} = {_toml(value)}" if value is not None else f"# {key} = (not set)")
    return "\n".join(lines) + "\n"


def settings() -> Iterator[Setting]:
    """List every key of an experiment with its meaning, unit, default and section of the paper."""
    for section, kind, config in _sections():
        meanings = meanings_of(config)
        for key, setting in config.model_fields.items():
            meaning, unit, paper = split_description(meanings.get(key, ""))
            default = setting.get_default(call_default_factory=True)
            yield Setting(
                key=f"{section}.{key}",
                kind=kind,
                type=_type_name(setting.annotation),
                default="not set" if default is None else _toml(_plain(default)),
                meaning=meaning,
                unit=unit,
                paper=paper,
            )


def _sections() -> Iterator[tuple[str, str, type[BaseModel]]]:
    """Yield each section, the kind of network it is for, and its config; `model` once for every kind."""
    for section, field in ExperimentConfig.model_fields.items():
        if section == "model":
            yield from ((section, kind, config) for kind, config in CONFIGS.items())
        else:
            assert isinstance(field.annotation, type)
            assert issubclass(field.annotation, BaseModel)
            yield section, "", field.annotation


def split_description(description: str) -> tuple[str, str, str]:
    """Split a field's docstring into its meaning, its unit `[…]` and its section of the paper `(…)`."""
    match = re.fullmatch(
        r"(.*?)(?:\s*\[([^\[\]]+)\])?(?:\s*\(((?:\d|T\d|Table)[^()]*)\))?", description.strip(), re.DOTALL
    )
    assert match is not None
    return " ".join(match[1].split()), match[2] or "", match[3] or ""


def known_keys() -> list[str]:
    """Return every dotted key that an experiment may set."""
    return [setting.key for setting in settings()]


def nearest_key(key: str) -> str:
    """Return " (did you mean …?)" with the known key nearest to `key`, or an empty text if none is near."""
    return _nearest(key, [*ExperimentConfig.model_fields, *known_keys()])


def _with_its_preset(content: dict[str, Any], *, where: str) -> dict[str, Any]:
    preset = content.pop("preset", None)
    if preset is None:
        return content
    if not isinstance(preset, str):
        raise ConfigError(f'{where}: preset must be a name such as preset = "base", not {preset!r}.')
    return merged(read_preset(preset), content)


def _parse_override(override: str) -> dict[str, Any]:
    key, equals, value = override.partition("=")
    section, dot, name = key.strip().partition(".")
    if not equals or not dot:
        raise ConfigError(f"--set {override!r} is not of the form section.key=value, such as training.steps=20000.")
    try:
        parsed = tomllib.loads(f"value = {value.strip()}")["value"]
    except tomllib.TOMLDecodeError:
        parsed = value.strip()  # a bare word: the shell has removed the quotes
    return {section: {name: parsed}}


def _describe_fault(detail: ErrorDetails) -> str:
    key = ".".join(str(part) for part in without_kind(detail["loc"]))
    if detail["type"] == "union_tag_invalid":
        return f"model.kind = {detail['ctx']['tag']!r}: there is no such network. There are: {', '.join(CONFIGS)}."
    if key in REMOVED:
        return f"{key}: {REMOVED[key]}."
    if detail["type"] == "extra_forbidden":
        return f"{key}: unknown{nearest_key(key)}. `transduce settings` lists every key."
    message = detail["msg"].removeprefix("Value error, ")
    if not key:  # a conflict between sections; the message names the keys
        return message
    if detail["type"] == "value_error":
        return f"{key}: {message}"
    if detail["type"] == "string_pattern_mismatch":  # only durations have a pattern
        return f'{key} = {detail["input"]!r}: not a duration such as "90s", "45m", "2h" or "1h30m".'
    return f"{key} = {detail['input']!r}: {message}."


def _nearest(name: str, known: Sequence[str]) -> str:
    by_last_part = {key.rpartition(".")[2]: key for key in known}
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
    near = near or [by_last_part[k] for k in difflib.get_close_matches(name.rpartition(".")[2], by_last_part, n=1)]
    return f" (did you mean {near[0]}?)" if near else ""


def meanings_of(config: type[BaseModel]) -> dict[str, str]:
    """Return the docstring under each field; pydantic would spend 90 ms at every start on those of all networks."""
    found = {}
    for own in reversed([own for own in config.__mro__ if issubclass(own, BaseModel) and own is not BaseModel]):
        definition = ast.parse(inspect.getsource(own)).body[0]
        assert isinstance(definition, ast.ClassDef)
        for field, text in pairwise(definition.body):
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
                found[ast.unparse(field.target)] = inspect.cleandoc(str(text.value.value))
    return found


def _plain(value: object) -> Any:  # noqa: ANN401 - any TOML value
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else value


def _toml(value: Any) -> str:  # noqa: ANN401 - any JSON value
    if isinstance(value, Mapping):
        named = {json.dumps(key): _toml(item) for key, item in value.items() if item is not None}
        return "{ " + ", ".join(f"{key} = {item}" for key, item in named.items()) + " }" if named else "{}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def _type_name(annotation: object) -> str:
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return " or ".join(_type_name(part) for part in typing.get_args(annotation) if part is not type(None))
    if typing.get_origin(annotation) is typing.Literal:
        return " | ".join(json.dumps(choice) for choice in typing.get_args(annotation))
    if typing.get_origin(annotation) is typing.Annotated:
        return _type_name(typing.get_args(annotation)[0])
    if typing.get_origin(annotation) in (tuple, list):
        return f"list of {_type_name(typing.get_args(annotation)[0])}"
    if typing.get_origin(annotation) is dict:
        return f"table of {_type_name(typing.get_args(annotation)[1])}"
    names = {
        int: "integer",
        float: "number",
        str: "text",
        bool: "true | false",
        Path: "path",
        CorpusConfig: "table",
    }
    return (
        names.get(annotation, getattr(annotation, "__name__", str(annotation)))
        if isinstance(annotation, type)
        else str(annotation)
    )
