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
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from pydantic import BaseModel, PositiveInt, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from transduce.architectures import (
    FORMAT_1,
    AnyConfig,
    empty_network,
    own_source_vocabulary,
    stated,
    without_kind,
)
from transduce.data.shortlist import Shortlist
from transduce.errors import ModelError
from transduce.files import directory_written_atomically, manifest_fault, recover_directory
from transduce.networks.network import Network
from transduce.text.tokenizer import TokenizerKind
from transduce.text.tokenizer_files import SOURCE_TOKENIZER, TOKENIZER
from transduce.text.tokenizer_pair import TokenizerPair

FORMAT_VERSION = 2
"""The newest format that this version reads. It writes format 1 if that suffices, for older versions to read it."""
CONFIG, WEIGHTS, CARD = "config.json", "weights.safetensors", "README.md"
TRAINING_HASHES, SHORTLIST = "training_hashes.safetensors", "shortlist.safetensors"
_LONGEST_HEADER = 16 << 20
_LARGEST_CONFIG = 1 << 20
_BYTES = {"F32": 4, "BF16": 2, "I8": 1, "I32": 4, "U64": 8}

Storage = Literal["float32", "bf16", "int8"]


class Languages(BaseModel, frozen=True, extra="forbid"):
    """The two languages by their BCP 47 names; unset for two-column text of unknown kind."""

    source: str | None = None
    target: str | None = None


class Description(BaseModel, frozen=True, extra="forbid"):
    """The content of config.json."""

    format: Literal["transduce"] = "transduce"
    format_version: int = 1
    """1, or 2 if config.json has keys or values that format 1 lacks."""
    architecture: AnyConfig
    tokenizer: TokenizerKind = "bpe"
    """The kind of tokenizer.model; format 1 has `bpe` only."""
    source_tokenizer: TokenizerKind | None = None
    """The kind of source_tokenizer.model, if sources have a tokenizer of their own (format 2)."""
    source_end: bool = True
    """Whether a source ends in the end token (format 2 if not)."""
    languages: Languages = Languages()
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
        later = {"tokenizer": self.tokenizer, "source_tokenizer": self.source_tokenizer, "source_end": self.source_end}
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
    parameters: Mapping[str, Tensor]

    def network(self) -> Network:
        """Return the network with these weights, in float32, ready to translate."""
        network = empty_network(self.description.architecture, self.tokenizers.special)
        fill(network, self.parameters)
        return network.eval()

    def read_again(self) -> "ModelDirectory":
        """Return the same model read from its folder, after its parameters were dropped."""
        return load_model(self.folder)

    def training_hashes(self) -> "np.ndarray[Any, np.dtype[np.uint64]] | None":
        """Return the hashes of the sentences trained on, sorted, or None where they were not kept."""
        path = self.folder / TRAINING_HASHES
        if not path.exists():
            return None
        header = read_header(path)
        if set(header) != {"hashes"} or header["hashes"]["dtype"] != "U64":
            raise ModelError(f"{path} does not hold the hashes of training sentences. Delete it to go without them.")
        try:
            return np.asarray(load_file(path)["hashes"].numpy(), dtype=np.uint64)
        except (SafetensorError, OSError, ValueError) as fault:
            raise ModelError(f"{path} is damaged: {fault}. Delete it to go without the hashes.") from None

    def shortlist(self) -> Shortlist | None:
        """Return the shortlist for `decoding.shortlist`, or None if the model has none."""
        path = self.folder / SHORTLIST
        if not path.exists():
            return None
        size, sources = self.tokenizers.vocabulary_size, self.tokenizers.source.vocabulary_size
        found = {name: (entry["dtype"], entry["shape"]) for name, entry in read_header(path).items()}
        fault = manifest_fault(self.folder, only={SHORTLIST})
        if fault is None and not _are_lists(found, source_vocabulary_size=sources):
            fault = f"it holds {', '.join(sorted(found)) or 'nothing'}, not lists for {sources:,} tokens"
        try:
            lists = {} if fault else {name: tensor.numpy() for name, tensor in load_file(path).items()}
        except (SafetensorError, OSError, ValueError) as damage:
            fault = str(damage)
        if fault is None and any(((ids < 0) | (ids >= size)).any() for ids in lists.values()):
            fault = f"it names tokens outside the vocabulary of {size:,}"
        if fault is not None:
            raise ModelError(f"{path} is damaged: {fault}. Copy the folder again, or leave out the shortlist.")
        return Shortlist(
            common_C=lists["common"],
            candidates_VK=lists["candidates"],
            special=self.tokenizers.special,
            copies_sources=self.tokenizers.has_one_vocabulary,
        )


def _are_lists(found: Mapping[str, tuple[str, list[int]]], *, source_vocabulary_size: int) -> bool:
    if set(found) != {"common", "candidates"} or any(kind != "I32" for kind, _ in found.values()):
        return False
    common, candidates = found["common"][1], found["candidates"][1]
    return len(common) == 1 and len(candidates) == 2 and candidates[0] == source_vocabulary_size


