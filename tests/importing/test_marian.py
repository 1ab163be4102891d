"""Folders of Marian. pymarian trains and scores models; the network of a student is also written out here."""

import math
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.importing.marian_folder import LINES
from tests.importing.marian_native import (
    OPTIONS,
    random_weights,
    rounded,
    write_bin,
    write_npz,
    write_shortlist,
    write_student,
)
from tests.text.foreign_pieces import trained_pieces
from torch import Tensor
from torch.nn import functional

from transduce.errors import ModelError
from transduce.importing.byte_reader import array_of
from transduce.importing.formats import import_model
from transduce.importing.marian_text import options_of, pieces_to_ids
from transduce.model_directory import Languages, ModelDirectory, load_model
from transduce.text.piece_file import read_piece_file
from transduce.translator import Translator


def imported(folder: Path, destination: Path) -> ModelDirectory:
    import_model(folder, destination, Languages())
    return load_model(destination)


def log_probabilities(model: ModelDirectory, source_S: list[int], target_T: list[int]) -> Tensor:
    network = model.network()
    with torch.no_grad():
        hidden = network(torch.tensor([source_S]), torch.tensor([target_T]))
        return network.output.logits(hidden)[0].log_softmax(-1)


class Student:
    """Marian's small network, from its description in docs/imports.md: post-norm, SSRU, weights (in, out)."""

    def __init__(self, weights: dict[str, Any]) -> None:
        self.w = {name: torch.tensor(np.asarray(array, np.float32)) for name, array in weights.items()}

    def log_probabilities(self, source_S: list[int], target_T: list[int]) -> Tensor:
        x_SD = self.embed(source_S)
        for n in (1, 2):
            x_SD = self.norm(f"encoder_l{n}_self_Wo", x_SD + self.attend(f"encoder_l{n}_self", x_SD, x_SD))
            x_SD = self.feed(f"encoder_l{n}", x_SD)
        y_TD = self.embed([0, *target_T[:-1]])
        y_TD[0] = self.positions(1, 16)[0]  # a vector of zeros and the first position
        for n in (1, 2):
            y_TD = self.norm(f"decoder_l{n}_rnn_ffn", y_TD + self.recur(f"decoder_l{n}_rnn", y_TD))
            y_TD = self.norm(f"decoder_l{n}_context_Wo", y_TD + self.attend(f"decoder_l{n}_context", y_TD, x_SD))
            y_TD = self.feed(f"decoder_l{n}", y_TD)
        return (y_TD @ self.w["Wemb"].T + self.w["decoder_ff_logit_out_b"][0]).log_softmax(-1)

    def embed(self, tokens: list[int]) -> Tensor:
        return self.w["Wemb"][torch.tensor(tokens)] * 4.0 + self.positions(len(tokens), 16)

    def positions(self, length: int, d: int) -> Tensor:
        rates = torch.exp(torch.arange(d // 2) * (-math.log(10000) / (d // 2 - 1)))
        angles = torch.arange(length)[:, None] * rates
        return torch.cat([angles.sin(), angles.cos()], dim=-1)

    def recur(self, name: str, h_TD: Tensor) -> Tensor:
        gate_TD = (h_TD @ self.w[f"{name}_Wf"] + self.w[f"{name}_bf"][0]).sigmoid()
        new_TD, state_D, states = h_TD @ self.w[f"{name}_W"], torch.zeros(h_TD.size(1)), []
        for gate_D, new_D in zip(gate_TD, new_TD, strict=True):
            state_D = gate_D * state_D + (1 - gate_D) * new_D
            states.append(state_D)
        return torch.stack(states).relu()

    def attend(self, name: str, query_TD: Tensor, memory_SD: Tensor) -> Tensor:
        q: Tensor
        k: Tensor
        v: Tensor
        q, k, v = (
            (x @ self.w[f"{name}_W{kind}"] + self.w[f"{name}_b{kind}"][0]).unflatten(-1, (4, 4)).transpose(0, 1)
            for kind, x in (("q", query_TD), ("k", memory_SD), ("v", memory_SD))
        )
        mixed_TD = ((q @ k.mT / 2.0).softmax(-1) @ v).transpose(0, 1).flatten(1)
        mixed_TD = mixed_TD @ self.w[f"{name}_Wo"]
        return mixed_TD + self.w[f"{name}_bo"][0]

    def feed(self, layer: str, x_TD: Tensor) -> Tensor:
        inner_TF = (x_TD @ self.w[f"{layer}_ffn_W1"] + self.w[f"{layer}_ffn_b1"][0]).relu()
        added_TD = x_TD + inner_TF @ self.w[f"{layer}_ffn_W2"] + self.w[f"{layer}_ffn_b2"][0]
        return self.norm(f"{layer}_ffn_ffn", added_TD)

    def norm(self, name: str, x_TD: Tensor) -> Tensor:
        scale_D, bias_D = self.w[f"{name}_ln_scale"][0], self.w[f"{name}_ln_bias"][0]
        return functional.layer_norm(x_TD, (x_TD.size(1),), scale_D, bias_D, 1e-6)


@pytest.mark.parametrize("kind", ["npz", "bin", "int8"])
def test_a_student_computes_what_is_written_out(tmp_path: Path, kind: str) -> None:
    weights, _ = write_student(tmp_path / "marian")
    widened = {n: a.astype("<f4") / 64 if a.dtype == np.int8 else a for n, a in weights.items()}
    if kind != "int8":
        (tmp_path / "marian/model.ende.intgemm.alphas.bin").unlink()
        (write_npz if kind == "npz" else write_bin)(tmp_path / f"marian/model.ende.{kind}", widened)
    model, student = imported(tmp_path / "marian", tmp_path / "model"), Student(widened)
    assert model.description.languages == Languages(source="en", target="de")
    for text, other in pairwise(LINES[:5]):
        source_S, target_T = model.tokenizers.encode_source(text), model.tokenizers.encode_targets([other])[0]
        theirs = student.log_probabilities(source_S, target_T)
        ours = log_probabilities(model, source_S, target_T)
        torch.testing.assert_close(ours[:, :-1], theirs, atol=1e-4, rtol=0)
        assert float(ours[:, -1].exp().max()) == 0.0  # the piece for padding, which Marian has not


@pytest.mark.parametrize("precision", ["int8", "float32"])
def test_a_student_translates_in_the_core_with_its_shortlist(tmp_path: Path, precision: str) -> None:
    write_student(tmp_path / "marian")
    model = imported(tmp_path / "marian", tmp_path / "model")
    listed = model.shortlist()
    assert listed is not None
    pair = model.tokenizers
    assert set(listed.tokens([30])) == {*range(20), 30, 37, pair.special.padding}
    translator = Translator.load(tmp_path / "model", precision=precision)  # type: ignore[arg-type]
    assert translator.is_frozen
    for text in LINES[:4]:
        found = translator.translate(text, maximum_length=10).alternatives[0].sentences[0].tokens
        assert set(found) <= set(listed.tokens(pair.encode_source(text)))


def test_the_configuration_of_a_student_names_the_model_and_plain_vocabularies(tmp_path: Path) -> None:
    """As in archives of students: two models, a configuration for one of them, and a piece on each line."""
    _, content = write_student(tmp_path / "marian")
    plain = imported(tmp_path / "marian", tmp_path / "plain")
    (tmp_path / "marian/model.npz").write_bytes(b"of the teacher")
    (tmp_path / "marian/vocab.ende.spm").unlink()
    names = read_piece_file(content, name="x").names
    for side, own in (("source", "src"), ("target", "trg")):
        (tmp_path / f"marian/{side}.spm").write_bytes(content)
        (tmp_path / f"marian/opus.{own}.vocab").write_text("\n".join(names) + "\n", encoding="utf-8")
    config = (
        "models:\n  - model.ende.intgemm.alphas.bin\nbeam-size: 1\nvocabs:\n  - opus.src.vocab\n  - opus.trg.vocab\n"
    )
    (tmp_path / "marian/config.intgemm8bitalpha.yml").write_text(config)
    (tmp_path / "marian/LICENSE").write_text("\nAttribution 4.0 International\n\n====\n")
    model = imported(tmp_path / "marian", tmp_path / "model")
    assert model.description.decoding["beam"] == 1
    assert "Attribution 4.0 International" in (tmp_path / "model/README.md").read_text(encoding="utf-8")
    assert model.tokenizers.encode_source("the dog runs.") == plain.tokenizers.encode_source("the dog runs.")
    assert all((model.parameters[name] == array).all() for name, array in plain.parameters.items())


def test_two_vocabularies_with_their_shortlist(tmp_path: Path) -> None:
    """The sources' padding gets the targets' id; the rows of the shortlist and of the embedding move with it."""
    folder = tmp_path / "marian"
    folder.mkdir()
    contents = [trained_pieces(LINES, size=90), trained_pieces(["der Hund"] * 9, size=60)]
    sizes = [len(read_piece_file(content, name="x").names) for content in contents]

    assert sizes[0] > sizes[1]
    for name, content in zip(("srcvocab.en.spm", "trgvocab.de.spm"), contents, strict=True):
        (folder / name).write_bytes(content)
    weights = random_weights(sizes[1])
    source_VD = random_weights(sizes[0])["Wemb"]
    weights |= {"decoder_Wemb": weights.pop("Wemb"), "encoder_Wemb": source_VD}
    write_npz(folder / "model.npz", weights)
    write_shortlist(folder / "lex.s2t.bin", [[n % sizes[1]] for n in range(sizes[0])], first=3)
    model = imported(folder, tmp_path / "model")
    listed, pair = model.shortlist(), model.tokenizers
    assert listed is not None
    assert pair.source.special.padding == pair.target.special.padding == sizes[1]
    names = read_piece_file(contents[0], name="x").names
    rows_VD = model.parameters["embeddings.source_VD"]
    moved = names[sizes[1]]
    for token in (*pair.encode_source(LINES[0])[:-1], pair.source.vocabulary.pieces.index(moved)):  # type: ignore[attr-defined]
        number = names.index(pair.source.piece(token))
        assert number % sizes[1] in listed.candidates_VK[token]
        np.testing.assert_array_equal(rows_VD[token], source_VD[number])


def pymarian_folder(folder: Path, **options: str) -> list[tuple[str, list[str], list[float]]]:
    """Train a few steps with pymarian; return sources, and its outputs with the score of each piece."""
    pymarian = pytest.importorskip("pymarian", reason="pymarian is not installed; it is no dependency")
    folder.mkdir()
    texts, processors = (LINES[:3], LINES[2:5]), []
    import sentencepiece

    for name, lines in zip(("source", "target"), texts, strict=True):
        content = trained_pieces(LINES, size=70)
        (folder / f"{name}.spm").write_bytes(content)
        processors.append(sentencepiece.SentencePieceProcessor(model_proto=content))
        cut = [" ".join(processors[-1].encode(line, out_type=str)) for line in lines] * 5
        (folder / f"{name}.txt").write_text("\n".join(cut) + "\n", encoding="utf-8")
    shared = f"--vocabs {folder}/opus.vocab.yml {folder}/opus.vocab.yml --cpu-threads 1 --workspace 64 --quiet"
    sizes = "--type transformer --dim-emb 16 --transformer-heads 2 --enc-depth 2 --dec-depth 2 --transformer-dim-ffn 24"
    words = " ".join(f"--{key.replace('_', '-')} {value}" for key, value in options.items())
    trained = f"--train-sets {folder}/source.txt {folder}/target.txt --after-batches 8 --mini-batch 8 --learn-rate 0.02"
    suffix = options.pop("suffix", "npz")
    words = words.replace(f"--suffix {suffix}", "")
    pymarian.Trainer(f"--model {folder}/opus.{suffix} {shared} {sizes} {words} {trained} --overwrite --seed 3").train()
    translator = pymarian.Translator(f"--models {folder}/opus.{suffix} {shared} --n-best --word-scores --beam-size 3")
    sources = [" ".join(processors[0].encode(line, out_type=str)) for line in LINES[:3]]
    found = []
    for line in translator.translate("\n".join(sources)).splitlines():
        number, output, scores, *_ = line.split(" ||| ")
        found.append((LINES[int(number)], output.split(), [float(each) for each in scores.split()[1:]]))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"tied_embeddings_all": "", "transformer_decoder_autoreg": "rnn", "dec_cell": "ssru"},
        {"tied_embeddings": "", "transformer_ffn_activation": "relu", "suffix": "bin"},
        {"transformer_postprocess_top": "n", "suffix": "bin"},
        {"tied_embeddings_src": "", "transformer_tied_layers": "1 1", "transformer_postprocess_emb": "nd"},
    ],
    ids=["ssru", "relu", "three matrices", "tied layers"],
)
def test_marian_gives_the_same_log_probabilities(tmp_path: Path, options: dict[str, str]) -> None:
    outputs = pymarian_folder(tmp_path / "marian", **options)
    model = imported(tmp_path / "marian", tmp_path / "model")
    pair, compared = model.tokenizers, 0
    for source, pieces, scores in outputs:
        target_T = [*(pair.target.vocabulary.pieces.index(piece) for piece in pieces), pair.special.end]  # type: ignore[attr-defined]
        target_T = target_T[: len(scores)]
        ours = log_probabilities(model, pair.encode_source(source), target_T)
        found = ours[torch.arange(len(target_T)), torch.tensor(target_T)]
        torch.testing.assert_close(found, torch.tensor(scores), atol=1e-4, rtol=0)
        compared += len(scores)
    assert compared > 10


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"transformer_decoder_autoreg": "rnn", "dec_cell": "ssru"}], ids=["", "ssru"])
def test_pre_norm_has_the_cross_entropy_that_marian_trains_with(tmp_path: Path, options: dict[str, str]) -> None:
    """Not the scores of its decoder, which leaves keys and values of earlier steps without the norm."""
    folder = tmp_path / "marian"
    pre = {f"transformer_{key}": value for key, value in (("preprocess", "n"), ("postprocess", "da"))}
    valid = {"valid_sets": f"{folder}/source.txt {folder}/target.txt", "valid_freq": "8u"}
    pymarian_folder(
        folder, **pre, **valid, **options, transformer_postprocess_top="n", tied_embeddings_all="",
        valid_metrics="ce-mean-words", valid_mini_batch="3",
    )  # fmt: skip
    model = imported(folder, tmp_path / "model")
    assert model.description.architecture.norm == "pre"  # type: ignore[union-attr]
    found: list[float] = []
    for source, target in zip(LINES[:3], LINES[2:5], strict=True):
        target_T = model.tokenizers.encode_targets([target])[0]
        ours = log_probabilities(model, model.tokenizers.encode_source(source), target_T)
        found += ours[torch.arange(len(target_T)), torch.tensor(target_T)].tolist()
    progress = (folder / "opus.npz.progress.yml").read_text(encoding="utf-8")
    theirs = float(re.findall(r"last-best: ([\d.]+)", progress)[0])
    assert -sum(found) / len(found) == pytest.approx(theirs, abs=1e-5)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("type", "s2s"),
        ("transformer-postprocess", "da"),
        ("transformer-decoder-autoreg", "average-attention"),
        ("transformer-ffn-depth", "3"),
        ("transformer-no-projection", "true"),
        ("dec-cell", "gru"),
        ("transformer-preprocess", "nd"),
        ("enc-depth", "many"),
        ("transformer-train-position-embeddings", "true"),
    ],
)
def test_an_option_that_cannot_be_expressed_is_refused_by_name(tmp_path: Path, key: str, value: str) -> None:
    write_student(tmp_path / "marian")
    path = tmp_path / "marian/model.ende.intgemm.alphas.bin"
    write_bin(path, rounded(random_weights(39)), {**OPTIONS, key: value})
    with pytest.raises(ModelError, match=f"{key} = "):
        imported(tmp_path / "marian", tmp_path / "model")


