"""A small folder of Marian with random weights, written by hand: .npz, .bin, and .bin in int8 as Firefox's are."""

import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from tests.importing.marian_folder import LINES
from tests.text.foreign_pieces import trained_pieces

from transduce.tensor_file import Array
from transduce.text.piece_file import read_piece_file

OPTIONS = {
    "type": "transformer", "dim-emb": "16", "enc-depth": "2", "dec-depth": "2", "transformer-heads": "4",
    "transformer-dim-ffn": "24", "transformer-ffn-activation": "relu", "transformer-ffn-depth": "2",
    "transformer-preprocess": '""', "transformer-postprocess": "dan", "transformer-postprocess-emb": "d",
    "transformer-postprocess-top": '""', "transformer-decoder-autoreg": "rnn", "dec-cell": "ssru",
    "tied-embeddings-all": "true", "transformer-tied-layers": "\n  []",
}  # fmt: skip


def random_weights(size: int, *, d: int = 16, f: int = 24, layers: int = 2) -> dict[str, Array]:
    """Return the weights of a student: post-norm, SSRU decoder, one matrix for all embeddings."""
    random = np.random.default_rng(7)
    shapes: dict[str, tuple[int, int]] = {"Wemb": (size, d), "decoder_ff_logit_out_b": (1, size)}
    for stack, attentions in (("encoder", ("self",)), ("decoder", ("context",))):
        for n in range(1, layers + 1):
            layer = f"{stack}_l{n}"
            for attention in attentions:
                shapes |= {f"{layer}_{attention}_W{q}": (d, d) for q in "qkvo"}
                shapes |= {f"{layer}_{attention}_b{q}": (1, d) for q in "qkvo"}
            shapes |= {f"{layer}_ffn_W1": (d, f), f"{layer}_ffn_b1": (1, f)}
            shapes |= {f"{layer}_ffn_W2": (f, d), f"{layer}_ffn_b2": (1, d)}
            if stack == "decoder":
                shapes |= {f"{layer}_rnn_W": (d, d), f"{layer}_rnn_Wf": (d, d), f"{layer}_rnn_bf": (1, d)}
            norms = [f"{attention}_Wo" for attention in attentions] + ["ffn_ffn"]
            for norm in (*norms, *(["rnn_ffn"] if stack == "decoder" else [])):
                shapes |= {f"{layer}_{norm}_ln_{kind}": (1, d) for kind in ("scale", "bias")}
    weights = {name: random.normal(size=shape).astype("<f4") / 4 for name, shape in shapes.items()}
    return {name: 1 + array if name.endswith("_scale") else array for name, array in weights.items()}


def write_npz(path: Path, weights: Mapping[str, Array], options: Mapping[str, str] = OPTIONS) -> None:
    np.savez(path, **{"special:model.yml": _options(options), **weights})  # type: ignore[arg-type]


def write_bin(path: Path, weights: Mapping[str, Array], options: Mapping[str, str] = OPTIONS) -> None:
    """Write a .bin file; int8 matrices, of which only embeddings lie as their shape says, as intgemm has them."""
    items: list[tuple[str, int, tuple[int, ...], bytes]] = []
    for name, array in {"special:model.yml": _options(options), **weights}.items():
        if array.dtype == np.int8 and array.ndim == 2:
            lying = array if "Wemb" in name else np.ascontiguousarray(array.T)
            items.append((name, 0x4101, array.shape, lying.tobytes() + struct.pack("<f", 64.0)))
            items.append((f"{name}_QuantMultA", 0x404, (1, 1), struct.pack("<f", 3.0)))
        else:
            items.append((name, 0x101 if array.dtype == np.int8 else 0x404, array.shape, array.tobytes()))
    padded = [(name, kind, shape, data + bytes(-len(data) % 256)) for name, kind, shape, data in items]
    head = struct.pack("<QQ", 1, len(padded))
    head += b"".join(struct.pack("<4Q", len(n) + 1, kind, len(shape), len(data)) for n, kind, shape, data in padded)
    head += b"".join(name.encode() + b"\0" for name, _, _, _ in padded)
    head += b"".join(struct.pack(f"<{len(shape)}i", *shape) for _, _, shape, _ in padded)
    gap = -(len(head) + 8) % 256
    path.write_bytes(head + struct.pack("<Q", gap) + bytes(gap) + b"".join(data for _, _, _, data in padded))


def rounded(weights: Mapping[str, Array]) -> dict[str, Array]:
    """Return the matrices as int8 with the factor 64, as `write_bin` stores it."""
    is_matrix = {name: array.ndim == 2 and len(array) > 1 for name, array in weights.items()}
    return {n: np.rint(np.clip(a * 64, -127, 127)).astype(np.int8) if is_matrix[n] else a for n, a in weights.items()}


def write_shortlist(path: Path, lists: list[list[int]], *, first: int) -> None:
    offsets = np.cumsum([0, *map(len, lists)]).astype("<u8")
    ids = np.array([token for own in lists for token in own], "<u4")
    head = struct.pack("<6Q", 0xF11A48D5013417F5, 0, first, 9, len(offsets), len(ids))
    path.write_bytes(head + offsets.tobytes() + ids.tobytes())


def write_student(folder: Path) -> tuple[dict[str, Array], bytes]:
    """Write Firefox's files: an int8 student, its vocabulary and a shortlist; return its rounded weights."""
    folder.mkdir()
    content = trained_pieces(LINES, size=90)
    (folder / "vocab.ende.spm").write_bytes(content)
    size = len(read_piece_file(content, name="x").names)
    weights = rounded(random_weights(size))
    weights["decoder_ff_logit_out_b"][0, :3] += (-4.0, -4.0, 1.5)  # <unk>, <s>, </s>: outputs have letters and an end
    write_bin(folder / "model.ende.intgemm.alphas.bin", weights)
    write_shortlist(folder / "lex.50.50.ende.s2t.bin", [[n, (n + 7) % size] for n in range(size)], first=20)
    return weights, content


def _options(options: Mapping[str, str]) -> Array:
    text = "".join(f"{key}: {value}\n" for key, value in options.items())
    return np.frombuffer(text.encode() + b"\0", np.int8)
