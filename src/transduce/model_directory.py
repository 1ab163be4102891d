"""A model on disk: config.json, tokenizer.model, weights.safetensors, and README.md, its card.

source_tokenizer.model exists if sources have their own tokenizer. Optional files are hashes of the training sentences
(training_hashes.safetensors) and the shortlist (shortlist.safetensors).

Weights have the names of the paper and are stored unfused; loading makes the fused forms. A tied matrix is stored once.
Weights are float32, bf16, or int8 with a float32 scale per row (`<name>.scale`): w ≈ int8 * scale, with 127 for the
largest weight of a row. No file in the folder is executed, and every file is checked before use: the sizes in the
header of the weights must match the file and the configuration before memory is allocated for them.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files as package_files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, PositiveInt, ValidationError

from transduce.architectures import (
    FORMAT_1,
    StoredConfig,
    own_source_vocabulary,
    stated,
    without_kind,
)
from transduce.data.shortlist import Shortlist
from transduce.errors import ModelError, shown
from transduce.extras import require_torch
from transduce.files import directory_written_atomically, manifest_fault, read_json, recover_directory
from transduce.model.text_encoder_config import TextEncoderConfig
from transduce.tensor_file import Array, TensorFile, read_header, read_tensors, upper_halves, write_tensors
from transduce.text.tokenizer import TokenizerKind
from transduce.text.tokenizer_files import SOURCE_TOKENIZER, TOKENIZER
from transduce.text.tokenizer_pair import TokenizerPair

if TYPE_CHECKING:
    from transduce.model.text_encoder import TextEncoder
    from transduce.networks.network import Network

FORMAT_VERSION = 2
"""The newest format that this version reads. It writes format 1 if possible, so that older versions can read it."""
CONFIG, WEIGHTS, CARD = "config.json", "weights.safetensors", "README.md"
TRAINING_HASHES, SHORTLIST = "training_hashes.safetensors", "shortlist.safetensors"
_IDS = (np.dtype(np.int16), np.dtype(np.int32))
"""The types of a shortlist's ids: the first that holds the vocabulary."""
_LARGEST_TOKENIZER = 64 << 20
MOST_LAYERS = 512

Storage = Literal["float32", "bf16", "int8"]


class Detachable(Protocol):
    """The part of a torch tensor's interface that this module uses."""

    def detach(self) -> Any:  # noqa: ANN401
        """Return the tensor without its gradient."""


Weight = NDArray[np.floating] | Detachable


class Languages(BaseModel, frozen=True, extra="forbid"):
    """The two languages by their BCP 47 names; unset if they are unknown."""

    source: str | None = None
    target: str | None = None


class Description(BaseModel, frozen=True, extra="forbid"):
    """The content of config.json."""

    format: Literal["transduce"] = "transduce"
    format_version: int = 1
    """1, or 2 if config.json has keys or values that format 1 lacks."""
    architecture: StoredConfig
    tokenizer: TokenizerKind = "bpe"
    """The kind of tokenizer.model; format 1 has `bpe` only."""
    source_tokenizer: TokenizerKind | None = None
    """The kind of source_tokenizer.model, if sources have a tokenizer of their own (format 2)."""
    source_end: bool = True
    """Whether a source ends in the end token (format 2 if not)."""
    languages: Languages = Languages()
    targets: dict[str, str] = {}
    """The tag before sources for each language that needs one to be translated to (format 2)."""
    weights: Storage = "float32"
    longest_sentence: PositiveInt | None = None
    """The number of pieces of the longest training sentence."""
    decoding: dict[str, Any] = {}
    """Settings of the search that this model was tuned with."""
    training: dict[str, Any] = {}
    """Where the weights come from: step, averaged checkpoints, scores, time."""

    def to_json(self) -> str:
        """Return the content of config.json: format 1 if its keys suffice, else format 2."""
        architecture = stated(self.architecture)
        later = {name: getattr(self, name) for name in ("tokenizer", "source_tokenizer", "source_end", "targets")}
        said = {key: value for key, value in later.items() if value != type(self).model_fields[key].default}
        version = 1 if FORMAT_1.obstacle(self.architecture) is None and not said else 2
        keys = self.model_dump(mode="json", exclude=set(later))
        keys |= {"format_version": version, "architecture": architecture, **said}
        return json.dumps(keys, indent=2, ensure_ascii=False) + "\n"


