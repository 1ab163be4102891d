"""A folder of BERT, as transformers writes it.

    config.json · model.safetensors or pytorch_model.bin · tokenizer.json, or vocab.txt and tokenizer_config.json

`BertModel`, `BertForMaskedLM` and `BertForPreTraining` are read; the first has no layer that predicts masked tokens.
The pooler and the guess whether one sentence follows another are left out. Weights of older files name the gain and
bias of layer normalisation gamma and beta.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from transduce.errors import ModelError
from transduce.importing.foreign_model import (
    LARGEST_JSON,
    ForeignModel,
    bytes_of,
    licence_of,
    optional_json,
    read_json,
    refuse,
)
from transduce.importing.huggingface import ACTIVATIONS, weights_of
from transduce.importing.vocabularies import numbered_pieces
from transduce.model.text_encoder_config import TextEncoderConfig
from transduce.model_directory import Languages
from transduce.tensor_file import Array
from transduce.text.imported_vocabulary import ImportedVocabulary, WordPieces
from transduce.text.tokenizer_pair import TokenizerPair
from transduce.text.word_piece_tokenizer import LONGEST_WORD, SPECIAL, WordPieceTokenizer

_EXPECTED = {
    "model_type": ("bert",),
    "position_embedding_type": ("absolute",),
    "is_decoder": (False,),
    "add_cross_attention": (False,),
    "hidden_act": ("gelu", *ACTIVATIONS),
}
_NAMES = {
    "embeddings.word_embeddings.weight": "embeddings.source_VD",
    "embeddings.position_embeddings.weight": "encoder.positions.table_TD",
    "embeddings.token_type_embeddings.weight": "types_AD",
    "cls.predictions.bias": "embeddings.output_bias_V",
    "cls.predictions.decoder.bias": "embeddings.output_bias_V",
    "cls.predictions.decoder.weight": "embeddings.output_VD",
}
_PARTS = {
    "embeddings.LayerNorm": "encoder.embedding_norm",
    "cls.predictions.transform.dense": "masked_head.W",
    "cls.predictions.transform.LayerNorm": "masked_head.norm",
}
_OF_LAYER = {
    "attention.self.query": "self_attention.W_Q",
    "attention.self.key": "self_attention.W_K",
    "attention.self.value": "self_attention.W_V",
    "attention.output.dense": "self_attention.W_O",
    "attention.output.LayerNorm": "self_attention_residual.norm",
    "intermediate.dense": "feed_forward.W_1",
    "output.dense": "feed_forward.W_2",
    "output.LayerNorm": "feed_forward_residual.norm",
}
_CUTTING = {
    "normalizer": "BertNormalizer",
    "clean_text": True,
    "pre_tokenizer": "BertPreTokenizer",
    "type": "WordPiece",
    "continuing_subword_prefix": "##",
    "max_input_chars_per_word": LONGEST_WORD,
    "unk_token": SPECIAL[1],
}
"""How a tokenizer.json must cut text."""
_LEFT_OUT = ("pooler.", "cls.seq_relationship.", "embeddings.position_ids")


def is_bert(source: Path) -> bool:
    """Return whether a folder is one of BERT."""
    config = source / "config.json"
    content = optional_json(config)
    # The files of BERT's authors do not name the type, and have token types as no other network here.
    return content.get("model_type", "bert" if "type_vocab_size" in content else None) == "bert"


def read_bert(source: Path, languages: Languages) -> ForeignModel:
    """Return the model in a folder."""
    name, options = str(source / "config.json"), read_json(source / "config.json")
    refuse(options, _EXPECTED, name=name)
    tokenizer = _tokenizer(source)
    weights = _renamed(weights_of(source), source)
    rows, output = weights.get("embeddings.source_VD"), weights.get("embeddings.output_VD")
    is_tied = output is None or (rows is not None and np.array_equal(output, rows))
    if is_tied:
        weights.pop("embeddings.output_VD", None)
    try:
        config = TextEncoderConfig(
            vocabulary_size=tokenizer.vocabulary_size,
            d_model=options.get("hidden_size", 768),
            layers=options.get("num_hidden_layers", 12),
            heads=options.get("num_attention_heads", 12),
            d_ff=options.get("intermediate_size", 3072),
            learned_positions=options.get("max_position_embeddings", 512),
            token_types=options.get("type_vocab_size", 2),
            norm_epsilon=options.get("layer_norm_eps", 1e-12),
            activation=ACTIVATIONS[options.get("hidden_act", "gelu")],
            tied=is_tied,
            masked_head="masked_head.W.weight" in weights,
        )
    except (ValidationError, TypeError) as fault:
        raise ModelError(f"{name} has impossible sizes: {fault!s:.300}") from None
    return ForeignModel(
        origin="Hugging Face BERT",
        config=config,
        weights=weights,
        tokenizers=TokenizerPair.shared(tokenizer),
        languages=languages,
        assumptions=("the second of two texts begins after the first [SEP]",),
        licence=licence_of(source),
    )


def _renamed(found: Mapping[str, Array], source: Path) -> dict[str, Array]:
    """Return the weights under our names."""
    weights: dict[str, Array] = {}
    for given, array in found.items():
        key = given.removeprefix("bert.")
        if not key.startswith(_LEFT_OUT):
            weights[_renamed_key(key, source)] = np.asarray(array, np.float32)
    return weights


def _renamed_key(key: str, source: Path) -> str:
    if key in _NAMES:
        return _NAMES[key]
    head, _, last = key.rpartition(".")
    kind = {"gamma": "weight", "beta": "bias"}.get(last, last)
    layer = re.fullmatch(r"encoder\.layer\.([0-9]{1,4})\.(.+)", head)
    place = f"encoder.layers.{int(layer[1])}." if layer else ""
    part = _OF_LAYER.get(layer[2]) if layer else _PARTS.get(head)
    if part is None or kind not in ("weight", "bias"):
        raise ModelError(f"{source} holds the weight {key:.100}, which BERT does not have.")
    return f"{place}{part}.{kind}"


def _tokenizer(source: Path) -> WordPieceTokenizer:
    if (source / "tokenizer.json").is_file():
        name, content = str(source / "tokenizer.json"), read_json(source / "tokenizer.json")
        try:
            normalizer, model = content["normalizer"], content["model"]
            found = {"normalizer": normalizer["type"], "pre_tokenizer": content["pre_tokenizer"]["type"], **model}
            found["clean_text"] = normalizer["clean_text"]
            if any(found.get(key, value) != value for key, value in _CUTTING.items()):  # older files leave some out
                raise ModelError(f"{name} is not BERT's: it does not cut words into WordPiece as BERT does.")
            numbers = model["vocab"] | {added["content"]: added["id"] for added in content["added_tokens"]}
            options = {key: normalizer[key] for key in ("lowercase", "strip_accents", "handle_chinese_chars")}
        except (KeyError, TypeError, ValueError):
            raise ModelError(f"{name} is damaged: it does not hold WordPiece.") from None
        pieces = numbered_pieces(numbers, name=name)
    else:
        name, stated = str(source / "vocab.txt"), optional_json(source / "tokenizer_config.json")
        lines = bytes_of(source / "vocab.txt", largest=LARGEST_JSON).decode("utf-8", "replace").split("\n")
        pieces = [line.rstrip("\r") for line in (lines[:-1] if lines[-1] == "" else lines)]
        options = {
            "lowercase": stated.get("do_lower_case", True),
            "strip_accents": stated.get("strip_accents"),
            "handle_chinese_chars": stated.get("tokenize_chinese_chars", True),
        }
    if missing := [special for special in SPECIAL if special not in pieces]:
        raise ModelError(f"{name} is not BERT's: it lacks {missing[0]}.")
    return WordPieceTokenizer(_vocabulary(pieces, options, name=name), name=name)


def _vocabulary(pieces: list[str], options: Mapping[str, Any], *, name: str) -> ImportedVocabulary:
    padding, unknown, start, end = map(pieces.index, SPECIAL[:4])
    lowercase, accents = options["lowercase"], options["strip_accents"]
    try:
        cutting = WordPieces(
            lowercase=lowercase,
            strip_accents=lowercase if accents is None else accents,
            chinese_characters=options["handle_chinese_chars"],
        )
        return ImportedVocabulary(
            pieces=tuple(pieces), padding=padding, unknown=unknown, start=start, end=end, word_pieces=cutting
        )
    except ValidationError as fault:
        raise ModelError(f"{name} is damaged: {fault.errors()[0]['msg']:.200}.") from None
