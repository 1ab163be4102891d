"""A directory of CTranslate2, float32, float16, bf16, int16 or int8, with the sentencepiece model that cuts its text.

    model.bin · config.json (since version 6) · shared_vocabulary.json or .txt, or source_ and target_vocabulary
    sentencepiece.model, or source.spm and target.spm: beside them or one folder up, as in a package of Argos

A stored table of positions that a formula explains becomes that formula. Without a table, positions are sines and then
cosines over timescales from 1 to 10000, from position 1.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from transduce.errors import ModelError
from transduce.importing.ctranslate2_file import CTranslate2File, read_model_bin
from transduce.importing.ctranslate2_names import STACKS, renamed, sizes, with_biases
from transduce.importing.embeddings import NEVER, EmbeddingMatrices
from transduce.importing.foreign_model import (
    LARGEST_JSON,
    ForeignModel,
    bytes_of,
    licence_of,
    model_config,
    optional_json,
    read_json,
    refuse,
)
from transduce.importing.position_tables import formula_of
from transduce.importing.vocabularies import ForeignVocabulary, fitted
from transduce.model_directory import Languages
from transduce.tensor_file import Array
from transduce.text.piece_file import LARGEST_FILE

_ACTIVATIONS = ("relu", "gelu_tanh", "silu", "gelu", "gelu_sigmoid")
_HEADS = {"TransformerSpec": None, "TransformerBase": 8, "TransformerBig": 16}
_LAYER_OPTION = re.compile(r"(?:encoder|decoder)/layer_\d{1,3}/\w+/(queries_scale|head_dim)")
_IGNORED = {"alignment_heads", "alignment_layer", "alibi_use_positive_positions", "scale_alibi", "embeddings_merge"}
_IGNORED |= {"num_heads", "pre_norm", "activation", "scale_embeddings", "start_from_zero_embedding"}
_IGNORED |= {"with_source_bos", "with_source_eos", "with_target_bos"}
_CONFIG = {"add_source_bos": (False, None), "multi_query_attention": (False, None)}


def is_ctranslate2(source: Path) -> bool:
    """Return whether a folder is one of CTranslate2."""
    return (source / "model.bin").is_file()


def read_ctranslate2(source: Path, languages: Languages) -> ForeignModel:
    """Return the model in a folder."""
    path = source / "model.bin"
    file = read_model_bin(path)
    refuse({"specification": file.spec}, {"specification": tuple(_HEADS)}, name=str(path))
    settings = _settings(source, file)
    layers, others = renamed(file.variables)
    options = _Options(file, others, path)
    matrices = _matrices(file.variables, path)
    first, second = _vocabularies(source, settings, matrices)
    # The converter of transformers leaves the </s> of Marian's sources to a tokenizer outside.
    is_marian = options.values()["start_from_zeros"] and not settings.get("add_source_eos")
    ends = is_marian or bool(settings.get("add_source_eos"))
    vocabularies = fitted(first, second, matrices, to=languages.target, source_end=ends)
    positions, tables = _positions(file.variables, path)
    config = model_config(
        name=str(path),
        **vocabularies.options,
        **sizes(layers, path),
        **options.values(),
        **positions,
        norm_epsilon=settings.get("layer_norm_epsilon") or 1e-5,
        final_norm="encoder.final_norm.weight" in layers,
        embedding_norm="encoder.embedding_norm.weight" in layers,
    )
    return ForeignModel(
        origin="CTranslate2",
        config=config,
        weights=vocabularies.weights | with_biases(layers) | tables,
        tokenizers=vocabularies.tokenizers,
        languages=languages,
        decoding={"beam": 4, "length_penalty": 1.0},
        assumptions=(
            "the sentencepiece model beside the model cuts its text, and nothing is done to the text before",
            "beam 4 and length penalty 1; CTranslate2 stores no settings of its search",
            *(["a source ends in </s>, since the first token is a vector of zeros, as in Marian"] if is_marian else []),
        ),
        licence=licence_of(source),
    )


class _Options:
    """The options among the variables: with the prefix of their stack since revision 5, without before."""

    def __init__(self, file: CTranslate2File, others: Mapping[str, Array], path: Path) -> None:
        self._file, self._path = file, path
        for name, value in others.items():
            option = name.rpartition("/")[2]
            is_set = value.ndim > 0 or bool(value)
            if is_set and option not in _IGNORED and not _LAYER_OPTION.fullmatch(name):
                shown = f" = {value.item()}" if not value.ndim else ""
                raise ModelError(f"{path} has {name:.100}{shown}, which transduce does not implement.")

    def values(self) -> dict[str, Any]:
        """Return the options of our network."""
        number = self._both("activation", 0)
        if number not in range(len(_ACTIVATIONS)):
            raise ModelError(f"{self._path} has activation = {number}, which transduce does not implement.")
        heads = self._both("num_heads", _HEADS[self._file.spec] or 8)
        scale = self._both("scale_embeddings", 1, default_kind="i")
        widths = self._of_layers("head_dim")
        return {
            "heads": heads,
            **({"d_k": int(widths), "d_v": int(widths)} if widths is not None else {}),
            "norm": "pre" if self._both("pre_norm", 1) else "post",
            "activation": _ACTIVATIONS[int(number)],
            "embedding_scale": scale,
            "scores": self._scores(widths, heads),
            "start_from_zeros": bool(self._one("decoder/start_from_zero_embedding", 0)),
        }

    def _one(self, name: str, default: float) -> float:
        value = self._file.variables.get(name)
        return default if value is None or value.ndim else value.item()

    def _both(self, option: str, default: float, *, default_kind: str = "") -> Any:  # noqa: ANN401
        """Return an option that both stacks must share; True of kind i, for scales, is the default √d_model: None."""
        names = [f"{stack}/{option}" for stack in STACKS]
        found = [self._file.variables.get(name, self._file.variables.get(option)) for name in names]
        values = [default if value is None or value.ndim else value.item() for value in found]
        if values[0] != values[1]:
            raise ModelError(
                f"{self._path} has {names[0]} = {values[0]} but {names[1]} = {values[1]}: only equal ones."
            )
        is_switch = all(value is None or value.dtype.kind == default_kind for value in found)
        return (None if values[0] else 1.0) if default_kind and is_switch else values[0]

    def _of_layers(self, option: str) -> float | None:
        """Return an option that all attentions must share, or None if none has it."""
        found = {v.item() for name, v in self._file.variables.items() if name.endswith(f"/{option}") and not v.ndim}
        if len(found) > 1:
            raise ModelError(f"{self._path} has {option} = {' and '.join(map(str, sorted(found)))}: only one value.")
        return found.pop() if found else None

    def _scores(self, width: float | None, heads: float) -> str:
        scale = self._of_layers("queries_scale")
        own = width or len(self._file.variables["decoder/layer_0/self_attention/linear_1/weight"]) / max(heads, 1)
        if scale is None or abs(scale * own**0.5 - 1.0) < 1e-5:
            return "scaled"
        if scale == 1.0:
            return "unscaled"
        raise ModelError(f"{self._path} has queries_scale = {scale}, which transduce does not implement.")


def _matrices(variables: Mapping[str, Array], path: Path) -> EmbeddingMatrices:
    source_VD = variables.get("encoder/embeddings_0/weight", variables.get("encoder/embeddings/weight"))
    target_VD = variables.get("decoder/embeddings/weight")
    output_VD = variables.get("decoder/projection/weight", target_VD)
    if source_VD is None or target_VD is None or output_VD is None:
        raise ModelError(f"{path} has no embeddings.")
    bias_V = variables.get("decoder/projection/bias")
    if bias_V is not None:
        bias_V = np.maximum(bias_V.astype(np.float32), np.float32(NEVER))  # -inf forbids a token there
    return EmbeddingMatrices(source_VD, target_VD, output_VD, bias_V)


def _positions(variables: Mapping[str, Array], path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return our options of positions, and the tables if they are learned."""
    tables = {stack: variables.get(f"{stack}/position_encodings/encodings") for stack in STACKS}
    found = [_formula(table) for table in tables.values()]
    if found[0] is not None and found[0] == found[1]:
        return {"positions": found[0][0], "first_position": found[0][1]}, {}
    learned = {f"{stack}.positions.table_TD": table for stack, table in tables.items() if table is not None}
    if len(learned) != len(tables) or len({table.shape for table in learned.values()}) > 1:
        raise ModelError(f"{path} has other positions in the encoder than in the decoder, which cannot be expressed.")
    return {"positions": "learned", "learned_positions": len(next(iter(learned.values())))}, learned


