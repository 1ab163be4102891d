"""A small BERT folder with random weights, as older and newer models have them, written without transformers."""

import json
from pathlib import Path

import numpy as np

from transduce.importing.formats import import_model
from transduce.model_directory import Languages
from transduce.tensor_file import write_tensors

LETTERS = [chr(n) for n in range(ord("a"), ord("z") + 1)]
WORDS = ["the", "cat", "sat", "on", "mat", "play", "a", *LETTERS[1:], "##ing", *(f"##{n}" for n in LETTERS)]
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS[:7], ".", ",", "中", *WORDS[7:]]
SIZES = {
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "max_position_embeddings": 40,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-3,
}


def random_weights(*, head: bool = True, gain: str = "weight", bias: str = "bias") -> dict[str, np.ndarray]:
    d, f, rows = 12, 20, len(PIECES)
    shapes: dict[str, tuple[int, ...]] = {
        "bert.embeddings.word_embeddings.weight": (rows, d),
        "bert.embeddings.position_embeddings.weight": (40, d),
        "bert.embeddings.token_type_embeddings.weight": (2, d),
        "bert.pooler.dense.weight": (d, d),
        "bert.pooler.dense.bias": (d,),
        "cls.seq_relationship.weight": (2, d),
    }
    norms = ["bert.embeddings.LayerNorm"]
    linears: dict[str, tuple[int, int]] = {}
    for layer in (f"bert.encoder.layer.{n}" for n in range(2)):
        linears |= {f"{layer}.attention.self.{one}": (d, d) for one in ("query", "key", "value")}
        linears |= {f"{layer}.attention.output.dense": (d, d), f"{layer}.intermediate.dense": (f, d)}
        linears |= {f"{layer}.output.dense": (d, f)}
        norms += [f"{layer}.attention.output.LayerNorm", f"{layer}.output.LayerNorm"]
    if head:
        linears["cls.predictions.transform.dense"] = (d, d)
        norms.append("cls.predictions.transform.LayerNorm")
        shapes |= {"cls.predictions.bias": (rows,), "cls.predictions.decoder.bias": (rows,)}
    shapes |= {f"{name}.weight": shape for name, shape in linears.items()}
    shapes |= {f"{name}.bias": shape[:1] for name, shape in linears.items()}
    shapes |= {f"{name}.{kind}": (d,) for name in norms for kind in (gain, bias)}
    random = np.random.default_rng(3)
    weights = {name: random.normal(0, 0.5, shape).astype(np.float32) for name, shape in shapes.items()}
    return weights | ({"cls.predictions.decoder.bias": weights["cls.predictions.bias"]} if head else {})


def write_folder(folder: Path, weights: dict[str, np.ndarray], **options: object) -> None:
    folder.mkdir()
    write_tensors(folder / "model.safetensors", weights)
    (folder / "config.json").write_text(json.dumps({"model_type": "bert", **SIZES, **options}), encoding="utf-8")
    (folder / "vocab.txt").write_text("\n".join(PIECES) + "\n", encoding="utf-8")


def write_model(folder: Path) -> Path:
    """Write a BERT folder and its import; return the latter."""
    write_folder(folder / "bert", random_weights())
    import_model(folder / "bert", folder / "model", Languages())
    return folder / "model"
