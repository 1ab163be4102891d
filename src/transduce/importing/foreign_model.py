"""What every format's reader returns, and how it becomes a model directory with a card."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from transduce.data.shortlist import Shortlist
from transduce.errors import ModelError
from transduce.files import bounded_integer
from transduce.importing.target_tags import other_targets
from transduce.model.config import ModelConfig
from transduce.model.language_model_config import LanguageModelConfig
from transduce.model.text_encoder_config import TextEncoderConfig
from transduce.model_directory import MOST_LAYERS, Description, Languages, in_card, save_model
from transduce.networks.cost import parameter_count
from transduce.tensor_file import Array
from transduce.text.imported_tokenizer import ImportedTokenizer
from transduce.text.tokenizer_pair import TokenizerPair
from transduce.version import __version__

LARGEST_JSON = 8 << 20  # twice the largest vocabulary known; Python takes 24 times as much memory


@dataclass(frozen=True)
class ForeignModel:
    """A model of another program in our own terms."""

    origin: str
    """The format, such as "Hugging Face MarianMT"."""
    config: ModelConfig | LanguageModelConfig | TextEncoderConfig
    weights: Mapping[str, Array]
    tokenizers: TokenizerPair
    languages: Languages = Languages()  # noqa: RUF009 - it is frozen
    decoding: Mapping[str, Any] = field(default_factory=dict)
    assumptions: Sequence[str] = ()
    """What the files do not say."""
    licence: str | None = None
    shortlist: Shortlist | None = None

    def save(self, folder: Path, *, source: Path) -> None:
        """Write the model directory; `source` is the name of what was imported."""
        weights = self.checked_weights(source)
        description = Description(
            architecture=self.config,
            languages=self.languages,
            targets=self._targets(),
            decoding=dict(self.decoding),
            training={"imported": self.origin},
        )
        save_model(
            folder,
            description,
            weights,
            tokenizers=self.tokenizers,
            card=self._card(source),
            shortlist=self.shortlist,
        )

    def _targets(self) -> dict[str, str]:
        """Return the tags of the target languages beside the one that `--to` chose."""
        source = self.tokenizers.source
        if not isinstance(source, ImportedTokenizer) or source.vocabulary.tag is None:
            return {}
        return other_targets(source.vocabulary.pieces, self.languages.target)

    def checked_weights(self, source: Path) -> dict[str, Array]:
        """Return the weights in float32; raise ModelError, naming `source`, if they are not those of the network."""
        if self.config.depth > len(self.weights):
            raise ModelError(
                f"{source} holds {len(self.weights)} weights, too few for its {self.config.depth:,} layers."
            )
        expected = self.config.parameter_shapes()
        weights = {name: np.asarray(array, np.float32) for name, array in self.weights.items()}
        found = {name: array.shape for name, array in weights.items()}
        if found != expected:
            name = next(name for name in sorted({*found, *expected}) if found.get(name) != expected.get(name))
            raise ModelError(
                f"{source} does not fit its own options: {name} is {found.get(name, 'missing')} where they ask for "
                f"{expected.get(name, 'no such weight')}."
            )
        if not all(np.isfinite(array).all() for array in weights.values()):
            raise ModelError(f"{source} holds weights that are not numbers. Get the model again.")
        return weights

    def _card(self, source: Path) -> str:
        languages = self.languages
        pair = f"{languages.source or 'source'} → {languages.target or 'target'}"
        title, use = {
            "language-model": ("A language model", 'generate THIS_FOLDER --prompt "…"'),
            "text-encoder": ("A text encoder", 'fill THIS_FOLDER --text "The [MASK] sat."'),
        }.get(self.config.kind, (pair, 'translate THIS_FOLDER --text "…"'))
        assumed = "\n".join(f"- {line}" for line in self.assumptions) or "- nothing"
        licence = self.licence or "unknown: look where you got the model"
        return (
            f"# {in_card(title)}\n\n## Where it comes from\n\n"
            f"| | |\n|---|---|\n| imported from | {in_card(source.name)} |\n| format | {self.origin} |\n"
            f"| licence | {in_card(licence)} |\n"
            f"| imported by | transduce {__version__} |\n| parameters | {parameter_count(self.config):,} |\n\n"
            "transduce did not train it. Its authors say on what data it was trained and what it is for.\n\n"
            f"## What was assumed\n\nThe files do not say this:\n\n{assumed}\n\n"
            f"    transduce {use}\n"
        )


def read_json(path: Path) -> Any:  # noqa: ANN401
    """Return the content of a JSON file of a bounded size."""
    return json_of(bytes_of(path, largest=LARGEST_JSON), name=str(path))


def json_of(content: bytes, *, name: str) -> Any:  # noqa: ANN401
    """Return JSON; raise ModelError, naming `name`, if it is damaged."""
    try:
        return json.loads(content, parse_int=_integer)
    except (ValueError, RecursionError):
        raise ModelError(f"{name} is damaged: it is not JSON.") from None


def _integer(digits: str) -> float:
    """Return an integer of a JSON text, or infinity for BERT's `model_max_length` = 10^30, which no size may be."""
    try:
        return bounded_integer(digits)
    except ValueError:
        return math.inf


def bytes_of(path: Path, *, largest: int) -> bytes:
    """Return the content of a file of at most `largest` bytes."""
    if not path.is_file():
        raise ModelError(f"{path} is missing, and the model cannot be imported without it.")
    if path.stat().st_size > largest:
        raise ModelError(f"{path} has {path.stat().st_size:,} bytes; at most {largest:,} are read.")
    return path.read_bytes()


def model_config(*, name: str, **options: Any) -> ModelConfig:  # noqa: ANN401
    """Return the sizes of the network; raise ModelError, naming `name`, if they are impossible."""
    try:
        config = ModelConfig.model_validate({"kind": "transformer", **options})
        if config.depth > MOST_LAYERS:
            raise ModelError(f"{name} names {config.depth:,} layers; at most {MOST_LAYERS} are read.")
        return config
    except ValidationError as fault:
        first = fault.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ModelError(f"{name} has impossible sizes: {where} {first['msg']:.300}") from None


def refuse(options: Mapping[str, object], handled: Mapping[str, tuple[object, ...]], *, name: str) -> None:
    """Raise ModelError for the first option whose value is not one of those that can be expressed."""
    for key, values in handled.items():
        value = options.get(key, values[0])
        if not isinstance(value, str | int | float | None) or value not in values:
            raise ModelError(
                f"{name} has {key} = {_shown(value)}, which transduce does not implement (only "
                f"{' or '.join(map(_shown, values))})."
            )


def _shown(value: object) -> str:
    is_plain = isinstance(value, str | int | float | None)
    return json.dumps(value)[:100] if is_plain else f"a {type(value).__name__}"


def optional_json(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file; an empty one if there is no such file."""
    content = read_json(path) if path.is_file() else {}
    return content if isinstance(content, dict) else {}


def licence_of(folder: Path) -> str | None:
    """Return the licence that the head of a model card in the folder names, or else the first line of its LICENSE."""
    named = [line.partition(":")[2] for line in _head(folder / "README.md") if line.lower().startswith("license:")]
    lines = [line.strip() for line in (*named[:1], *_head(folder / "LICENSE"))]
    return next((line[:60] for line in lines if line and line.isprintable()), None)


def _head(path: Path) -> list[str]:
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(20_000).splitlines()
