"""Folders for Firefox and Marian: our importer reads back what was written, and pymarian computes the same from it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.importing import marian_native
from tests.importing.marian_folder import LINES
from tests.importing.test_marian import Student, imported, log_probabilities
from tests.text.foreign_pieces import trained_pieces
from torch import Tensor

from transduce.errors import ModelError
from transduce.export.firefox import export_firefox
from transduce.importing.marian_file import read_marian_file
from transduce.model import ModelConfig, Transformer
from transduce.model_directory import Description, Languages, ModelDirectory, load_model, save_model
from transduce.tensor_file import Array
from transduce.text.bpe_tokenizer import BpeTokenizer
from transduce.text.piece_file import read_piece_file
from transduce.text.tokenizer_pair import TokenizerPair

WORDS = ("dog", "cat", "bird", "tree", "red", "blue", "small", "house")
MORE = [*LINES, *(f"{a} {b}" for a in WORDS for b in WORDS)]
SIZES = {"d_model": 64, "d_ff": 128, "heads": 4, "layers": 2, "decoder_layers": 1}
FITTING: dict[str, Any] = {
    **SIZES, "positions": "concatenated", "start_from_zeros": True, "attention_bias": True, "output_bias": True,
    "decoder_mixer": "ssru", "activation": "relu",
}  # fmt: skip


def own_model(folder: Path, **options: Any) -> ModelDirectory:  # noqa: ANN401
    """Return a model of our own with random weights and biases that fits Firefox, but for `options`."""
    target = BpeTokenizer.learn(MORE, vocabulary_size=320)
    source = BpeTokenizer.learn(MORE[::2], vocabulary_size=304) if options.get("tied") == "decoder" else target
    sizes = {"vocabulary_size": target.vocabulary_size}
    if source is not target:
        sizes["source_vocabulary_size"] = source.vocabulary_size
    torch.manual_seed(5)
    network = Transformer(ModelConfig(**sizes, **{**FITTING, **options}))
    weights = {name: torch.randn_like(array) / 4 + (array.mean() > 0.9) for name, array in network.named_parameters()}
    description = Description(architecture=network.config, languages=Languages(source="en", target="de"))
    save_model(folder, description, weights, tokenizers=TokenizerPair(source, target), card="")
    return load_model(folder)


def without_forbidden(model: ModelDirectory, log_probabilities_TV: Tensor) -> Tensor:
    special = model.tokenizers.special
    kept_TV = log_probabilities_TV.clone()
    kept_TV[:, [special.padding, special.start]] = -torch.inf
    return kept_TV.log_softmax(-1)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"decoder_mixer": "attention", "activation": "silu", "final_norm": True},
        {"tied": "decoder", "activation": "gelu_sigmoid", "attention_bias": False, "output_bias": False},
    ],
    ids=["ssru", "attention", "two vocabularies"],
)
def test_a_model_comes_back_as_it_was(tmp_path: Path, options: dict[str, Any]) -> None:
    model = own_model(tmp_path / "model", **options)
    export_firefox(model, tmp_path / "marian", weights="float32")
    again = imported(tmp_path / "marian", tmp_path / "again")
    assert again.description.languages == Languages(source="en", target="de")
    for text, other in zip(MORE[::9], MORE[::-9], strict=True):
        source_S, target_T = model.tokenizers.encode_source(text), model.tokenizers.encode_targets([other])[0]
        assert again.tokenizers.encode_source(text) == source_S
        ours = without_forbidden(model, log_probabilities(model, source_S, target_T))
        size = ours.size(1)
        found = without_forbidden(model, log_probabilities(again, source_S, target_T)[:, :size])
        torch.testing.assert_close(found, ours, atol=1e-5, rtol=1e-5)


def firefox_folder(folder: Path) -> tuple[dict[str, Array], Path]:
    """Write Firefox's files of a student whose matrices use all of int8; return its weights and the file."""
    folder.mkdir()
    content = trained_pieces(MORE, size=48)
    size = len(read_piece_file(content, name="x").names)
    assert size == 48
    weights = marian_native.rounded(marian_native.random_weights(size, d=64, f=128))
    for array in weights.values():
        if array.dtype == np.int8:
            array[0, 0] = 127
    (folder / "vocab.ende.spm").write_bytes(content)
    path = folder / "model.ende.intgemm.alphas.bin"
    options = {**marian_native.OPTIONS, "dim-emb": "64", "transformer-dim-ffn": "128"}
    marian_native.write_bin(path, weights, options)
    marian_native.write_shortlist(
        folder / "lex.50.50.ende.s2t.bin", [[n, (n + 7) % size] for n in range(size)], first=20
    )
    return weights, path


def test_a_model_of_firefox_goes_back_bit_for_bit(tmp_path: Path) -> None:
    _, path = firefox_folder(tmp_path / "firefox")
    model = imported(tmp_path / "firefox", tmp_path / "model")
    export_firefox(model, tmp_path / "back", samples=LINES[:3])
    back = read_marian_file(tmp_path / "back" / path.name)
    before = read_marian_file(path)
    assert back.weights.keys() == before.weights.keys()
    for name, array in before.weights.items():
        np.testing.assert_array_equal(back.weights[name], array, err_msg=name)
    assert (tmp_path / "back/vocab.ende.spm").read_bytes() == (tmp_path / "firefox/vocab.ende.spm").read_bytes()
    again = imported(tmp_path / "back", tmp_path / "again")
    assert again.description.decoding == model.description.decoding
    first, second = model.shortlist(), again.shortlist()
    assert first is not None
    assert second is not None
    for text in MORE:
        source = model.tokenizers.encode_source(text)
        assert second.tokens(source) == first.tokens(source)


