"""Directories of CTranslate2: CTranslate2 itself computes the same log-probabilities, for every kind of weights."""

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.export.test_ctranslate2 import make, pairs_of

from transduce.errors import ModelError
from transduce.export.ctranslate2 import ctranslate2_log_probabilities, export_ctranslate2
from transduce.importing.ctranslate2_file import read_model_bin
from transduce.importing.formats import import_model
from transduce.model_directory import Languages, ModelDirectory, load_model
from transduce.networks.log_probabilities import token_log_probabilities
from transduce.tensor_file import Array

ctranslate2 = pytest.importorskip("ctranslate2")
OPTIONS: dict[str, dict[str, object]] = {
    "post-norm": {"attention_bias": True, "output_bias": True, "activation": "silu", "positions": "sinusoidal_halves"},
    "pre-norm": {"norm": "pre", "positions": "concatenated", "first_position": 2, "start_from_zeros": True},
    "three matrices": {"tied": "none", "final_norm": True, "embedding_norm": True, "norm_epsilon": 1e-5},
    "learned": {"positions": "learned", "learned_positions": 64, "embedding_scale": 1.0, "activation": "gelu"},
    "unscaled": {"scores": "unscaled", "positions": "none", "tied": "decoder", "activation": "gelu_sigmoid"},
    "wide heads": {"d_k": 5, "d_v": 5, "activation": "gelu_tanh", "tied": "inputs"},
}


def imported(folder: Path, destination: Path) -> ModelDirectory:
    import_model(folder, destination, Languages(source="en", target="de"))
    return load_model(destination)


def largest_difference(model: ModelDirectory, folder: Path, original: ModelDirectory) -> float:
    """Return the largest difference between CTranslate2's and the imported model's log p of a token."""
    pieces = [original.tokenizers.target.piece(n) for n in range(original.tokenizers.vocabulary_size)]
    pairs = pairs_of(original.tokenizers.target)
    symbols = [*model.tokenizers.target.vocabulary.pieces]  # type: ignore[attr-defined]
    theirs = ctranslate2_log_probabilities(ctranslate2.Translator(str(folder), compute_type="float32"), pairs, symbols)
    assert len(symbols) == len(pieces)
    network, largest = model.network(), 0.0
    for (source, target), found in zip(pairs, theirs, strict=True):
        target_BT = torch.tensor([target])
        with torch.no_grad():
            hidden_BTD = network(torch.tensor([source]), target_BT)
            ours = token_log_probabilities(hidden_BTD, network.output, target_BT)[0]
        largest = max(largest, float((ours - torch.tensor(found)).abs().max()))
    return largest


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_every_option_comes_back(tmp_path: Path, options: dict[str, Any]) -> None:
    original = make(tmp_path / "original", **options)
    export_ctranslate2(original, tmp_path / "theirs")
    model = imported(tmp_path / "theirs", tmp_path / "model")
    assert largest_difference(model, tmp_path / "theirs", original) < 1e-4
    text = "the dog runs."
    assert model.tokenizers.encode_source(text) == original.tokenizers.encode_source(text)
    before, after = original.description.architecture.model_dump(), model.description.architecture.model_dump()
    same = {"positions", "first_position", "scores", "tied", "norm", "activation", "start_from_zeros", "d_ff", "heads"}
    assert {key: after[key] for key in same} == {key: before[key] for key in same}


@pytest.mark.parametrize(("from_zeros", "said"), [(True, False), (True, True), (False, False), (False, True)])
def test_a_source_of_marian_ends_in_its_end_token_whatever_the_converter_says(
    tmp_path: Path, from_zeros: bool, said: bool
) -> None:
    """CTranslate2's converter of transformers' MarianMT leaves the </s> to the tokenizer of transformers."""
    export_ctranslate2(make(tmp_path / "original", start_from_zeros=from_zeros), tmp_path / "theirs")
    path = tmp_path / "theirs/config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "add_source_eos": said}))
    pair = imported(tmp_path / "theirs", tmp_path / "model").tokenizers
    assert (pair.encode_source("the dog")[-1] == pair.special.end) == (from_zeros or said)


def quantized(folder: Path, kind: str) -> None:
    """Write the variables again in fewer bits, as CTranslate2's own converter does."""
    change_variables(folder, lambda name, array: _converted(name, array, kind))


def _converted(name: str, array: Array, kind: str) -> dict[str, Array]:
    is_matrix = array.ndim == 2 and not name.endswith("encodings")
    if array.dtype != np.float32 or not array.ndim:
        return {name: array}
    if kind == "float16":
        return {name: array.astype(np.float16)}
    if not is_matrix:
        return {name: array.astype(np.float16) if kind == "int8_float16" else array}
    if kind == "int16":
        scale = np.float32(2**10 / np.abs(array).max())
        return {name: np.rint(array * scale).astype(np.int16), f"{name}_scale": np.asarray(scale)}
    scale_V = (127 / np.abs(array).max(axis=1)).astype(np.float32)
    return {name: np.rint(array * scale_V[:, None]).astype(np.int8), f"{name}_scale": scale_V}


