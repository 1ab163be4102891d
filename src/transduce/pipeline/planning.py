"""The choice of the experiment of a run, new or resumed, before anything is computed.

A run keeps its experiment in `experiment.toml`. A start without settings resumes it. A start with other settings
resumes it if these cannot change the weights of later steps (budgets, intervals, logging, patience, search, other paths
of the same text); otherwise it raises an error that lists the differences. If the run has no checkpoint yet, a command
that names the training text instead starts it again with the new settings.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from transduce.architectures import is_text_encoder, own_source_vocabulary, reads_text_alone
from transduce.data.config import DataConfig
from transduce.data.formats import Corpus, Selection, paths_of
from transduce.data.formats.corpus_file import COMPRESSIONS, CorpusFile
from transduce.data.reuse import are_same_files, given_tokenizers, is_of, tokenizer_sha256, unchanged
from transduce.data.stages import PreparedRecord
from transduce.errors import ConfigError, RunError
from transduce.experiment import (
    REMOVED,
    ExperimentConfig,
    gather_settings,
    merged,
    read_preset,
    read_toml,
    validate_experiment,
    write_toml,
)
from transduce.files import make_folder, write_atomically
from transduce.model_directory import find_model, read_description
from transduce.pipeline.fine_tuning import fine_tuned
from transduce.progress import Progress
from transduce.text.tokenizer_files import SOURCE_TOKENIZER, TOKENIZER
from transduce.training.config import MAY_CHANGE_BETWEEN_STARTS
from transduce.training.state import refuse_other_settings

EXPERIMENT, PREPARED, LOCK = "experiment.toml", "data", "run.lock"

_ALTERS_NOTHING = frozenset({"expected_pairs"})  # a check before the start, without effect on the training

# The least number of pairs for each preset. Smaller networks with strong dropout are better on little text.
PRESET_BY_PAIRS = ((1_000_000, "base"), (60_000, "small"), (0, "tiny"))

PRESET_OF_TREES = "parsing"

PRESET_BY_MEGABYTES = ((1_000, "gpt-base"), (5, "gpt-small"), (0, "gpt-tiny"))
"""The least megabytes of text for each preset of a language model."""
_COMPRESSION = 3  # bytes of text for each byte of a compressed file, roughly


@dataclass(frozen=True)
class TrainRequest:
    """The arguments of `train`: experiment file, preset, and settings."""

    file: Path | None = None
    preset: str | None = None
    overrides: Sequence[str] = ()
    sections: "dict[str, dict[str, Any]] | None" = None
    """The keys set by options such as --train, by section."""

    def names_something(self) -> bool:
        """Return whether the user gave any setting of the experiment."""
        return bool(self.file or self.preset or self.overrides or self.sections)


@dataclass(frozen=True)
class Choice:
    """An experiment, why it has its sizes, and whether it resumes a run."""

    experiment: ExperimentConfig
    preset: str | None
    reason: str
    resumes: bool

    @property
    def in_words(self) -> str:
        """Which preset or settings these are, and why."""
        return f"preset {self.preset}, because {self.reason}" if self.preset else self.reason


def choose_text_preset(data: DataConfig) -> tuple[str, str]:
    """Return the preset for a language model's text by the size of its files, and why."""
    paths = [path for name in data.text for path in paths_of(name)]
    sizes = [
        path.stat().st_size * (_COMPRESSION if path.suffix in COMPRESSIONS else 1) for path in paths if path.exists()
    ]
    size = sum(sizes) / 1e6
    name = next(name for least, name in PRESET_BY_MEGABYTES if size >= least)
    return name, f"there are about {size:,.1f} MB of text"


def choose_preset(pairs: int) -> tuple[str, str]:
    """Return the preset for a corpus of this size, and why."""
    name = next(name for least, name in PRESET_BY_PAIRS if pairs >= least)
    reasons = {
        "tiny": f"{pairs:,} pairs are few: a small network with strong dropout learns most from them",
        "small": f"{pairs:,} pairs: half the paper's width and depth learns them in hours, not days",
        "base": f"{pairs:,} pairs are enough for the paper's base model",
    }
    return name, reasons[name]


def count_pairs(data: DataConfig, *, progress: Progress) -> int:
    """Count the pairs of `data.train`, or of all corpora without it, up to the number that the largest preset needs.

    The text of a language model is counted in lines.
    """
    enough, count = PRESET_BY_PAIRS[0][0], 0
    with progress.stage("counting pairs", unit="pairs") as stage:
        for name in data.train or data.names("train"):
            read = (
                CorpusFile(Path(name).expanduser()).lines() if data.text else Corpus(name, Selection.of(data)).pairs()
            )
            for _ in read:
                count += 1
                stage.advance()
                if count >= enough:
                    return count
    return count