def test_alphas_are_127_over_the_largest_number_that_a_matrix_multiplies(tmp_path: Path) -> None:
    """The vectors are computed by the network that the tests write out."""
    weights, path = firefox_folder(tmp_path / "firefox")
    model = imported(tmp_path / "firefox", tmp_path / "model")
    export_firefox(model, tmp_path / "back", samples=["the dog", "a cat", ""])
    content = (tmp_path / "back" / path.name).read_bytes()
    student = Student({n: a.astype("<f4") / 64 if a.dtype == np.int8 else a for n, a in weights.items()})
    largest = 0.0
    for text in ("the dog", "a cat"):
        ids = torch.tensor(model.tokenizers.encode_source(text))
        rates = student.positions(len(ids), 64)
        largest = max(largest, float((student.w["Wemb"][ids] * 8 + rates).abs().max()))
    numbers = alphas(content)
    for kind in "qkv":
        assert numbers[f"encoder_l1_self_W{kind}_QuantMultA"] == pytest.approx(127 / largest, rel=1e-5)
    matrices = {name for name, array in weights.items() if array.dtype == np.int8}
    assert {name.removesuffix("_QuantMultA") for name in numbers} == {*matrices, "none"}
    assert numbers["decoder_l1_rnn_W_QuantMultA"] == numbers["decoder_l1_rnn_Wf_QuantMultA"]
    assert numbers["decoder_l1_context_Wk_QuantMultA"] == numbers["decoder_l2_context_Wv_QuantMultA"], "the memory"
    assert numbers["decoder_l1_context_Wq_QuantMultA"] != numbers["decoder_l1_context_Wk_QuantMultA"]
    assert numbers["none_QuantMultA"] == numbers["Wemb_QuantMultA"]


def alphas(content: bytes) -> dict[str, float]:
    """Return the alphas of a file, whose reader leaves them out: the shapes and data lie as the names do."""
    count = int.from_bytes(content[8:16], "little")
    heads = np.frombuffer(content, "<u8", count * 4, 16).reshape(count, 4)
    place, names = 16 + count * 32, []
    for length, *_ in heads.tolist():
        names.append(content[place : place + length - 1].decode())
        place += length
    place += 4 * int(heads[:, 2].sum())
    place += 8 + int.from_bytes(content[place : place + 8], "little")
    assert place % 256 == 0, "data begin at a multiple of 256"
    found = {}
    for name, (_, _, _, size) in zip(names, heads.tolist(), strict=True):
        assert size % 256 == 0
        if name.endswith("_QuantMultA"):
            found[name] = float(np.frombuffer(content, "<f4", 1, place)[0])
        place += size
    assert place == len(content)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"decoder_mixer": "attention", "final_norm": True}, {"tied": "decoder"}])
def test_marian_computes_the_same_from_it(tmp_path: Path, options: dict[str, Any]) -> None:
    pymarian = pytest.importorskip("pymarian", reason="pymarian is not installed; it is no dependency")
    model = own_model(tmp_path / "model", **options)
    export_firefox(model, tmp_path / "marian", weights="float32")
    vocabularies = sorted((tmp_path / "marian").glob("*.spm"))
    named = f"{vocabularies[0]} {vocabularies[-1]}"
    translator = pymarian.Translator(
        f"--models {tmp_path}/marian/model.ende.bin --vocabs {named} --cpu-threads 1 --workspace 64 --quiet "
        "--n-best --word-scores --beam-size 2 --max-length 30 --max-length-crop --no-spm-decode"
    )
    names = read_piece_file(vocabularies[-1].read_bytes(), name="x").names  # ours have these numbers, too
    pieces = {piece: token for token, piece in enumerate(names)}
    compared = 0
    for line in translator.translate("\n".join(LINES[:3])).splitlines():
        number, output, scores, *_ = line.split(" ||| ")
        target_T = [*(pieces[piece] for piece in output.split()), model.tokenizers.special.end]
        expected = torch.tensor([float(each) for each in scores.split()[1:]])
        source_S = model.tokenizers.encode_source(LINES[int(number)])
        ours = without_forbidden(model, log_probabilities(model, source_S, target_T))
        found = ours[torch.arange(len(target_T)), torch.tensor(target_T)][: len(expected)]
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)
        compared += len(expected)
    assert compared > 30


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"positions": "sinusoidal"}, 'positions = "sinusoidal"'),
        ({"start_from_zeros": False}, "start_from_zeros = false"),
        ({"norm": "pre"}, 'norm = "pre"'),
        ({"tied": "none"}, 'tied = "none"'),
        ({"d_k": 5, "d_v": 5}, "d_k = 5 and d_v = 5"),
        ({"d_ff": 100}, "d_ff = 100"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, options: dict[str, Any], words: str) -> None:
    model = own_model(tmp_path / "model", **options)
    with pytest.raises(ModelError, match=words):
        export_firefox(model, tmp_path / "marian")
    assert not (tmp_path / "marian").exists()


def test_vocabularies_that_do_not_fit_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "marian"
    folder.mkdir()
    content = trained_pieces(LINES, size=90)
    size = len(read_piece_file(content, name="x").names)
    (folder / "vocab.spm").write_bytes(content)
    options = {**marian_native.OPTIONS, "dim-emb": "64", "transformer-dim-ffn": "64"}
    marian_native.write_npz(folder / "model.npz", marian_native.random_weights(size, d=64, f=64), options)
    model = imported(folder, tmp_path / "model")
    with pytest.raises(ModelError, match=f"vocabulary of {size} pieces is no multiple of 8"):
        export_firefox(model, tmp_path / "there")
    export_firefox(model, tmp_path / "there", weights="float32")
