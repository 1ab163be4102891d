"""Writes a directory that Hugging Face's `MarianMTModel` loads, or `PegasusForConditionalGeneration` for pre-norm.

Marian's network normalises after each sublayer, as the paper does. Pegasus is the same network in transformers with the
norm before each sublayer and one after each stack. Both are called Marian below; the tokenizer is Marian's for both.

Marian differs from our network in two ways. Its position vectors hold all sines and then all cosines, but the paper
interleaves the two: the export permutes the model's dimensions in every weight, which changes no output. Its epsilon of
layer normalisation is fixed at 1e-5, but our default is 1e-6, as in the authors' code: this difference remains and
changes the logits slightly. A network that is not in `HANDLED` is refused.

Marian's tokenizer normalises punctuation as Moses does before it splits text, and does not protect placeholders.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from transduce.errors import ModelError
from transduce.export.program_tokenizers import program_tokenizers
from transduce.files import directory_written_atomically
from transduce.model.config import SIZES, ModelConfig
from transduce.model_directory import ModelDirectory
from transduce.networks.config import NetworkConfig
from transduce.networks.handled import Handled
from transduce.special_tokens import OWN_SPECIAL_TOKENS, SpecialTokens
from transduce.tensor_file import Array, write_tensors

EPSILON = 1e-5
"""The epsilon of Marian's layer normalisation."""
LONGEST = 1024
"""The maximum sentence length that config.json states; Marian computes the positions itself."""
_ATTENTION = {"W_Q": "q_proj", "W_K": "k_proj", "W_V": "v_proj", "W_O": "out_proj"}
_SUBLAYERS = {"self_attention": "self_attn", "cross_attention": "encoder_attn"}
_NORMS = {
    "self_attention_residual.norm": "self_attn_layer_norm",
    "cross_attention_residual.norm": "encoder_attn_layer_norm",
    "feed_forward_residual.norm": "final_layer_norm",
}
_ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_tanh": "gelu_pytorch_tanh",
    "gelu_sigmoid": "quick_gelu",
    "silu": "silu",
}
_CLASSES = {"post": ("MarianMTModel", "marian"), "pre": ("PegasusForConditionalGeneration", "pegasus")}
"""The class and the model type in transformers, by `norm`."""
_WRITES_MODEL_WIDTH = ("W_O", "W_2")
HANDLED = Handled(
    "transformer",
    {
        **SIZES,
        "norm": tuple(_CLASSES),
        "norm_epsilon": (1e-6, EPSILON),
        "positions": ("sinusoidal", "sinusoidal_halves"),
        "scores": ("scaled",),
        "attention_bias": (False, True),
        "activation": tuple(_ACTIVATIONS),
        "tied": ("all",),
        "embedding_scale": (None, 1.0),
        "output_bias": (False, True),
    },
)


def obstacle(config: NetworkConfig) -> str | None:
    """Return the part of a network that Marian does not support, or None."""
    found = HANDLED.obstacle(config)
    if found is not None or not isinstance(config, ModelConfig):
        return found
    widths, plain = {config.query_width, config.value_width}, config.d_model // config.heads
    return None if widths == {plain} else f"d_k = {config.query_width} and d_v = {config.value_width} (only {plain})"


def export_huggingface(model: ModelDirectory, folder: Path) -> None:
    """Write a directory for transformers to `folder`, which must not exist."""
    if folder.exists():
        raise ModelError(f"{folder} exists already. Choose another name, or remove it first.")
    config = model.description.architecture
    if (found := obstacle(config)) or not isinstance(config, ModelConfig):
        raise ModelError(
            f"Hugging Face's Marian and Pegasus do not support this model's {found}. "
            "`--format ctranslate2` may; `transduce serve` runs the model as it is."
        )
    source, target = program_tokenizers(model, program="Hugging Face", vocabularies=1)
    special = model.tokenizers.special
    with directory_written_atomically(folder) as beside:
        weights = marian_weights(model.parameters, config)
        write_tensors(beside / "model.safetensors", weights, metadata={"format": "pt"})
        _write_json(beside / "config.json", marian_config(config, special))
        _write_json(beside / "generation_config.json", _generation(model))
        for name, own in (("source.spm", source), ("target.spm", target)):
            (beside / name).write_bytes(own.piece_file)
        _write_json(beside / "vocab.json", {piece: number for number, piece in enumerate(target.pieces)})
        _write_json(beside / "tokenizer_config.json", _tokenizer(model, target.pieces))
        (beside / "README.md").write_text(_card(model), encoding="utf-8")