def _formula(table_TD: Array | None) -> tuple[str, int] | None:
    if table_TD is None:
        return "concatenated", 1
    return formula_of(table_TD) if table_TD.ndim == 2 else None


def _settings(source: Path, file: CTranslate2File) -> dict[str, Any]:
    """Return config.json, or before version 6 what the variables say, with the defaults of CTranslate2."""
    settings: dict[str, Any] = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    settings |= optional_json(source / "config.json")
    if file.version < 6:
        with_start = file.variables.get("with_target_bos")
        settings["add_source_bos"] = bool(file.variables.get("with_source_bos", False))
        settings["add_source_eos"] = bool(file.variables.get("with_source_eos", False))
        settings["decoder_start_token"] = settings["bos_token" if with_start is None or with_start else "eos_token"]
    settings.setdefault("decoder_start_token", settings["bos_token"])
    name = str(source / "config.json")
    refuse(settings, _CONFIG, name=name)
    for key in ("decoder_start_token", "eos_token", "unk_token"):
        if not isinstance(settings[key], str):
            raise ModelError(f"{name} has {key} = {json.dumps(settings[key])}; transduce needs one token there.")
    epsilon = settings.get("layer_norm_epsilon")
    if epsilon is not None and not isinstance(epsilon, int | float):
        raise ModelError(f"{name} has layer_norm_epsilon = {json.dumps(epsilon):.40}, which is no number.")
    return settings