def choose_experiment(request: TrainRequest, output: Path, *, progress: Progress) -> Choice:
    """Return the experiment to run in `output`: that of the run there, changed as requested, or a new one."""
    kept = output / EXPERIMENT
    content = merged(
        gather_settings(request.file, preset=request.preset, overrides=request.overrides), request.sections or {}
    )
    if kept.exists():
        try:
            return _resume(content, kept)
        except (ConfigError, RunError):
            if has_learned(output) or not any(_asked(content, "data", key) for key in ("train", "corpora", "text")):
                raise
        progress.note(f"{output} has no checkpoint yet, so it starts again with the settings given")
    if not request.names_something():
        raise ConfigError(
            f"{output} holds no run yet. Name the training text: --train corpus.tsv, --train a.en,a.de, "
            "or an experiment file."
        )
    preset, reason = request.preset, "you named it"
    start_from = _asked(content, "training", "start_from")
    if start_from is not None:
        content, reason = _adapted(str(start_from), content, progress=progress)
    elif "model" not in content and _asked(content, "data", "text"):
        sections = merged(read_preset(PRESET_BY_MEGABYTES[-1][1]), content)
        preset, reason = choose_text_preset(validate_experiment(sections, where="the settings given").data)
        content = merged(read_preset(preset), content)
    elif "model" not in content:
        untied = merged({"model": {"tied": "decoder"}}, content)  # for two vocabularies, if the text needs them
        corpus = validate_experiment(untied, where="the settings given").data
        _require_training_text(corpus)
        if corpus.has_trees:
            preset, reason = PRESET_OF_TREES, "the text is a treebank"
        else:
            preset, reason = choose_preset(count_pairs(corpus, progress=progress))
        content = merged(read_preset(preset), content)
    elif preset is None:
        reason = f"settings as in {request.file or 'the command'}"
    experiment = validate_experiment(content, where=str(request.file or "the settings given"))
    _require_training_text(experiment.data)
    absolute = experiment.model_copy(update={"data": _with_absolute_paths(experiment.data)})
    return Choice(experiment=absolute, preset=preset, reason=reason, resumes=False)


def _adapted(name: str, asked: dict[str, Any], *, progress: Progress) -> tuple[dict[str, Any], str]:
    """Return the settings of a run that starts from a model, and why; fine-tuning is the default schedule."""
    content = _started_from(name, asked)
    if _asked(asked, "training", "schedule") is not None:
        return content, f"settings as given, sizes as in {name}"
    asked = merged(asked, {"training": {"start_from": content["training"]["start_from"]}})  # its absolute path
    without_pairs, _ = fine_tuned(asked, content["model"], pairs=0)
    corpus = validate_experiment(merged(content, without_pairs), where="the settings given").data
    _require_training_text(corpus)
    chosen, reason = fine_tuned(asked, content["model"], pairs=count_pairs(corpus, progress=progress))
    return merged(content, chosen), f"fine-tuning {name}: {reason}"


