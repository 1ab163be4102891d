"""A folder of Hugging Face's MarianMT, such as the OPUS-MT models, or of Pegasus as `export/huggingface.py` writes it.

    config.json · generation_config.json · model.safetensors or pytorch_model.bin · source.spm · target.spm · vocab.json

`source.spm` cuts text into pieces and `vocab.json` gives their ids (`target_vocab.json` those of the targets if
`separate_vocabs`). Positions are the paper's sinusoids, sines before cosines, from 0; epsilon is always 1e-5. `<pad>`
is the start token, and it may not be generated.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from transduce.errors import ModelError
from transduce.importing.embeddings import PADDING, EmbeddingMatrices
from transduce.importing.fairseq_names import renamed
from transduce.importing.foreign_model import (
    ForeignModel,
    bytes_of,
    licence_of,
    model_config,
    optional_json,
    read_json,
    refuse,
)
from transduce.importing.pickled_weights import TorchArchive
from transduce.importing.target_tags import short_name
from transduce.importing.vocabularies import ForeignVocabulary, fitted, numbered_pieces
from transduce.model_directory import Languages
from transduce.tensor_file import Array, read_tensors
from transduce.text.piece_file import LARGEST_FILE

ACTIVATIONS = {
    "relu": "relu",
    "swish": "silu",
    "silu": "silu",
    "gelu": "gelu",
    "quick_gelu": "gelu_sigmoid",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
}
_NORMS = {"marian": "post", "pegasus": "pre"}
_EXPECTED = {
    "model_type": tuple(_NORMS),
    "static_position_embeddings": (True,),
    "normalize_before": (False,),
    "add_final_layer_norm": (False, True),
    "normalize_embedding": (False,),
    "add_bias_logits": (False, True),
    "activation_function": tuple(ACTIVATIONS),
}
_EMBEDDINGS = (
    *("model.shared.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"),
    "lm_head.weight",
)
_OTHERS = {
    *("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight"),  # computed
    *_EMBEDDINGS[:3],
    *("model.final_logits_bias", "model.lm_head.weight"),
}


def is_huggingface(source: Path) -> bool:
    """Return whether a folder is one of Hugging Face's MarianMT; with model.bin it is one of CTranslate2."""
    names = ("config.json", "source.spm")
    return all((source / name).is_file() for name in names) and not (source / "model.bin").is_file()


def read_huggingface(source: Path, languages: Languages) -> ForeignModel:
    """Return the model in a folder."""
    options, tokenizer = read_json(source / "config.json"), optional_json(source / "tokenizer_config.json")
    if not isinstance(options, dict) or not isinstance(tokenizer, dict):
        raise ModelError(f"{source / 'config.json'} is damaged: it is not a JSON object.")
    name = str(source / "config.json")
    refuse(options, _EXPECTED, name=name)
    if "model_type" not in options:
        raise ModelError(f"{name} has no model_type, so it is no model of Hugging Face.")
    for side in ("attention_heads", "ffn_dim"):
        refuse(options, {f"decoder_{side}": (options.get(f"encoder_{side}"),)}, name=name)
    weights = weights_of(source)
    named = {key: short_name(value) for key, value in tokenizer.items() if isinstance(value, str)}
    languages = Languages(
        source=languages.source or named.get("source_lang"), target=languages.target or named.get("target_lang")
    )
    layers, others = renamed({key.removeprefix("model."): array for key, array in weights.items()})
    unknown = {"model." + key for key in others} - _OTHERS
    if unknown:
        raise ModelError(f"{source} holds the weight {min(unknown):.100}, which MarianMT does not have.")
    sides = _vocabularies(source, options, separate=bool(tokenizer.get("separate_vocabs")))
    vocabularies = fitted(*sides, _embeddings(weights, options, name=name), to=languages.target)
    config = model_config(name=name, **vocabularies.options, **_sizes(options))
    return ForeignModel(
        origin=f"Hugging Face {'MarianMT' if config.norm == 'post' else 'Pegasus'}",
        config=config,
        weights=vocabularies.weights | layers,
        tokenizers=vocabularies.tokenizers,
        languages=languages,
        decoding=_decoding(source, options),
        assumptions=(
            "text is not normalised by Moses' scripts before it is cut into pieces, as in transformers",
            "the length penalty of transformers, a power of the length, is used as the paper's exponent",
        ),
        licence=licence_of(source),
    )


