"""Names of weights in Marian, where matrices are (in, out), and what they are called here.

`ssru` stands for the recurrent unit `rnn` in place of self-attention.
"""

import re
from collections.abc import Mapping, Sequence

from transduce.tensor_file import Array

_SUBLAYERS = {"self": "self_attention", "context": "cross_attention"}
_NAMES = {
    **{f"{own}_W{q}": f"{ours}.W_{q.upper()}.weight" for own, ours in _SUBLAYERS.items() for q in "qkvo"},
    **{f"{own}_b{q}": f"{ours}.W_{q.upper()}.bias" for own, ours in _SUBLAYERS.items() for q in "qkvo"},
    **{f"ffn_W{n}": f"feed_forward.W_{n}.weight" for n in "12"},
    **{f"ffn_b{n}": f"feed_forward.W_{n}.bias" for n in "12"},
    "rnn_W": "ssru.W.weight",
    "rnn_Wf": "ssru.W_f.weight",
    "rnn_bf": "ssru.W_f.bias",
}
_NORMS = {
    "self_Wo": "self_attention_residual.norm",
    "context_Wo": "cross_attention_residual.norm",
    "ffn_ffn": "feed_forward_residual.norm",
    "rnn_ffn": "self_attention_residual.norm",
    "rnn": "self_attention_residual.norm",  # with pre-norm
    "top": "final_norm",
    "emb": "embedding_norm",
}
_KINDS = {"scale": "weight", "bias": "bias"}
_LAYER = re.compile(r"(encoder|decoder)_l(\d{1,3})_(\w+)")
_NORM = re.compile(r"(\w+?)_ln_(scale|bias)(?:_pre)?")
_STACK = re.compile(r"(encoder|decoder)_(top|emb)_ln_(scale|bias)(?:_pre)?")


def renamed(weights: Mapping[str, Array], *, tied_layers: Sequence[int]) -> tuple[dict[str, Array], list[str]]:
    """Return the weights of the layers under our names, and the names that have no counterpart here.

    `tied_layers` names, for each layer of the decoder, the layer whose weights it uses; empty if each has its own.
    """
    found: dict[str, Array] = {}
    others: list[str] = []
    for name, array in weights.items():
        stack, layer = _STACK.fullmatch(name), _LAYER.fullmatch(name)
        ours = None if layer is None else _in_layer(layer[3])
        if stack is not None:
            found[f"{stack[1]}.{_NORMS[stack[2]]}.{_KINDS[stack[3]]}"] = array.reshape(-1)
        elif layer is None or ours is None:
            others.append(name)
        else:
            number = int(layer[2])
            users = [number] if layer[1] == "encoder" or not tied_layers else _users(number, tied_layers)
            own = array.T if ".W" in ours and ours.endswith(".weight") else array.reshape(-1)
            found |= {f"{layer[1]}.layers.{user - 1}.{ours}": own for user in users}
    return found, others


def _in_layer(name: str) -> str | None:
    norm = _NORM.fullmatch(name)
    if norm is not None and norm[1] in _NORMS:
        return f"{_NORMS[norm[1]]}.{_KINDS[norm[2]]}"
    return _NAMES.get(name)


def _users(number: int, tied_layers: Sequence[int]) -> list[int]:
    return [place for place, own in enumerate(tied_layers, start=1) if own == number]
