"""Names of the layers' weights in CTranslate2's `model.bin`, and what they are called here.

Matrices of one input are stacked: queries, keys and values of self-attention, keys and values of cross-attention.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from transduce.errors import ModelError
from transduce.tensor_file import Array

STACKS = ("encoder", "decoder")
_LINEARS = {
    "self_attention/linear_0": ("self_attention.W_Q", "self_attention.W_K", "self_attention.W_V"),
    "self_attention/linear_1": ("self_attention.W_O",),
    "attention/linear_0": ("cross_attention.W_Q",),
    "attention/linear_1": ("cross_attention.W_K", "cross_attention.W_V"),
    "attention/linear_2": ("cross_attention.W_O",),
    "ffn/linear_0": ("feed_forward.W_1",),
    "ffn/linear_1": ("feed_forward.W_2",),
}
_NORMS = {
    "self_attention/layer_norm": "self_attention_residual.norm",
    "attention/layer_norm": "cross_attention_residual.norm",
    "ffn/layer_norm": "feed_forward_residual.norm",
}
_STACK_NORMS = {"layer_norm": "final_norm", "layernorm_embedding": "embedding_norm"}
_KINDS = {"gamma": "weight", "beta": "bias"}
_LAYER = re.compile(r"(encoder|decoder)/layer_(\d{1,3})/(\w+/\w+)/(weight|bias|gamma|beta)")
_STACK_NORM = re.compile(r"(encoder|decoder)/(layer_norm|layernorm_embedding)/(gamma|beta)")
_EMBEDDINGS = re.compile(
    r"(encoder/embeddings(_0)?|decoder/embeddings|decoder/projection)/weight|decoder/projection/bias"
    r"|(encoder|decoder)/position_encodings/encodings"
)


def renamed(variables: Mapping[str, Array]) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return the weights of the layers under our names, and the variables that are none."""
    found: dict[str, Array] = {}
    others: dict[str, Array] = {}
    for name, array in variables.items():
        if match := _LAYER.fullmatch(name):
            layer, part, kind = f"{match[1]}.layers.{int(match[2])}", match[3], _KINDS.get(match[4], match[4])
            if part in _NORMS:
                found[f"{layer}.{_NORMS[part]}.{kind}"] = array
                continue
            names = _LINEARS.get(part)
            if names is not None and array.ndim and not array.shape[0] % len(names):
                found |= {f"{layer}.{n}.{kind}": own for n, own in zip(names, np.split(array, len(names)), strict=True)}
                continue
        elif match := _STACK_NORM.fullmatch(name):
            found[f"{match[1]}.{_STACK_NORMS[match[2]]}.{_KINDS[match[3]]}"] = array
            continue
        elif _EMBEDDINGS.fullmatch(name):
            continue
        others[name] = array
    return found, others


def sizes(layers: Mapping[str, Array], path: Path) -> dict[str, Any]:
    """Return the sizes that the shapes of the weights tell."""
    depths = {stack: len({name.split(".")[2] for name in layers if name.startswith(f"{stack}.l")}) for stack in STACKS}
    inner = layers.get("decoder.layers.0.feed_forward.W_1.weight")
    if inner is None or inner.ndim != 2 or not all(depths.values()):
        raise ModelError(f"{path} holds no encoder and decoder with attention and feed-forward layers.")
    return {
        "layers": depths["encoder"],
        "encoder_layers": depths["encoder"],
        "decoder_layers": depths["decoder"],
        "d_ff": inner.shape[0],
        "d_model": inner.shape[1],
        "attention_bias": any(".W_Q.bias" in name for name in layers),
    }


def with_biases(layers: dict[str, Array]) -> dict[str, Array]:
    """Return the weights with zeros for biases that are missing, of attention only if it has any."""
    has_biases = any(".W_Q.bias" in name for name in layers)
    wanted = [n for n in layers if n.endswith(".weight") and ".W_" in n and (has_biases or ".feed_forward." in n)]
    missing = [name.removesuffix("weight") + "bias" for name in wanted]
    zeros = {b: np.zeros(len(layers[n]), np.float32) for n, b in zip(wanted, missing, strict=True) if b not in layers}
    return layers | zeros
