"""Writes a folder for Firefox and Marian: weights in intgemm's int8 or float32, vocabularies, and a shortlist.

    model.ende.intgemm.alphas.bin · vocab.ende.spm · lex.50.50.ende.s2t.bin · decoder.yml · README.md

An alpha, `…_QuantMultA`, is the factor of the vectors that a matrix multiplies: 127 over the largest number in them
while the model translates sample sentences. Without samples there are no alphas, the file is `….intgemm8.bin`, and the
program measures each vector. Marian has no row for our padding; tokens that our search forbids get an output bias of
-1e9. A network that is not in `HANDLED` is refused.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from transduce.errors import ModelError
from transduce.export.marian_file import marian_name, write_marian_file, write_marian_shortlist
from transduce.export.program_tokenizers import ProgramTokenizer, program_tokenizers
from transduce.files import directory_written_atomically
from transduce.model.config import SIZES, ModelConfig
from transduce.model_directory import ModelDirectory
from transduce.networks.config import NetworkConfig
from transduce.networks.handled import Handled
from transduce.tensor_file import Array
from transduce.text.piece_file import read_piece_file

FirefoxWeights = Literal["int8", "float32"]
_ACTIVATIONS = {"relu": "relu", "silu": "swish", "gelu_sigmoid": "gelu"}
HANDLED = Handled(
    "transformer",
    {
        **SIZES,
        "final_norm": (None, False, True),
        "decoder_mixer": ("attention", "ssru"),
        "positions": ("concatenated",),
        "attention_bias": (False, True),
        "activation": tuple(_ACTIVATIONS),
        "tied": ("all", "decoder"),
        "source_vocabulary_size": "any",
        "start_from_zeros": (True,),
        "output_bias": (False, True),
    },
)
_OFF = (
    *("transformer-train-position-embeddings", "transformer-no-projection", "transformer-pool", "tied-embeddings-src"),
    *("skip", "layer-normalization", "right-left", "ulr", "output-omit-bias", "transformer-aan-nogate"),
)
_FIXED = {
    "type": "transformer",
    "transformer-preprocess": '""',
    "transformer-postprocess": "dan",
    "transformer-postprocess-emb": "d",
    "transformer-ffn-depth": 2,
    "transformer-decoder-dim-ffn": 0,
    "transformer-decoder-ffn-depth": 0,
    "transformer-tied-layers": "\n  []",
    "transformer-guided-alignment-layer": "last",
    "lemma-dim-emb": 0,
    **dict.fromkeys(_OFF, "false"),
}
_NEVER = np.float32(-1e9)


def obstacle(config: NetworkConfig, *, weights: FirefoxWeights = "int8") -> str | None:
    """Return the part of a network that Marian's students lack, or None."""
    found = HANDLED.obstacle(config)
    if found is not None or not isinstance(config, ModelConfig):
        return found
    plain = config.d_model // config.heads
    if {config.query_width, config.value_width} != {plain}:
        return f"d_k = {config.query_width} and d_v = {config.value_width} (only {plain})"
    uneven = [name for name in ("d_model", "d_ff") if getattr(config, name) % 64]
    if uneven and weights == "int8":
        return f"{uneven[0]} = {getattr(config, uneven[0])} (in int8 only multiples of 64)"
    return None


def export_firefox(
    model: ModelDirectory, folder: Path, *, weights: FirefoxWeights = "int8", samples: Sequence[str] = ()
) -> None:
    """Write a folder to `folder`, which must not exist; `samples` are source sentences to measure alphas with."""
    if folder.exists():
        raise ModelError(f"{folder} exists already. Choose another name, or remove it first.")
    config = model.description.architecture
    if (found := obstacle(config, weights=weights)) or not isinstance(config, ModelConfig):
        raise ModelError(f"Firefox and Marian's students do not support this model's {found}. Export another model.")
    source, target = program_tokenizers(model, program="Firefox", vocabularies=2)
    rows = [_rows(side) for side in (source, target)]
    if config.tied == "all" and rows[0] != rows[1]:
        raise ModelError("Firefox has no model with two vocabularies on one matrix. Export another model.")
    if weights == "int8" and len(rows[1]) % 8:
        raise ModelError(f"The vocabulary of {len(rows[1]):,} pieces is no multiple of 8, which int8 needs in Firefox.")
    named = _marian_weights(model, config, source_rows=rows[0], target_rows=rows[1])
    if samples:
        named |= _alphas(model, config, samples)
    languages = "".join(own or "xx" for own in (model.description.languages.source, model.description.languages.target))
    kind = "bin" if weights == "float32" else "intgemm.alphas.bin" if samples else "intgemm8.bin"
    options = _options(config, sizes=(len(rows[0]), len(rows[1])))
    sides = {"vocab": target} if source.piece_file == target.piece_file else {"srcvocab": source, "trgvocab": target}
    with directory_written_atomically(folder) as beside:
        write_marian_file(beside / f"model.{languages}.{kind}", named, options, is_int8=weights == "int8")
        for name, side in sides.items():
            (beside / f"{name}.{languages}.spm").write_bytes(side.piece_file)
        if (shortlist := model.shortlist()) is not None:
            path, end = beside / f"lex.50.50.{languages}.s2t.bin", model.tokenizers.source.special.end
            write_marian_shortlist(path, shortlist, sources=rows[0], targets=rows[1], end=end)
        search = {"beam": 4, "length_penalty": 1.0, **model.description.decoding}
        lines = f"beam-size: {search['beam']}\nnormalize: {search['length_penalty']}\nword-penalty: 0\n"
        (beside / "decoder.yml").write_text(lines, encoding="utf-8")
        (beside / "README.md").write_text(_card(model, kind), encoding="utf-8")


