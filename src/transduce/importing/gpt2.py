"""A folder of GPT-2, as transformers writes it.

    config.json · model.safetensors or pytorch_model.bin · vocab.json and merges.txt, or tokenizer.json

Weights of its `Conv1D` are (in, out) and are transposed; queries, keys and values are one matrix. `<|endoftext|>`
begins and ends a text. GPT-2 has no padding token: one more row is added, whose bias keeps it from being written.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from transduce.errors import ModelError
from transduce.importing.foreign_model import LARGEST_JSON, ForeignModel, bytes_of, licence_of, read_json, refuse
from transduce.importing.huggingface import ACTIVATIONS, weights_of
from transduce.importing.vocabularies import numbered_pieces
from transduce.model.language_model_config import LanguageModelConfig
from transduce.model_directory import Languages
from transduce.tensor_file import Array
from transduce.text.byte_tokenizer import ByteTokenizer
from transduce.text.imported_vocabulary import ImportedVocabulary
from transduce.text.tokenizer_pair import TokenizerPair

_EXPECTED = {
    "model_type": ("gpt2",),
    "scale_attn_weights": (True,),
    "scale_attn_by_inverse_layer_idx": (False,),
    "add_cross_attention": (False,),
    "activation_function": ("gelu_new", *ACTIVATIONS),
}
_PADDING, _NEVER = "<pad>", -1e4
_LINEARS = {"attn.c_proj": "self_attention.W_O", "mlp.c_fc": "feed_forward.W_1", "mlp.c_proj": "feed_forward.W_2"}
_NORMS = {"ln_1": "self_attention_residual.norm", "ln_2": "feed_forward_residual.norm"}


def is_gpt2(source: Path) -> bool:
    """Return whether a folder is one of GPT-2."""
    config = source / "config.json"
    content = read_json(config) if config.is_file() else None
    return isinstance(content, dict) and content.get("model_type") == "gpt2"


def read_gpt2(source: Path, languages: Languages) -> ForeignModel:
    """Return the model in a folder."""
    name, options = str(source / "config.json"), read_json(source / "config.json")
    refuse(options, _EXPECTED, name=name)
    found = {
        key.removeprefix("transformer."): np.asarray(array, np.float32) for key, array in weights_of(source).items()
    }
    tokenizer = _tokenizer(source)
    weights, is_tied = renamed_weights(found, source)
    try:
        config = LanguageModelConfig(
            vocabulary_size=tokenizer.vocabulary_size,
            d_model=options.get("n_embd", 768),
            layers=options.get("n_layer", 12),
            heads=options.get("n_head", 12),
            d_ff=options.get("n_inner") or 4 * options.get("n_embd", 768),
            learned_positions=options.get("n_positions", 1024),
            norm_epsilon=options.get("layer_norm_epsilon", 1e-5),
            activation=ACTIVATIONS[options.get("activation_function", "gelu_new")],
            dropout=options.get("resid_pdrop", 0.1),
            attention_dropout=options.get("attn_pdrop", 0.1),
            tied=is_tied,
            output_bias=True,
        )
    except (ValidationError, TypeError) as fault:
        raise ModelError(f"{name} has impossible sizes: {fault!s:.300}") from None
    return ForeignModel(
        origin="Hugging Face GPT-2",
        config=config,
        weights=weights,
        tokenizers=TokenizerPair.shared(tokenizer),
        languages=languages,
        assumptions=("a text begins with <|endoftext|>, and a prompt without it",),
        licence=licence_of(source),
    )


def renamed_weights(found: Mapping[str, Array], source: Path) -> tuple[dict[str, Array], bool]:
    """Return the weights under our names, and whether embedding and output are one matrix."""
    weights: dict[str, Array] = {}
    for key, array in found.items():
        if key in ("wte.weight", "lm_head.weight"):
            continue
        if key == "wpe.weight":
            weights["decoder.positions.table_TD"] = array
        elif key.startswith("ln_f."):
            weights[f"decoder.final_norm.{key[5:]}"] = array
        elif not key.endswith((".attn.bias", ".attn.masked_bias")):  # the mask
            weights |= _of_layer(key, array, source)
    for ours, key in (("source_VD", "wte.weight"), ("output_VD", "lm_head.weight")):
        if key in found and found[key].ndim == 2:
            weights[f"embeddings.{ours}"] = np.concatenate([found[key], np.zeros_like(found[key][:1])])
    rows = weights.get("embeddings.source_VD")
    if rows is None:
        raise ModelError(f"{source} has no embeddings among its weights.")
    is_tied = np.array_equal(weights.get("embeddings.output_VD", rows), rows)
    if is_tied:
        weights.pop("embeddings.output_VD", None)
    bias_V = np.zeros(len(rows), np.float32)
    bias_V[-1] = _NEVER
    return {**weights, "embeddings.output_bias_V": bias_V}, is_tied


def _of_layer(key: str, array: Array, source: Path) -> dict[str, Array]:
    head, _, kind = key.rpartition(".")
    layer, _, part = head.removeprefix("h.").partition(".")
    if key.startswith("h.") and layer.isdecimal() and kind in ("weight", "bias"):
        place = f"decoder.layers.{int(layer)}."
        if part in _NORMS:
            return {f"{place}{_NORMS[part]}.{kind}": array}
        if part in _LINEARS:
            return {f"{place}{_LINEARS[part]}.{kind}": array.T}
        if part == "attn.c_attn" and array.shape[-1] % 3 == 0:
            thirds = np.split(array, 3, axis=-1)
            return {f"{place}self_attention.W_{one}.{kind}": each.T for one, each in zip("QKV", thirds, strict=True)}
    raise ModelError(f"{source} holds the weight {key:.100}, which GPT-2 does not have.")


def _tokenizer(source: Path) -> ByteTokenizer:
    """Return the tokenizer, with a padding token after the others."""
    if (source / "vocab.json").is_file() and (source / "merges.txt").is_file():
        name, numbers = str(source / "vocab.json"), read_json(source / "vocab.json")
        lines = bytes_of(source / "merges.txt", largest=LARGEST_JSON).decode("utf-8", "replace").split("\n")
        merges: list[Any] = [line for line in lines if line and not line.startswith("#version")]
    else:
        name, content = str(source / "tokenizer.json"), read_json(source / "tokenizer.json")
        try:
            if content["pre_tokenizer"]["type"] != "ByteLevel" or content["normalizer"] is not None:
                raise ModelError(f"{name} is not GPT-2's: it is no byte-level BPE without normalisation.")
            numbers, merges = dict(content["model"]["vocab"]), list(content["model"]["merges"])
            numbers |= {added["content"]: added["id"] for added in content["added_tokens"]}
        except (KeyError, TypeError, ValueError):
            raise ModelError(f"{name} is damaged: it does not hold a byte-level BPE.") from None
    pieces = numbered_pieces(numbers, name=name)
    pairs = [tuple(pair.split(" ")) if isinstance(pair, str) else tuple(pair) for pair in merges]
    if "<|endoftext|>" not in pieces or not all(len(pair) == 2 for pair in pairs):
        raise ModelError(f"{name} is not GPT-2's: it lacks <|endoftext|>, or it joins others than pairs.")
    end, padding = pieces.index("<|endoftext|>"), len(pieces)
    try:
        vocabulary = ImportedVocabulary(
            pieces=(*pieces, _PADDING), padding=padding, unknown=padding, start=end, end=end, codes=tuple(pairs)
        )
    except ValidationError as fault:
        raise ModelError(f"{name} is damaged: {fault.errors()[0]['msg']:.200}.") from None
    return ByteTokenizer(vocabulary, name=name)