def read_variables(content: bytes) -> tuple[bytes, dict[str, tuple[int, Array]], bytes]:
    """Return the head, the variables with their types, and the aliases of a `model.bin` of version 6."""
    place = 4
    place += 2 + struct.unpack_from("<H", content, place)[0] + 4
    head, (count,) = content[:place], struct.unpack_from("<I", content, place)
    place += 4
    kinds, found = {0: "<f4", 1: "|i1", 2: "<i2", 3: "<i4", 4: "<f2", 5: "<u2"}, {}
    for _ in range(count):
        (length,) = struct.unpack_from("<H", content, place)
        name = content[place + 2 : place + 1 + length].decode()
        place += 2 + length
        axes = content[place]
        shape = struct.unpack_from(f"<{axes}I", content, place + 1)
        place += 1 + 4 * axes
        kind, size = struct.unpack_from("<BI", content, place)
        found[name] = (kind, np.frombuffer(content[place + 5 : place + 5 + size], kinds[kind]).reshape(shape))
        place += 5 + size
    return head, found, content[place:]


def change_variables(folder: Path, change: Callable[[str, Array], dict[str, Array]]) -> None:
    head, variables, aliases = read_variables((folder / "model.bin").read_bytes())
    new = {key: value for name, (_, array) in variables.items() for key, value in change(name, array).items()}
    (folder / "model.bin").write_bytes(head + _written(new) + aliases)


def _written(variables: dict[str, Array], *, is_old: bool = False) -> bytes:
    kinds = {np.dtype("<f4"): 0, np.dtype("|i1"): 1, np.dtype("<i2"): 2, np.dtype("<i4"): 3, np.dtype("<f2"): 4}
    parts = [struct.pack("<I", len(variables))]
    for name, array in sorted(variables.items()):
        parts.append(struct.pack("<H", len(name) + 1) + name.encode() + b"\0")
        parts.append(struct.pack(f"<B{array.ndim}I", array.ndim, *array.shape))
        size = (array.dtype.itemsize, array.size) if is_old else (kinds[array.dtype], array.nbytes)
        parts.append(struct.pack("<BI", *size) + array.tobytes())
    return b"".join(parts)


@pytest.mark.parametrize("kind", ["float16", "int16", "int8", "int8_float16"])
def test_fewer_bits_are_widened(tmp_path: Path, kind: str) -> None:
    """The judge of the arithmetic is CTranslate2, which widens the same file to float32."""
    original = make(tmp_path / "original", attention_bias=True, output_bias=True)
    export_ctranslate2(original, tmp_path / "theirs")
    quantized(tmp_path / "theirs", kind)
    model = imported(tmp_path / "theirs", tmp_path / "model")
    assert largest_difference(model, tmp_path / "theirs", original) < 1e-4


def test_the_exporters_own_int8_is_read(tmp_path: Path) -> None:
    original = make(tmp_path / "original")
    export_ctranslate2(original, tmp_path / "theirs", weights="int8")
    model = imported(tmp_path / "theirs", tmp_path / "model")
    assert largest_difference(model, tmp_path / "theirs", original) < 1e-4