def _started_from(name: str, content: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with the sizes and the tokenizer of the model to start from; dropout may differ."""
    folder = find_model(name).absolute()
    described = read_description(folder)
    if is_text_encoder(described.architecture):
        raise ConfigError(f"{name} is a text encoder, which cannot be trained further here. Start from another model.")
    data: dict[str, Any] = {
        "pieces": described.source_tokenizer if described.tokenizer == "words" else described.tokenizer,
        "tokenizer": str(folder / TOKENIZER),
        "source_end": described.source_end,
    }
    if described.source_tokenizer is not None:
        data["source_tokenizer"] = str(folder / SOURCE_TOKENIZER)
    if own_source_vocabulary(described.architecture) is not None:
        data["vocabularies"] = "separate"
    taken = {"model": described.architecture.model_dump(mode="json", exclude_none=True), "data": data}
    if reads_text_alone(described.architecture):
        data["max_length"] = described.longest_sentence or taken["model"]["learned_positions"]
    changed = merged(taken, merged(content, {"training": {"start_from": str(folder)}}))
    sizes = {key: value for key, value in taken["model"].items() if "dropout" not in key}
    differing = [key for key, value in sizes.items() if changed["model"].get(key) != value]
    if differing:
        listed = ", ".join(f"model.{key} = {sizes[key]!r}, not {changed['model'].get(key)!r}" for key in differing)
        raise ConfigError(
            f"{name} has other sizes than this experiment: {listed}. Leave out the preset and these keys when you "
            "start from a model."
        )
    return changed


def keep_experiment(experiment: ExperimentConfig, output: Path) -> None:
    """Write the experiment into the run; raise RunError if the run has trained with other settings."""
    make_folder(output)
    if has_learned(output):  # another process may have trained since the experiment was chosen
        _refuse_differences(read_kept_experiment(output), experiment, run=output)
    write_atomically(output / EXPERIMENT, write_toml(experiment))


def read_kept_experiment(run: Path) -> ExperimentConfig:
    """Return the experiment of a run."""
    path = run / EXPERIMENT
    if not path.is_file():
        raise RunError(f"{run} is not a run: it has no {EXPERIMENT}. `transduce train --output {run}` makes one.")
    return validate_experiment(_without_unused(read_toml(path)), where=str(path))


def _without_unused(content: dict[str, Any]) -> dict[str, Any]:
    """Remove the unused keys of minimum risk training and R-Drop that earlier versions wrote into every run."""
    training = content.get("training")
    if not isinstance(training, dict) or "risk_steps" in training or training.get("r_drop"):
        return content
    return {**content, "training": {key: value for key, value in training.items() if f"training.{key}" not in REMOVED}}


def alters_the_trajectory(key: str) -> bool:
    """Return whether this key affects the weights, so that a run with a checkpoint may not change it."""
    section, _, name = key.partition(".")
    if section == "training":
        return name not in MAY_CHANGE_BETWEEN_STARTS
    return section == "model" or (section == "data" and name not in _ALTERS_NOTHING)


def has_learned(run: Path) -> bool:
    """Return whether the folder holds a run with a model, or with a checkpoint of its own or of a teacher."""
    places = ("model", "checkpoints/step-????????", "teachers/*/checkpoints/step-????????")
    return (run / EXPERIMENT).exists() and any(any(run.glob(place)) for place in places)


def _asked(content: dict[str, Any], section: str, key: str) -> Any:  # noqa: ANN401
    """Return the value of a key in settings that are not validated yet, or None."""
    keys = content.get(section)
    return keys.get(key) if isinstance(keys, dict) else None


def _resume(asked: dict[str, Any], kept: Path) -> Choice:
    old = read_kept_experiment(kept.parent)
    start_from = _asked(asked, "training", "start_from")
    if start_from is not None:
        begun_from = _recorded_start(str(start_from), old.training.start_from)
        asked = merged(asked, {"training": {"start_from": begun_from}})
    new = validate_experiment(merged(old.model_dump(mode="json", exclude_none=True), asked), where="the settings given")
    if new.data != old.data:
        data = _with_recorded_paths(_with_absolute_paths(new.data), old.data, prepared=kept.parent / PREPARED)
        new = new.model_copy(update={"data": data})
    _refuse_differences(old, new, run=kept.parent)
    return Choice(experiment=new, preset=None, reason=f"settings as in {kept}", resumes=True)


def _refuse_differences(old: ExperimentConfig, new: ExperimentConfig, *, run: Path) -> None:
    was, now = (
        {
            f"{section}.{key}": value
            for section, keys in experiment.model_dump(mode="json").items()
            for key, value in keys.items()
            if alters_the_trajectory(f"{section}.{key}")
        }
        for experiment in (old, new)
    )
    refuse_other_settings(run, was, now)


def _recorded_start(name: str, old: str | None) -> str:
    """Return `old` if `name` is the same model, which may no longer exist, else the absolute path of `name`."""
    meant = {place.resolve() for place in (Path(name), Path(name) / "model")}
    if old is not None and Path(old).resolve() in meant:
        return old
    return str(find_model(name).absolute())


def _with_recorded_paths(new: DataConfig, old: DataConfig, *, prepared: Path) -> DataConfig:
    """Return `new` with the paths of `old` for every file whose content is the one the run was prepared from.

    If the content at an old path has changed, `new` keeps its path: the run would be prepared from the changed file.
    """
    record = PreparedRecord.open(prepared)
    if record is None or not is_of(record.settings, old) or unchanged(record.corpora) is None:
        return new
    same: dict[str, object] = {}
    for split, corpora in record.corpora.items():
        if new.names(split) != old.names(split) and are_same_files(new.names(split), corpora):
            same |= _with_names(new, split, old.names(split))
    begun_with = given_tokenizers(old)
    for key, path in given_tokenizers(new).items():
        known, place = record.settings[f"{key}_sha256"], begun_with.get(key)
        if place is None or tokenizer_sha256(path, key=key) != known:
            continue
        if tokenizer_sha256(place, key=key) in (known, None):
            same[key] = place
    return new.model_copy(update=same)


def _require_training_text(data: DataConfig) -> None:
    if not data.has_training_text:
        raise ConfigError(
            "There is no training text: give --train corpus.tsv or --train a.en,a.de, or set data.train in the "
            "experiment file. A language model takes --text-file."
        )


def _with_absolute_paths(data: DataConfig) -> DataConfig:
    """Return the data settings with absolute paths, so that the run can resume from another working directory."""

    def absolute(name: str) -> str:
        return ",".join(str(path.absolute()) for path in paths_of(name))

    changes: dict[str, object] = {}
    for split in ("train", "valid", "test"):
        changes |= _with_names(data, split, tuple(map(absolute, data.names(split))))
    changes |= {key: path.absolute() for key, path in given_tokenizers(data).items()}
    return data.model_copy(update=changes)


def _with_names(data: DataConfig, split: str, names: Sequence[str]) -> dict[str, object]:
    """Return the keys of `data` that name the corpora of a split, with these names in place of its own."""
    if split != "train":
        return {split: tuple(names)}
    if data.text:
        return {"text": tuple(names)}
    rest = iter(names)
    train = tuple(islice(rest, len(data.train)))
    corpora = (corpus.model_copy(update={"files": tuple(islice(rest, len(corpus.files)))}) for corpus in data.corpora)
    return {"train": train, "corpora": tuple(corpora)}
