"""What every format's reader returns, and how it becomes a model directory with a card."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from transduce.data.shortlist import Shortlist
from transduce.errors import ModelError
from transduce.files import bounded_integer
from transduce.model.config import ModelConfig
from transduce.model_directory import Description, Languages, in_card, save_model
from transduce.networks.cost import parameter_count
from transduce.special_tokens import SpecialTokens
from transduce.tensor_file import Array
from transduce.text.imported_tokenizer import TAG, ImportedTokenizer, ImportedVocabulary
from transduce.text.tokenizer_pair import TokenizerPair
from transduce.version import __version__

LARGEST_JSON = 32 << 20
Weights = dict[str, Array]


@dataclass(frozen=True)
class ForeignModel:
    """A model of another program in our own terms."""

    origin: str
    """The format, such as "Hugging Face MarianMT"."""
    config: ModelConfig
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

    def checked_weights(self, source: Path) -> Weights:
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
        assumed = "\n".join(f"- {line}" for line in self.assumptions) or "- nothing"
        licence = self.licence or "unknown: look where you got the model"
        return (
            f"# {in_card(languages.source or 'source')} → {in_card(languages.target or 'target')}\n\n"
            "## Where it comes from\n\n"
            f"| | |\n|---|---|\n| imported from | {in_card(source.name)} |\n| format | {self.origin} |\n"
            f"| licence | {in_card(licence)} |\n"
            f"| imported by | transduce {__version__} |\n| parameters | {parameter_count(self.config):,} |\n\n"
            "transduce did not train it. Its authors say on what data it was trained and what it is for.\n\n"
            f"## What was assumed\n\nThe files do not say this:\n\n{assumed}\n\n"
            '    transduce translate THIS_FOLDER --text "…"\n'
        )


def read_json(path: Path) -> Any:  # noqa: ANN401
    """Return the content of a JSON file of a bounded size."""
    return json_of(bytes_of(path, largest=LARGEST_JSON), name=str(path))


def json_of(content: bytes, *, name: str) -> Any:  # noqa: ANN401
    """Return JSON; raise ModelError, naming `name`, if it is damaged."""
    try:
        return json.loads(content, parse_int=bounded_integer)
    except (ValueError, RecursionError):
        raise ModelError(f"{name} is damaged: it is not JSON.") from None


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
        return ModelConfig.model_validate({"kind": "transformer", **options})
    except ValidationError as fault:
        first = fault.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ModelError(f"{name} has impossible sizes: {where} {first['msg']:.300}") from None


def refuse(options: Mapping[str, object], handled: Mapping[str, tuple[object, ...]], *, name: str) -> None:
    """Raise ModelError for the first option whose value is not one of those that can be expressed."""
    for key, values in handled.items():
        value = options.get(key, values[0])
        if value not in values:
            raise ModelError(
                f"{name} has {key} = {json.dumps(value, default=str):.100}, which transduce does not implement (only "
                f"{' or '.join(json.dumps(value) for value in values)})."
            )


def tokenizer_pair(
    source: ImportedTokenizer, target: ImportedTokenizer, weights: Weights, *, source_end: bool = True
) -> TokenizerPair:
    """Return the pair; if the sides pad with different ids, the source's ids and its embedding are renumbered."""
    if source.to_bytes() == target.to_bytes():
        return TokenizerPair.shared(target, source_end=source_end)
    own, wanted = source.special.padding, target.special.padding
    if own != wanted:
        pieces, rows_VD = list(source.vocabulary.pieces), weights["embeddings.source_VD"]
        if wanted >= len(pieces) + 4096:
            raise ModelError("The padding token of the target vocabulary is far outside the source vocabulary.")
        added = max(0, wanted + 1 - len(pieces))
        pieces += [f"<unused{n}>" for n in range(added)]
        rows_VD = np.concatenate([rows_VD, np.zeros((added, rows_VD.shape[1]), rows_VD.dtype)])
        numbers = {own: wanted, wanted: own}
        order = [numbers.get(token, token) for token in range(len(pieces))]
        weights["embeddings.source_VD"] = rows_VD[order]
        special = source.special
        keys = {"padding": special.padding, "unknown": special.unknown, "start": special.start, "end": special.end}
        changed = {key: numbers.get(token, token) for key, token in keys.items()}
        renumbered = {"pieces": tuple(pieces[token] for token in order), **changed}
        source = ImportedTokenizer(source.vocabulary.model_copy(update=renumbered), source.piece_file)
    return TokenizerPair(source, target, source_end)


def vocabulary_of(
    pieces: Sequence[str], special: SpecialTokens, *, name: str, tag: str | None = None
) -> ImportedVocabulary:
    """Return a vocabulary; raise ModelError, naming `name`, if it is damaged."""
    try:
        return ImportedVocabulary(
            pieces=tuple(pieces),
            padding=special.padding,
            unknown=special.unknown,
            start=special.start,
            end=special.end,
            tag=tag,
        )
    except ValidationError as fault:
        raise ModelError(f"{name} is damaged: {fault.errors()[0]['msg']:.200}.") from None


def numbered_pieces(numbers: object, *, name: str) -> list[str]:
    """Return the pieces of a mapping from piece to id, by id; ids must be 0, 1, 2 and so on."""
    if not isinstance(numbers, dict) or not all(type(token) is int for token in numbers.values()):
        raise ModelError(f"{name} is damaged: it is not a mapping from pieces to ids.")
    pieces = {token: str(piece) for piece, token in numbers.items()}
    if set(pieces) != set(range(len(numbers))):
        raise ModelError(f"{name} is damaged: its ids are not 0 to {len(numbers) - 1:,}, each once.")
    return [pieces[token] for token in range(len(pieces))]


def target_tag(pieces: Sequence[str], wanted: str | None) -> str | None:
    """Return the token of the language to translate to, or None if the model has no such tokens."""
    tags = [piece for piece in pieces if TAG.fullmatch(piece)]
    if not tags:
        return None
    code = (wanted or "").partition("-")[0]
    fitting = [tag for tag in tags if code and tag == f">>{wanted}<<"] or [
        tag for tag in tags if code and tag[2:-2].partition("_")[0].startswith(code)
    ]
    if len(fitting) != 1:
        offer = ", ".join(tag[2:-2] for tag in tags[:40])
        raise ModelError(
            f"This model translates to several languages. Name one of them by `--to`: {offer}"
            f"{' …' if len(tags) > 40 else ''}{f' ({wanted} fits {len(fitting)} of them)' if wanted else ''}."
        )
    return fitting[0]