def old_version(folder: Path, version: int) -> None:
    """Write the files as an earlier CTranslate2 did: options without stacks, no config.json, text vocabularies."""
    _, variables, _ = read_variables((folder / "model.bin").read_bytes())
    read = read_model_bin(folder / "model.bin").variables
    renames = {"encoder/embeddings_0/weight": "encoder/embeddings/weight"} if version < 5 else {}
    new = {renames.get(name, name): array for name, array in read.items()}
    for option in ("num_heads", "pre_norm", "activation", "scale_embeddings"):
        new[option] = variables[f"encoder/{option}"][1]
        new = {name: array for name, array in new.items() if name not in (f"encoder/{option}", f"decoder/{option}")}
    new = {name: array for name, array in new.items() if "alibi" not in name and "multi_query" not in name}
    new |= {"with_source_eos": np.int8(1), "with_source_bos": np.int8(0), "with_target_bos": np.int8(1)}  # type: ignore[dict-item]
    arrays = {name: np.asarray(array) for name, array in new.items()}
    spec = b"TransformerSpec"
    head = struct.pack("<IH", version, len(spec) + 1) + spec + b"\0" + struct.pack("<I", 4)
    tail = struct.pack("<I", 0) if version >= 3 else b""
    (folder / "model.bin").write_bytes(head + _written(arrays, is_old=version < 4) + tail)
    pieces = json.loads((folder / "shared_vocabulary.json").read_text(encoding="utf-8"))
    (folder / "shared_vocabulary.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    for name in ("config.json", "shared_vocabulary.json"):
        (folder / name).unlink()


@pytest.mark.parametrize("version", [2, 3, 4, 5])
def test_files_of_earlier_versions_are_read(tmp_path: Path, version: int) -> None:
    original = make(tmp_path / "original", norm_epsilon=1e-5, attention_bias=True)
    export_ctranslate2(original, tmp_path / "theirs")
    old_version(tmp_path / "theirs", version)
    model = imported(tmp_path / "theirs", tmp_path / "model")
    assert largest_difference(model, tmp_path / "theirs", original) < 1e-4


def test_without_a_table_positions_begin_at_1(tmp_path: Path) -> None:
    original = make(tmp_path / "original", positions="concatenated", first_position=1)
    export_ctranslate2(original, tmp_path / "theirs")
    head, variables, _ = read_variables((tmp_path / "theirs/model.bin").read_bytes())
    read = read_model_bin(tmp_path / "theirs/model.bin").variables
    rest = {name: array for name, array in read.items() if not name.endswith("encodings")}
    assert set(rest) < set(variables) | set(read)
    (tmp_path / "theirs/model.bin").write_bytes(head + _written(rest) + struct.pack("<I", 0))
    model = imported(tmp_path / "theirs", tmp_path / "model")
    assert largest_difference(model, tmp_path / "theirs", original) < 1e-4


def test_a_vocabulary_without_padding_gets_a_piece_that_is_never_made(tmp_path: Path) -> None:
    original = make(tmp_path / "original")
    export_ctranslate2(original, tmp_path / "theirs")
    path = tmp_path / "theirs/shared_vocabulary.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"<pad>"', '"PAD"'), encoding="utf-8")
    model = imported(tmp_path / "theirs", tmp_path / "model")
    assert (
        model.tokenizers.special.padding == model.tokenizers.vocabulary_size - 1 == original.tokenizers.vocabulary_size
    )
    network, before = model.network(), original.network()
    source_BS, target_BT = torch.tensor([[276, 280, 3]]), torch.tensor([[277, 3]])
    with torch.no_grad():
        ours = network.output.logits(network(source_BS, target_BT)).log_softmax(-1)
        theirs = before.output.logits(before(source_BS, target_BT)).log_softmax(-1)
    torch.testing.assert_close(ours[..., :-1], theirs, atol=1e-5, rtol=0)
    assert float(ours[..., -1].exp().max()) == 0.0


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("decoder/alibi", 1, "decoder/alibi = 1"),
        ("encoder/multi_query_attention", 1, "multi_query_attention = 1"),
        ("decoder/layer_0/ffn/linear_0_noact/weight", None, "linear_0_noact/weight"),
        ("encoder/activation", 2, "encoder/activation = 2 but decoder/activation = 0"),
        ("decoder/new_option", 1, "new_option = 1"),
    ],
)
def test_an_option_that_cannot_be_expressed_is_refused_by_name(
    tmp_path: Path, name: str, value: int | None, words: str
) -> None:
    export_ctranslate2(make(tmp_path / "original"), tmp_path / "theirs")
    head, variables, aliases = read_variables((tmp_path / "theirs/model.bin").read_bytes())
    arrays = {key: array for key, (_, array) in variables.items()}
    arrays[name] = np.ones((3, 3), np.float32) if value is None else np.array(value, np.int8)
    (tmp_path / "theirs/model.bin").write_bytes(head + _written(arrays) + aliases)
    with pytest.raises(ModelError, match=words):
        imported(tmp_path / "theirs", tmp_path / "model")


@pytest.mark.parametrize(
    ("key", "value"), [("add_source_bos", True), ("decoder_start_token", None), ("layer_norm_epsilon", "x")]
)
def test_a_setting_that_cannot_be_expressed_is_refused_by_name(tmp_path: Path, key: str, value: object) -> None:
    export_ctranslate2(make(tmp_path / "original"), tmp_path / "theirs")
    path = tmp_path / "theirs/config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    with pytest.raises(ModelError, match=f"{key} = "):
        imported(tmp_path / "theirs", tmp_path / "model")


def test_a_missing_tokenizer_is_named(tmp_path: Path) -> None:
    export_ctranslate2(make(tmp_path / "original"), tmp_path / "theirs")
    (tmp_path / "theirs/sentencepiece.model").unlink()
    with pytest.raises(ModelError, match=r"Copy sentencepiece\.model, or source\.spm"):
        imported(tmp_path / "theirs", tmp_path / "model")