@dataclass(frozen=True)
class ModelDirectory:
    """A model directory that was read and is complete."""

    folder: Path
    description: Description
    tokenizers: TokenizerPair
    parameters: Mapping[str, NDArray[np.float32]]

    def network(self) -> "Network":
        """Return the network with these weights, in float32, ready to translate."""
        config = self.description.architecture
        if isinstance(config, TextEncoderConfig):
            raise ModelError(
                f"{self.folder} is a text encoder, which neither translates nor writes. Use it with fill, embed or "
                "attention."
            )
        require_torch("A network that computes with PyTorch")
        from transduce.torch_networks import filled_network

        return filled_network(config, self.tokenizers.special, self.parameters)

    def text_encoder(self) -> "TextEncoder":
        """Return the text encoder with these weights; raise ModelError if the model is another network."""
        config = self.description.architecture
        if not isinstance(config, TextEncoderConfig):
            raise ModelError(f"{self.folder} is no text encoder such as BERT: it cannot fill masks or embed texts.")
        require_torch("A text encoder")
        from transduce.torch_networks import filled_text_encoder

        return filled_text_encoder(config, self.tokenizers.special, self.parameters)

    def read_again(self) -> "ModelDirectory":
        """Return the same model read from its folder, after its parameters were dropped."""
        return load_model(self.folder)

    def training_hashes(self) -> "np.ndarray[Any, np.dtype[np.uint64]] | None":
        """Return the hashes of the sentences trained on, sorted, or None where they were not kept."""
        path = self.folder / TRAINING_HASHES
        if not path.exists():
            return None
        if (fault := manifest_fault(self.folder, only={TRAINING_HASHES})) is not None:
            raise ModelError(
                f"{path} is damaged: {fault}. Copy the folder again, or delete it to go without the hashes."
            )
        tensors = read_tensors(path)
        if set(tensors) != {"hashes"} or tensors["hashes"].dtype != np.uint64:
            raise ModelError(f"{path} does not hold the hashes of training sentences. Delete it to go without them.")
        return tensors["hashes"]

    def shortlist(self) -> Shortlist | None:
        """Return the shortlist for `decoding.shortlist`, or None if the model has none."""
        path = self.folder / SHORTLIST
        if not path.exists():
            return None
        size, sources = self.tokenizers.vocabulary_size, self.tokenizers.source.vocabulary_size
        fault = manifest_fault(self.folder, only={SHORTLIST})
        lists = read_tensors(path) if fault is None else {}
        found = {name: (ids.dtype, ids.shape) for name, ids in lists.items()}
        if fault is None and not _are_lists(found, source_vocabulary_size=sources):
            fault = f"it holds {', '.join(sorted(found)) or 'nothing'}, not lists for {sources:,} tokens"
        if fault is None and any(((ids < 0) | (ids >= size)).any() for ids in lists.values()):
            fault = f"it names tokens outside the vocabulary of {size:,}"
        if fault is not None:
            raise ModelError(f"{path} is damaged: {fault}. Copy the folder again, or leave out the shortlist.")
        return Shortlist(
            common_C=lists["common"].astype(np.int32),
            candidates_VK=lists["candidates"].astype(np.int32),
            special=self.tokenizers.special,
            copies_sources=self.tokenizers.has_one_vocabulary,
        )


def _are_lists(found: Mapping[str, tuple[np.dtype[Any], tuple[int, ...]]], *, source_vocabulary_size: int) -> bool:
    if set(found) != {"common", "candidates"} or any(kind not in _IDS for kind, _ in found.values()):
        return False
    common, candidates = found["common"][1], found["candidates"][1]
    return len(common) == 1 and len(candidates) == 2 and candidates[0] == source_vocabulary_size