def test_a_billion_layers_are_refused_before_they_are_listed(tmp_path: Path) -> None:
    write_student(tmp_path / "marian")
    path = tmp_path / "marian/model.ende.intgemm.alphas.bin"
    write_bin(path, rounded(random_weights(39)), {**OPTIONS, "enc-depth": "999999999"})
    with pytest.raises(ModelError, match="names 1,000,000,001 layers"):
        imported(tmp_path / "marian", tmp_path / "model")


def test_options_without_end_are_refused_before_they_are_split(tmp_path: Path) -> None:
    write_student(tmp_path / "marian")
    path = tmp_path / "marian/model.ende.intgemm.alphas.bin"
    write_bin(path, rounded(random_weights(39)), {**OPTIONS, "x": "\n" * 2_000_000})
    with pytest.raises(ModelError, match="bytes of options; at most 1,048,576 are read"):
        imported(tmp_path / "marian", tmp_path / "model")


def test_a_shape_without_numbers_is_refused_before_memory_is_reserved_for_what_fits_it() -> None:
    with pytest.raises(ValueError, match=r"^$"):
        array_of(memoryview(b""), "<f4", (2**32 - 1, 0))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("vocab.ende.spm", "no vocabulary"),
        ("lex.50.50.ende.s2t.bin", "is damaged, or is no shortlist for"),
        ("second.npz", "holds 2 models: second.npz, model.ende"),
    ],
)
def test_missing_and_foreign_files_are_named(tmp_path: Path, change: str, words: str) -> None:
    write_student(tmp_path / "marian")
    path = tmp_path / "marian" / change
    if change.startswith("vocab"):
        path.unlink()
    else:
        path.write_bytes(b"\1" * 40)
    with pytest.raises(ModelError, match=re.escape(words)):
        imported(tmp_path / "marian", tmp_path / "model")


def test_texts_of_marian() -> None:
    """By hand, in the forms that yaml-cpp writes."""
    text = 'a: 1\nempty: ""\nlist:\n  - x\n  - "y"\nnone:\n  []\nshort: [p, q]\n# no: 3\n'
    assert options_of(text) == {"a": "1", "empty": "", "list": ["x", "y"], "none": [], "short": ["p", "q"]}
    written = '</s>: 0\n"a: b": 1\n\'it\'\'s\': 2\n"\\"\\u00e4\\x41": 3\n? long\n: 4\n~: 5\n'
    expected = {"</s>": 0, "a: b": 1, "it's": 2, '"äA': 3, "long": 4, "~": 5}
    assert pieces_to_ids(written.encode(), name="x") == expected
    assert pieces_to_ids(b'{"a": 0}', name="x") == {"a": 0}
    with pytest.raises(ModelError, match="is not a vocabulary"):
        pieces_to_ids(b"a: b\n", name="x")