def _sizes(options: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "d_model": options.get("d_model"),
        "layers": options.get("encoder_layers"),
        "encoder_layers": options.get("encoder_layers"),
        "decoder_layers": options.get("decoder_layers"),
        "heads": options.get("encoder_attention_heads"),
        "d_ff": options.get("encoder_ffn_dim"),
        "activation": ACTIVATIONS[options.get("activation_function", "gelu")],
        "norm": _NORMS[options["model_type"]],
        "norm_epsilon": 1e-5,
        "positions": "sinusoidal_halves",
        "attention_bias": True,
        "embedding_scale": None if options.get("scale_embedding", False) else 1.0,
    }


def weights_of(source: Path) -> Mapping[str, Array]:
    """Return the weights of a folder of transformers, whatever their file or files."""
    for name, read in (("model.safetensors", read_tensors), ("pytorch_model.bin", _unpickled)):
        if (source / name).is_file():
            return read(source / name)
        index = source / f"{name}.index.json"
        if index.is_file():
            return {key: array for part in _parts(index) for key, array in read(part).items()}
    raise ModelError(f"{source} has no weights: neither model.safetensors nor pytorch_model.bin, whole or in parts.")


def _unpickled(path: Path) -> dict[str, Array]:
    archive = TorchArchive(path)
    if not isinstance(archive.content, dict):
        raise ModelError(f"{path} is damaged: it does not hold weights by name.")
    return archive.arrays(archive.content)


def _parts(index: Path) -> list[Path]:
    """Return the files that an index names for its weights; each is beside the index."""
    named = optional_json(index).get("weight_map")
    names = {*map(str, named.values())} if isinstance(named, dict) else set()
    if not names or not all(Path(name).name == name for name in names):
        raise ModelError(f"{index} is damaged: it does not name the files of its weights.")
    if missing := next((name for name in sorted(names) if not (index.parent / name).is_file()), None):
        raise ModelError(f"{index.parent / missing} is missing, and the model cannot be imported without it.")
    return [index.parent / name for name in sorted(names)]


def _embeddings(weights: Mapping[str, Array], options: Mapping[str, Any], *, name: str) -> EmbeddingMatrices:
    shared, own, target, output = (weights.get(name) for name in _EMBEDDINGS)
    target_VD = next((found for found in (target, output, shared) if found is not None), None)
    source_VD = next((found for found in (own, shared) if found is not None), None)
    if options.get("share_encoder_decoder_embeddings", True):
        # A file of safetensors holds a tied matrix under one of its names, often lm_head.weight.
        source_VD = target_VD = next((found for found in (shared, own, target_VD) if found is not None), None)
    if source_VD is None or target_VD is None:
        raise ModelError(f"{name} has no embeddings among its weights.")
    bias_1V = weights.get("final_logits_bias")
    return EmbeddingMatrices(
        source_VD,
        target_VD,
        target_VD if output is None else output,
        None if bias_1V is None else np.asarray(bias_1V, np.float32).reshape(-1),
    )


def _vocabularies(
    source: Path, options: Mapping[str, Any], *, separate: bool
) -> tuple[ForeignVocabulary, ForeignVocabulary]:
    names = ("vocab.json", "target_vocab.json" if separate else "vocab.json")
    start = options.get("decoder_start_token_id")
    sides: list[ForeignVocabulary] = []
    for file, cutting in zip(names, ("source.spm", "target.spm"), strict=True):
        pieces = numbered_pieces(read_json(source / file), name=str(source / file))
        if PADDING not in pieces:
            raise ModelError(f"{source / file} is damaged: it lacks the piece {PADDING}.")
        is_start = type(start) is int and 0 <= start < len(pieces) and (not separate or bool(sides))
        sides.append(
            ForeignVocabulary(
                pieces,
                str(source / file),
                start=pieces[start] if is_start and type(start) is int else PADDING,
                piece_file=bytes_of(source / cutting, largest=LARGEST_FILE),
            )
        )
    return sides[0], sides[1]


def _decoding(source: Path, options: Mapping[str, Any]) -> dict[str, Any]:
    generation = {**options, **optional_json(source / "generation_config.json")}
    beam, penalty = generation.get("num_beams"), generation.get("length_penalty")
    return {
        "beam": beam if type(beam) is int and 0 < beam <= 32 else 4,
        "length_penalty": float(penalty) if isinstance(penalty, int | float) and 0 <= penalty <= 10 else 1.0,
    }
