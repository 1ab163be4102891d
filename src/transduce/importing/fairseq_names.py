"""Names of weights in fairseq, which Hugging Face's MarianMT took over, and what they are called here."""

import re
from collections.abc import Mapping

import numpy as np

from transduce.tensor_file import Array

_SUBLAYERS = {"self_attn": "self_attention", "encoder_attn": "cross_attention"}
_PARTS = {"q_proj": "W_Q", "k_proj": "W_K", "v_proj": "W_V", "out_proj": "W_O"}
_NAMES = {
    **{f"{own}.{part}": f"{ours}.{name}" for own, ours in _SUBLAYERS.items() for part, name in _PARTS.items()},
    **{f"{own}_layer_norm": f"{ours}_residual.norm" for own, ours in _SUBLAYERS.items()},
    "final_layer_norm": "feed_forward_residual.norm",
    "fc1": "feed_forward.W_1",
    "fc2": "feed_forward.W_2",
}
_OLD_NORMS = {
    "encoder": ("self_attn_layer_norm", "final_layer_norm"),
    "decoder": ("self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm"),
}
_OLD_NORM = re.compile(r"((encoder|decoder)\.layers\.\d{1,3})\.layer_norms\.([012])\.(weight|bias)")
_STACK_NAMES = {"layer_norm": "final_norm", "layernorm_embedding": "embedding_norm"}
_LAYER = re.compile(r"(encoder|decoder)\.layers\.(\d{1,3})\.(.+)\.(weight|bias)")
_STACK = re.compile(r"(encoder|decoder)\.(layer_norm|layernorm_embedding)\.(weight|bias)")


def renamed(weights: Mapping[str, Array]) -> tuple[dict[str, Array], list[str]]:
    """Return the weights of the layers under our names, and the names that have no counterpart here."""
    found: dict[str, Array] = {}
    others: list[str] = []
    for name, array in _split(weights).items():
        if (match := _LAYER.fullmatch(name)) and match[3] in _NAMES:
            found[f"{match[1]}.layers.{int(match[2])}.{_NAMES[match[3]]}.{match[4]}"] = array
        elif match := _STACK.fullmatch(name):
            found[f"{match[1]}.{_STACK_NAMES[match[2]]}.{match[3]}"] = array
        else:
            others.append(name)
    return found, others


def _split(weights: Mapping[str, Array]) -> dict[str, Array]:
    """Return the weights under newer names, with the matrices that old versions stack (`in_proj_weight`) apart."""
    split: dict[str, Array] = {}
    for name, array in weights.items():
        if (old := _OLD_NORM.fullmatch(name)) and int(old[3]) < len(_OLD_NORMS[old[2]]):
            name = f"{old[1]}.{_OLD_NORMS[old[2]][int(old[3])]}.{old[4]}"
        stem, stacked, kind = name.partition(".in_proj_")
        if not stacked or array.shape[0] % 3:
            split[name] = array
            continue
        for part, own in zip(("q_proj", "k_proj", "v_proj"), np.split(array, 3), strict=True):
            split[f"{stem}.{part}.{kind}"] = own
    return split
