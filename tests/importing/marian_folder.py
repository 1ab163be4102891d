"""A small MarianMT folder with random weights, as OPUS-MT has them, written without transformers."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from tests.text.foreign_pieces import trained_pieces

from transduce.tensor_file import Array, write_tensors

LINES = ["the dog runs.", "a cat sleeps here", "der Hund läuft.", "eine Katze schläft hier", "zwei große Bären"] * 20
CONFIG = {
    "model_type": "marian", "d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "activation_function": "swish",
    "scale_embedding": True, "static_position_embeddings": True, "num_beams": 3, "max_position_embeddings": 64,
    "share_encoder_decoder_embeddings": True, "tie_word_embeddings": True,
}  # fmt: skip


def write_folder(folder: Path, *, tags: tuple[str, ...] = (), dtype: str = "<f4", **options: Any) -> dict[str, Array]:  # noqa: ANN401
    """Write the folder but for `pytorch_model.bin`; return its weights."""
    folder.mkdir()
    contents = [trained_pieces(lines, size=90) for lines in (LINES[::2], LINES[1::2])]
    for name, content in zip(("source.spm", "target.spm"), contents, strict=True):
        (folder / name).write_bytes(content)
    from transduce.text.piece_file import read_piece_file

    names = [read_piece_file(content, name="x").names for content in contents]
    merged = [piece for piece in dict.fromkeys([*names[0], *names[1]]) if piece not in ("<unk>", "<s>", "</s>")]
    pieces = [*merged[:7], "</s>", *merged[7:30], "<unk>", *merged[32:], *tags, "<pad>"]  # two pieces are in no row
    last = len(pieces) - 1
    ids = {"pad_token_id": last, "eos_token_id": 7, "decoder_start_token_id": last, "bos_token_id": 0}
    config: dict[str, Any] = {**CONFIG, "vocab_size": last + 1, "decoder_vocab_size": last + 1, **ids, **options}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "vocab.json").write_text(json.dumps({piece: n for n, piece in enumerate(pieces)}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"source_lang": "en", "target_lang": "de"}))
    (folder / "README.md").write_text("---\nlicense: cc-by-4.0\n---\n")
    weights = {name: array.astype(dtype) for name, array in random_weights(config).items()}
    write_tensors(folder / "model.safetensors", weights)
    return weights


def random_weights(config: Mapping[str, Any]) -> dict[str, Array]:
    random, d, f = np.random.default_rng(3), config["d_model"], config["encoder_ffn_dim"]
    shapes: dict[str, tuple[int, ...]] = {}
    for stack, attentions in (("encoder", ("self_attn",)), ("decoder", ("self_attn", "encoder_attn"))):
        for n in range(config[f"{stack}_layers"]):
            layer = f"model.{stack}.layers.{n}"
            for attention in attentions:
                for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    shapes |= {f"{layer}.{attention}.{part}.weight": (d, d), f"{layer}.{attention}.{part}.bias": (d,)}
            for norm in (*(f"{attention}_layer_norm" for attention in attentions), "final_layer_norm"):
                shapes |= {f"{layer}.{norm}.weight": (d,), f"{layer}.{norm}.bias": (d,)}
            shapes |= {f"{layer}.fc1.weight": (f, d), f"{layer}.fc1.bias": (f,)}
            shapes |= {f"{layer}.fc2.weight": (d, f), f"{layer}.fc2.bias": (d,)}
    size = config["vocab_size"]
    weights = {name: random.normal(size=shape) / np.sqrt(shape[-1]) for name, shape in shapes.items()}
    weights |= {name: 1 + array for name, array in weights.items() if name.endswith("layer_norm.weight")}
    shared_VD = random.normal(size=(size, d)) / np.sqrt(d)
    shared_VD[-1] = 0.0
    return {**weights, "model.shared.weight": shared_VD, "final_logits_bias": random.normal(size=(1, size))}