def save_model(
    folder: Path,
    description: Description,
    parameters: Mapping[str, Weight],
    *,
    tokenizers: TokenizerPair,
    card: str,
    training_hashes: "np.ndarray[Any, np.dtype[np.uint64]] | None" = None,
    shortlist: Shortlist | None = None,
) -> None:
    """Write a model directory in one move, replacing an older one at `folder`."""
    recover_directory(folder)
    described = {
        "tokenizer": tokenizers.target.kind,
        "source_tokenizer": None if tokenizers.is_shared else tokenizers.source.kind,
        "source_end": tokenizers.source_end,
    }
    with directory_written_atomically(folder) as beside:
        (beside / CONFIG).write_text(description.model_copy(update=described).to_json(), encoding="utf-8")
        (beside / TOKENIZER).write_bytes(tokenizers.target.to_bytes())
        if not tokenizers.is_shared:
            (beside / SOURCE_TOKENIZER).write_bytes(tokenizers.source.to_bytes())
        write_tensors(beside / WEIGHTS, stored(parameters, description.weights))
        (beside / CARD).write_text(card, encoding="utf-8")
        if training_hashes is not None:
            write_tensors(beside / TRAINING_HASHES, {"hashes": training_hashes})
        if shortlist is not None:
            lists = {"common": shortlist.common_C, "candidates": shortlist.candidates_VK}
            kind = next(kind for kind in _IDS if tokenizers.vocabulary_size <= np.iinfo(kind).max)
            write_tensors(beside / SHORTLIST, {name: ids.astype(kind) for name, ids in lists.items()})


def in_card(text: str) -> str:
    """Return a text for a card, such as a file's name: neither HTML nor Markdown, on one line."""
    return re.sub(r"[<>&|`\[\]*\\]", lambda sign: f"&#{ord(sign[0])};", shown(text))


def find_model(name: str) -> Path:
    """Return the model directory for a name: the path of a model directory or of a run, or the name of a bundled model.

    A name that exists as a path or contains a separator is a path; any other is that of a bundled model.
    """
    path = Path(name)
    if path.exists() or "/" in name or os.sep in name:
        return path / "model" if not (path / CONFIG).exists() and (path / "model" / CONFIG).exists() else path
    bundled = bundled_models()
    if name not in bundled:
        offer = f"Bundled models: {', '.join(bundled)}." if bundled else "This version bundles no model."
        raise ModelError(f"There is no folder {name} and no bundled model of that name. {offer}")
    return bundled[name]


def bundled_models() -> dict[str, Path]:
    """Return the models that came with the package, by name, those from English first."""
    folder = Path(str(package_files("transduce"))) / "models"
    found = sorted(path.parent for path in folder.glob(f"*/{CONFIG}"))
    return {path.name: path for path in sorted(found, key=lambda path: not path.name.startswith("en-"))}


def load_model(folder: Path) -> ModelDirectory:
    """Read a model directory; raise ModelError if it is damaged, too new or not from transduce."""
    recover_directory(folder)
    description = read_description(folder)
    tokenizers = [TOKENIZER] if description.source_tokenizer is None else [TOKENIZER, SOURCE_TOKENIZER]
    for name in (*tokenizers, WEIGHTS):
        if not (folder / name).is_file():
            raise ModelError(f"{folder} is not a complete model directory: {name} is missing. Copy the folder again.")
    fault = manifest_fault(folder, only={CONFIG, WEIGHTS, *tokenizers})
    for name in tokenizers:
        size = (folder / name).stat().st_size
        if fault is None and size > _LARGEST_TOKENIZER:
            fault = f"{name} has {size:,} bytes, and may have {_LARGEST_TOKENIZER:,}"
    if fault is not None:
        raise ModelError(f"{folder} is damaged: {fault}. Copy the folder again from where it came.")
    return ModelDirectory(
        folder=folder,
        description=description,
        tokenizers=_load_tokenizers(folder, description),
        parameters=_load_weights(folder / WEIGHTS, description),
    )


def _load_tokenizers(folder: Path, description: Description) -> TokenizerPair:
    source = None if description.source_tokenizer is None else folder / SOURCE_TOKENIZER
    pair = TokenizerPair.read(folder / TOKENIZER, source=source, source_end=description.source_end)
    config = description.architecture
    for path, tokenizer, kind, size in (
        (folder / TOKENIZER, pair.target, description.tokenizer, config.vocabulary_size),
        (
            source or folder / TOKENIZER,
            pair.source,
            description.source_tokenizer or description.tokenizer,
            own_source_vocabulary(config) or config.vocabulary_size,
        ),
    ):
        if (tokenizer.kind, tokenizer.vocabulary_size) != (kind, size):
            raise ModelError(
                f"{path} has {tokenizer.vocabulary_size:,} pieces of the kind {tokenizer.kind} but {CONFIG} says "
                f"{size:,} of the kind {kind}: these files do not belong together."
            )
    return pair