def marian_weights(parameters: Mapping[str, Array], config: ModelConfig) -> dict[str, Array]:
    """Return the weights with Marian's names and in Marian's order of dimensions; absent biases are zero."""
    order = np.arange(config.d_model)
    if config.positions == "sinusoidal":
        order = np.concatenate([order[0::2], order[1::2]])
    bias_V = parameters.get("embeddings.output_bias_V", np.zeros(config.vocabulary_size, np.float32))
    weights = {
        "model.shared.weight": parameters["embeddings.source_VD"][:, order],
        "final_logits_bias": bias_V[None],
    }
    for name, array in parameters.items():
        if name.startswith(("encoder.layers.", "decoder.layers.")):
            weights[f"model.{_marian_name(name)}"] = _permuted(name, array, order)
        elif ".final_norm." in name:
            weights[f"model.{name.replace('final_norm', 'layer_norm')}"] = array[order]
    for name, array in list(weights.items()):
        bias = f"{name.removesuffix('.weight')}.bias"
        if name.endswith("_proj.weight") and bias not in weights:
            weights[bias] = np.zeros(len(array), np.float32)
    return weights


def marian_config(config: ModelConfig, special: SpecialTokens = OWN_SPECIAL_TOKENS) -> dict[str, Any]:
    """Return the content of config.json."""
    architecture, model_type = _CLASSES[config.norm]
    return {
        "architectures": [architecture],
        "model_type": model_type,
        "vocab_size": config.vocabulary_size,
        "decoder_vocab_size": config.vocabulary_size,
        "share_encoder_decoder_embeddings": True,
        "tie_word_embeddings": True,
        "d_model": config.d_model,
        "encoder_layers": config.encoder_depth,
        "decoder_layers": config.decoder_depth,
        "encoder_attention_heads": config.heads,
        "decoder_attention_heads": config.heads,
        "encoder_ffn_dim": config.d_ff,
        "decoder_ffn_dim": config.d_ff,
        "activation_function": _ACTIVATIONS[config.activation],
        "scale_embedding": config.embedding_scale is None,
        "static_position_embeddings": True,
        "max_position_embeddings": LONGEST,
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "activation_dropout": config.feed_forward_dropout,
        **_special_ids(special),
        "dtype": "float32",
    }


def _permuted(name: str, array: Array, order: Array) -> Array:
    """Return a weight with the model's dimensions in the new order.

    They are the rows of a weight that writes to the residual stream, and the columns of a weight that reads from it.
    """
    part = name.split(".")[-2]
    if part == "norm" or part in _WRITES_MODEL_WIDTH:
        return array[order]
    return array[:, order] if array.ndim == 2 else array


def _marian_name(name: str) -> str:
    stack, layers, number, *rest, kind = name.split(".")
    inner = ".".join(rest)
    if inner in _NORMS:
        marian = _NORMS[inner]
    elif rest[0] == "feed_forward":
        marian = {"W_1": "fc1", "W_2": "fc2"}[rest[1]]
    else:
        marian = f"{_SUBLAYERS[rest[0]]}.{_ATTENTION[rest[1]]}"
    return f"{stack}.{layers}.{number}.{marian}.{kind}"


def _special_ids(special: SpecialTokens) -> dict[str, int]:
    return {
        "pad_token_id": special.padding,
        "bos_token_id": special.start,
        "eos_token_id": special.end,
        "forced_eos_token_id": special.end,
        "decoder_start_token_id": special.start,
    }


def _generation(model: ModelDirectory) -> dict[str, Any]:
    decoding, special = model.description.decoding, model.tokenizers.special
    return {
        **_special_ids(special),
        # Marian has no consensus decoding, and a beam chosen for consensus is too wide for a plain search.
        "num_beams": 4 if decoding.get("consensus") else decoding.get("beam", 4),
        "length_penalty": 1.0,  # Marian divides by a power of the length, so the paper's exponent does not apply
        "max_length": 512,
        "bad_words_ids": [[token] for token in special.never_generated],
    }


def _tokenizer(model: ModelDirectory, pieces: Sequence[str]) -> dict[str, Any]:
    special = model.tokenizers.special
    languages = model.description.languages
    return {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": languages.source,
        "target_lang": languages.target,
        "model_max_length": model.description.longest_sentence or LONGEST,
        "separate_vocabs": False,
        "unk_token": pieces[special.unknown],
        "eos_token": pieces[special.end],
        "pad_token": pieces[special.padding],
    }


def _card(model: ModelDirectory) -> str:
    languages, config = model.description.languages, model.description.architecture
    assert isinstance(config, ModelConfig)
    return (
        f"# {languages.source or 'source'} to {languages.target or 'target'}, exported by transduce\n\n"
        f"`{_CLASSES[config.norm][0]}.from_pretrained` and `MarianTokenizer.from_pretrained` load it. "
        "If transformers reports that `embed_positions` are missing: it computes them itself.\n\n"
        "It differs from the original model in three ways. Marian's epsilon of layer normalisation is always 1e-5; in "
        "transduce it is 1e-6 by default. Marian's search has another formula for the length penalty, so outputs can "
        "differ in length. Marian's tokenizer normalises punctuation and does not protect placeholders (`%s`, tags, "
        "addresses): the model translates them as text.\n"
    )


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