def _vocabularies(
    source: Path, settings: Mapping[str, Any], matrices: EmbeddingMatrices
) -> Iterator[ForeignVocabulary]:
    cutting = _piece_files(source)
    for side, rows_VD, piece_file in zip(STACKS, (matrices.source_VD, matrices.target_VD), cutting, strict=True):
        own = {"encoder": "source", "decoder": "target"}[side]
        names = [f"{kind}_vocabulary.{ending}" for kind in ("shared", own) for ending in ("json", "txt")]
        path = next((source / name for name in names if (source / name).is_file()), source / names[-1])
        pieces = _pieces(path)
        unknown = settings["unk_token"]
        if unknown not in pieces and len(pieces) + 1 == len(rows_VD):
            pieces.append(unknown)
        has_start = side == "decoder" or settings["decoder_start_token"] in pieces
        yield ForeignVocabulary(
            pieces,
            str(path),
            start=settings["decoder_start_token"] if has_start else settings["eos_token"],
            end=settings["eos_token"],
            unknown=unknown,
            piece_file=piece_file,
        )


def _pieces(path: Path) -> list[str]:
    if path.suffix == ".txt":
        return bytes_of(path, largest=LARGEST_JSON).decode("utf-8", "replace").removesuffix("\n").split("\n")
    pieces = read_json(path)
    if not isinstance(pieces, list) or not all(isinstance(piece, str) for piece in pieces):
        raise ModelError(f"{path} is damaged: it is not a list of pieces.")
    return pieces


def _piece_files(source: Path) -> tuple[bytes, bytes]:
    for folder in (source, source.parent):
        for names in (("source.spm", "target.spm"), ("sentencepiece.model",) * 2):
            if all((folder / name).is_file() for name in names):
                first, second = (bytes_of(folder / name, largest=LARGEST_FILE) for name in names)
                return first, second
    raise ModelError(
        f"{source} has no sentencepiece model, without which text cannot be cut into pieces. Copy "
        "sentencepiece.model, or source.spm and target.spm, from the original model into it."
    )