def read_description(folder: Path) -> Description:
    """Read config.json alone."""
    path = folder / CONFIG
    if not folder.is_dir():
        raise ModelError(f"There is no model at {folder}. Give the folder that holds {CONFIG} and {WEIGHTS}.")
    try:
        content = read_json(folder, CONFIG)
        found = content.get("format"), content.get("format_version")
    except FileNotFoundError:
        raise ModelError(f"{folder} is not a model directory: it has no {CONFIG}.") from None
    except (OSError, ValueError, AttributeError, RecursionError) as fault:
        raise ModelError(f"{path} is damaged: {fault}. Copy the folder again from where it came.") from None
    if found[0] != "transduce":
        raise ModelError(f"{path} was not written by transduce (its format is {found[0]!r}).")
    if not isinstance(found[1], int) or found[1] > FORMAT_VERSION:
        raise ModelError(
            f"{path} has format version {found[1]!r}, but this transduce reads up to {FORMAT_VERSION}. "
            "Update transduce."
        )
    try:
        description = Description.model_validate(content)
        if description.architecture.depth > MOST_LAYERS:
            raise ModelError(f"{path} names more than {MOST_LAYERS} layers; such a model cannot be loaded.")
        return description
    except ValidationError as fault:
        first = fault.errors()[0]
        where = ".".join(str(part) for part in without_kind(first["loc"]))
        more = f", and {fault.error_count() - 1:,} other faults" if fault.error_count() > 1 else ""
        raise ModelError(
            f"{path} is damaged: {where:.200}: {first['msg']}{more}. Copy the folder again from where it came."
        ) from None


def stored(parameters: Mapping[str, Weight], storage: Storage) -> dict[str, Array]:
    """Return the arrays in the form of the file; only matrices lose precision, never norms and biases."""
    arrays: dict[str, Array] = {}
    for name, parameter in parameters.items():
        value = np.asarray(
            parameter.detach().float().cpu().numpy() if hasattr(parameter, "detach") else parameter, np.float32
        )
        if storage == "float32" or value.ndim < 2:
            arrays[name] = value
        elif storage == "bf16":
            arrays[name] = upper_halves(value)
        else:
            arrays[name], arrays[f"{name}.scale"] = quantize_rows(value)
    return arrays


def quantize_rows(matrix: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return int8 rows and a scale for each, so that the largest weight of a row is 127 * scale."""
    scale = np.abs(matrix).max(axis=1, initial=0.0) / np.float32(127.0)
    quantized = np.round(matrix / np.maximum(scale, np.finfo(np.float32).tiny)[:, None]).astype(np.int8)
    return quantized, scale


class FloatWeights(Mapping[str, NDArray[np.float32]]):
    """The weights of a file in float32; each is read on access, so that they are never all in memory."""

    def __init__(self, tensors: TensorFile) -> None:
        self._tensors = tensors

    def __getitem__(self, name: str) -> NDArray[np.float32]:
        scale = self._tensors.get(f"{name}.scale")
        weights = self._tensors[name].astype(np.float32)
        if scale is not None:
            with np.errstate(over="ignore", invalid="ignore"):  # search reports weights that are not numbers
                weights *= scale[:, None]
        return weights

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._tensors if not name.endswith(".scale"))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _load_weights(path: Path, description: Description) -> FloatWeights:
    header = read_header(path)
    config = description.architecture
    if config.depth > len(header):
        raise ModelError(f"{path} holds {len(header)} tensors, too few for the layers that {CONFIG} names.")
    expected = {name: list(shape) for name, shape in config.parameter_shapes().items()}
    if description.weights == "int8":
        expected |= {f"{name}.scale": shape[:1] for name, shape in expected.items() if len(shape) > 1}
    found = {name: entry["shape"] for name, entry in header.items()}
    if found != expected:
        name = next(name for name in sorted({*found, *expected}) if found.get(name) != expected.get(name))
        raise ModelError(
            f"{path} does not fit {CONFIG}: {name} is {found.get(name, 'missing')} where the architecture "
            f"has {expected.get(name, 'no such tensor')}."
        )
    return FloatWeights(TensorFile(path, header))