def save_model(
    folder: Path,
    description: Description,
    parameters: Mapping[str, Tensor],
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
        save_file(stored(parameters, description.weights), beside / WEIGHTS)
        (beside / CARD).write_text(card, encoding="utf-8")
        if training_hashes is not None:
            save_file({"hashes": torch.from_numpy(np.ascontiguousarray(training_hashes))}, beside / TRAINING_HASHES)
        if shortlist is not None:
            lists = {"common": shortlist.common_C, "candidates": shortlist.candidates_VK}
            save_file({name: torch.from_numpy(ids) for name, ids in lists.items()}, beside / SHORTLIST)


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
    """Return the models that came with the package, by name."""
    folder = Path(str(package_files("transduce"))) / "models"
    return {path.parent.name: path.parent for path in sorted(folder.glob(f"*/{CONFIG}"))}


def load_model(folder: Path) -> ModelDirectory:
    """Read a model directory; raise ModelError if it is damaged, too new or not from transduce."""
    recover_directory(folder)
    description = read_description(folder)
    tokenizers = [TOKENIZER] if description.source_tokenizer is None else [TOKENIZER, SOURCE_TOKENIZER]
    for name in (*tokenizers, WEIGHTS):
        if not (folder / name).is_file():
            raise ModelError(f"{folder} is not a complete model directory: {name} is missing. Copy the folder again.")
    fault = manifest_fault(folder, only={CONFIG, WEIGHTS, *tokenizers})
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
    if not path.is_file():
        raise ModelError(f"{folder} is not a model directory: it has no {CONFIG}.")
    try:
        if path.stat().st_size > _LARGEST_CONFIG:
            raise ValueError(f"it has {path.stat().st_size:,} bytes")
        content = json.loads(path.read_text(encoding="utf-8"))
        found = content.get("format"), content.get("format_version")
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
        return Description.model_validate(content)
    except ValidationError as fault:
        first = fault.errors()[0]
        where = ".".join(str(part) for part in without_kind(first["loc"]))
        # A key of an untrusted file may hold line ends and control codes, so it is printed escaped.
        where = where if where.isprintable() else repr(where)
        more = f", and {fault.error_count() - 1:,} other faults" if fault.error_count() > 1 else ""
        raise ModelError(
            f"{path} is damaged: {where:.200}: {first['msg']}{more}. Copy the folder again from where it came."
        ) from None


def stored(parameters: Mapping[str, Tensor], storage: Storage) -> dict[str, Tensor]:
    """Return the tensors in the form of the file; only matrices lose precision, never norms and biases."""
    tensors: dict[str, Tensor] = {}
    for name, tensor in parameters.items():
        value = tensor.detach().to("cpu", torch.float32)
        if storage == "float32" or value.dim() < 2:
            tensors[name] = value.contiguous().clone()
        elif storage == "bf16":
            tensors[name] = value.to(torch.bfloat16).contiguous()
        else:
            tensors[name], tensors[f"{name}.scale"] = quantize_rows(value)
    return tensors


def quantize_rows(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Return int8 rows and a scale for each, so that the largest weight of a row is 127 * scale."""
    scale = matrix.abs().amax(dim=1) / 127.0
    quantized = (matrix / scale.clamp_min(torch.finfo(torch.float32).tiny)[:, None]).round().to(torch.int8)
    return quantized.contiguous(), scale.contiguous()


def fill(model: Network, parameters: Mapping[str, Tensor]) -> None:
    """Give an empty network its parameters without copying them; tied parameters stay tied."""
    filled = {id(empty): nn.Parameter(parameters[name]) for name, empty in model.named_parameters()}
    for module in model.modules():
        for name, empty in list(module.named_parameters(recurse=False, remove_duplicate=False)):
            setattr(module, name, filled[id(empty)])


def read_header(path: Path) -> dict[str, dict[str, Any]]:
    """Return the header of a safetensors file, after checking it against the size of the file."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(size - 8, _LONGEST_HEADER):
            raise ModelError(f"{path} is damaged: its header would be {length:,} bytes of a file of {size:,}.")
        raw = file.read(length)
    try:
        header = {name: entry for name, entry in json.loads(raw).items() if name != "__metadata__"}
        wanted = sum(_tensor_bytes(entry) for entry in header.values())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ModelError(f"{path} is damaged: its header is not that of a safetensors file.") from None
    if wanted != size - 8 - length:
        raise ModelError(f"{path} is damaged: it should hold {wanted:,} bytes of weights, not {size - 8 - length:,}.")
    return header


def _tensor_bytes(entry: dict[str, Any]) -> int:
    begin, end = entry["data_offsets"]
    count = _BYTES[entry["dtype"]]
    for extent in entry["shape"]:
        if not isinstance(extent, int) or extent < 0:
            raise ValueError("impossible shape")
        count *= extent
    if not (isinstance(begin, int) and isinstance(end, int)) or end - begin != count:
        raise ValueError("impossible offsets")
    return count


def _load_weights(path: Path, description: Description) -> dict[str, Tensor]:
    header = read_header(path)
    config = description.architecture
    if config.depth > len(header):
        raise ModelError(f"{path} holds {len(header)} tensors, too few for the layers that {CONFIG} names.")
    try:
        expected = {name: list(p.shape) for name, p in empty_network(config).named_parameters()}
    except (RuntimeError, OverflowError, TypeError, ValueError):  # torch raises any of them for sizes too large
        raise ModelError(f"{path.parent / CONFIG} is damaged: no network has the sizes that it names.") from None
    if description.weights == "int8":
        expected |= {f"{name}.scale": shape[:1] for name, shape in expected.items() if len(shape) > 1}
    found = {name: entry["shape"] for name, entry in header.items()}
    if found != expected:
        name = next(name for name in sorted({*found, *expected}) if found.get(name) != expected.get(name))
        raise ModelError(
            f"{path} does not fit {CONFIG}: {name} is {found.get(name, 'missing')} where the architecture "
            f"has {expected.get(name, 'no such tensor')}."
        )
    try:
        tensors = load_file(path)
    except (SafetensorError, OSError, ValueError) as fault:
        raise ModelError(f"{path} is damaged: {fault}. Copy the folder again from where it came.") from None
    return {
        name: tensor.float() * tensors[f"{name}.scale"][:, None] if f"{name}.scale" in tensors else tensor.float()
        for name, tensor in tensors.items()
        if not name.endswith(".scale")
    }
