"""Marian's names of weights, and its files: `.bin`, in float32 or in intgemm's int8, and the binary shortlist.

    .bin: u64 version 1, u64 n · n × (u64 name length, type, rank, bytes) · names · i32 shapes · u64 gap · data
    lex….s2t.bin: u64 magic, checksum, first, best, offsets n = V + 1, ids m · n × u64 · m × u32

Data begin at a multiple of 256 bytes. Matrices are (in, out); one of intgemm lies transposed unless it is an embedding,
and its factor follows it: w = q / factor, with 127 for the largest weight.
"""

import re
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from transduce.data.shortlist import Shortlist
from transduce.tensor_file import Array

OPTIONS = "special:model.yml"
_BLOCK = 256
_SHORTLIST_MAGIC = 0xF11A48D5013417F5
_SUBLAYERS = {"self_attention": "self", "cross_attention": "context"}
_PARTS = {
    **{f"{ours}.W_{q}.weight": f"{own}_W{q.lower()}" for ours, own in _SUBLAYERS.items() for q in "QKVO"},
    **{f"{ours}.W_{q}.bias": f"{own}_b{q.lower()}" for ours, own in _SUBLAYERS.items() for q in "QKVO"},
    **{f"feed_forward.W_{n}.weight": f"ffn_W{n}" for n in "12"},
    **{f"feed_forward.W_{n}.bias": f"ffn_b{n}" for n in "12"},
    "ssru.W.weight": "rnn_W",
    "ssru.W_f.weight": "rnn_Wf",
    "ssru.W_f.bias": "rnn_bf",
}
_NORMS = {"self_attention": "self_Wo", "cross_attention": "context_Wo", "feed_forward": "ffn_ffn"}
_KINDS = {"weight": "scale", "bias": "bias"}


def marian_name(name: str, *, is_ssru: bool) -> str:
    """Return Marian's name of a weight of a layer or of a stack's last norm; `is_ssru` if decoders have SSRU."""
    if (match := re.fullmatch(r"(encoder|decoder)\.final_norm\.(\w+)", name)) is not None:
        return f"{match[1]}_top_ln_{_KINDS[match[2]]}"
    stack, _, number, part = name.split(".", 3)
    layer = f"{stack}_l{int(number) + 1}"
    if (norm := re.fullmatch(r"(\w+)_residual\.norm\.(\w+)", part)) is None:
        return f"{layer}_{_PARTS[part]}"
    own = "rnn_ffn" if is_ssru and stack == "decoder" and norm[1] == "self_attention" else _NORMS[norm[1]]
    return f"{layer}_{own}_ln_{_KINDS[norm[2]]}"


def write_marian_file(path: Path, weights: Mapping[str, Array], options: str, *, is_int8: bool) -> None:
    """Write weights under Marian's names, shape (in, out), and the options of the network; matrices as int8."""
    text = np.frombuffer(options.encode() + b"\0", np.int8)
    items = [(name, *_stored(name, array, is_int8=is_int8)) for name, array in sorted(weights.items())]
    items.append((OPTIONS, 0x101, text.shape, text.tobytes()))
    padded = [
        (name.encode() + b"\0", kind, shape, data + bytes(-len(data) % _BLOCK)) for name, kind, shape, data in items
    ]
    head = struct.pack("<QQ", 1, len(padded))
    head += b"".join(struct.pack("<4Q", len(name), kind, len(shape), len(data)) for name, kind, shape, data in padded)
    head += b"".join(name for name, *_ in padded)
    head += b"".join(struct.pack(f"<{len(shape)}i", *shape) for _, _, shape, _ in padded)
    gap = -(len(head) + 8) % _BLOCK
    with path.open("wb") as file:
        file.writelines([head, struct.pack("<Q", gap), bytes(gap), *(data for *_, data in padded)])


def _stored(name: str, array: Array, *, is_int8: bool) -> tuple[int, tuple[int, ...], bytes]:
    if len(array) == 1 or not is_int8:
        return 0x404, array.shape, np.ascontiguousarray(array, "<f4").tobytes()
    factor = np.float32(127.0) / np.maximum(np.abs(array).max(), np.finfo(np.float32).tiny)
    rounded = np.rint(array * factor).astype(np.int8)
    lying = rounded if "Wemb" in name else rounded.T
    return 0x4101, array.shape, lying.tobytes() + struct.pack("<f", factor)


def write_marian_shortlist(
    path: Path, shortlist: Shortlist, *, sources: Sequence[int], targets: Sequence[int], end: int
) -> None:
    """Write a shortlist; `sources` and `targets` are our ids of Marian's, `end` our id of the token that ends sources.

    Marian's common tokens are the first ones, so the others become candidates of the end token.
    """
    numbers = {token: number for number, token in enumerate(targets)}
    common = {numbers[token] for token in shortlist.common_C.tolist()}
    always = common | {numbers[token] for token in shortlist.special.ids if token in numbers}
    first = next(number for number in range(len(targets) + 1) if number not in always)
    lists = []
    for token in sources:
        own = {numbers[one] for one in shortlist.candidates_VK[token].tolist() if one in numbers}
        own |= ({numbers[token]} if shortlist.copies_sources else set()) | (common if token == end else set())
        lists.append(sorted(number for number in own if number >= first))
    offsets = np.cumsum([0, *map(len, lists)]).astype("<u8")
    ids = np.concatenate([np.array(own, "<u4") for own in lists])
    most = max(map(len, lists))
    head = struct.pack("<6Q", _SHORTLIST_MAGIC, 0, first, most, len(offsets), len(ids))
    path.write_bytes(head + offsets.tobytes() + ids.tobytes())