def _rows(side: ProgramTokenizer) -> list[int]:
    """Return our id of each piece of the sentencepiece model, whose numbers Marian uses."""
    ids = {piece: token for token, piece in enumerate(side.pieces)}
    names = read_piece_file(side.piece_file, name="the sentencepiece model").names
    missing = [name for name in names if name not in ids]
    if missing or len(ids) > len(names) + 1 + sum(piece.startswith("<unused") for piece in ids):
        raise ModelError(
            "The vocabulary of this model is not that of its sentencepiece model, as Firefox needs it. Models of "
            "OPUS-MT have a vocabulary of their own: export to CTranslate2 or Hugging Face."
        )
    return [ids[name] for name in names]


def _marian_weights(
    model: ModelDirectory, config: ModelConfig, *, source_rows: Sequence[int], target_rows: Sequence[int]
) -> dict[str, Array]:
    """Return the weights under Marian's names, shape (in, out); absent biases are zero."""
    parameters, special = model.parameters, model.tokenizers.special
    has_bias = "embeddings.output_bias_V" in parameters
    bias_V = np.array(parameters["embeddings.output_bias_V"]) if has_bias else np.zeros(config.vocabulary_size, "f4")
    bias_V[[special.padding, *({special.start} - {special.end})]] = _NEVER
    found: dict[str, Array] = {"decoder_ff_logit_out_b": bias_V[target_rows][None]}
    first = "Wemb" if config.tied == "all" else "encoder_Wemb"
    found[first] = parameters["embeddings.source_VD"][source_rows]
    if config.tied == "decoder":
        found["decoder_Wemb"] = parameters["embeddings.target_VD"][target_rows]
    for name, array in _layers(parameters).items():
        own = _name(name, config)
        found[own] = array.T if array.ndim == 2 else array[None]
        if re.search(r"attention\.W_.\.weight$", name) and not config.attention_bias:
            found[_name(f"{name.removesuffix('weight')}bias", config)] = np.zeros((1, len(array)), np.float32)
    return found


def _layers(parameters: Mapping[str, Array]) -> dict[str, Array]:
    return {name: array for name, array in parameters.items() if not name.startswith("embeddings.")}


def _name(name: str, config: ModelConfig) -> str:
    return marian_name(name, is_ssru=config.decoder_mixer == "ssru")


def _alphas(model: ModelDirectory, config: ModelConfig, samples: Sequence[str]) -> dict[str, Array]:
    """Return the alpha of each matrix; `none` is the output layer with a shortlist, `Wemb` without."""
    from transduce.export.largest_inputs import OUTPUT, largest_inputs

    found = largest_inputs(model, samples)
    largest = {_name(name, config): value for name, value in found.items() if name != OUTPUT}
    target = "Wemb" if config.tied == "all" else "decoder_Wemb"
    largest |= {"none": found[OUTPUT], target: found[OUTPUT]}
    return {f"{name}_QuantMultA": np.array([[127.0 / value]], np.float32) for name, value in largest.items()}


def _options(config: ModelConfig, *, sizes: tuple[int, int]) -> str:
    """Return the options that Marian reads from the file of the weights."""
    is_ssru = config.decoder_mixer == "ssru"
    own = {
        "dim-emb": config.d_model,
        "dim-vocabs": f"\n  - {sizes[0]}\n  - {sizes[1]}",
        "enc-depth": config.encoder_depth,
        "dec-depth": config.decoder_depth,
        "tied-embeddings": _flag(config.tied == "decoder"),
        "tied-embeddings-all": _flag(config.tied == "all"),
        "transformer-heads": config.heads,
        "transformer-dim-ffn": config.d_ff,
        "transformer-ffn-activation": _ACTIVATIONS[config.activation],
        "transformer-postprocess-top": "n" if config.has_final_norm else '""',
        "transformer-decoder-autoreg": "rnn" if is_ssru else "self-attention",
        "dec-cell": "ssru" if is_ssru else "gru",
    }
    return "".join(f"{key}: {value}\n" for key, value in {**own, **_FIXED}.items())


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _card(model: ModelDirectory, kind: str) -> str:
    languages = model.description.languages
    alphas = {
        "intgemm.alphas.bin": "Weights in int8, with alphas: `gemm-precision: int8shiftAlphaAll`.",
        "intgemm8.bin": "Weights in int8, without alphas: `gemm-precision: int8shiftAll`.",
        "bin": "Weights in float32.",
    }
    return (
        f"# {languages.source or 'source'} to {languages.target or 'target'}, exported by transduce\n\n"
        f"A folder for Marian and its fork in Firefox. {alphas[kind]} Marian itself reads float32 only; int8 is for "
        "the fork. The search of both divides scores by length ** normalize, and the paper by ((5 + length) / 6) ** "
        "penalty, so translations can differ. Neither protects placeholders (`%s`, tags, addresses).\n"
    )
