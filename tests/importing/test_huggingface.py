"""Folders of MarianMT: the network written out in `tests/export/marian.py`, and transformers, are the oracles."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.export.marian import Marian
from tests.export.test_huggingface import make
from tests.importing.marian_folder import LINES, write_folder

from transduce.errors import ModelError
from transduce.export.huggingface import export_huggingface
from transduce.importing.formats import import_model
from transduce.importing.huggingface import ACTIVATIONS
from transduce.model_directory import Languages, ModelDirectory, load_model
from transduce.tensor_file import write_tensors
from transduce.translator import Translator
from transduce.translator.several_targets import toward

TEXTS = LINES[:4]


def imported(tmp_path: Path, *, to: str | None = None) -> ModelDirectory:
    import_model(tmp_path / "marian", tmp_path / "model", Languages(target=to))
    return load_model(tmp_path / "model")


def log_probabilities(model: ModelDirectory, source: str, target: str) -> torch.Tensor:
    network = model.network()
    source_S, target_T = model.tokenizers.encode_source(source), model.tokenizers.encode_targets([target])[0]
    with torch.no_grad():
        hidden = network(torch.tensor([source_S]), torch.tensor([target_T]))
        return network.output.logits(hidden)[0].log_softmax(-1)


@pytest.mark.parametrize("options", [{}, {"activation_function": "relu", "scale_embedding": False}, {"dtype": "<f2"}])
def test_log_probabilities_are_those_of_the_written_out_network(tmp_path: Path, options: dict[str, object]) -> None:
    write_folder(tmp_path / "marian", **options)  # type: ignore[arg-type]
    model, oracle = imported(tmp_path), Marian(tmp_path / "marian", epsilon=1e-5)
    oracle.config |= {"activation_function": ACTIVATIONS[oracle.config["activation_function"]]}
    oracle.weights = {name: tensor.float() for name, tensor in oracle.weights.items()}
    for source, target in pairwise(TEXTS):
        source_S = torch.tensor(model.tokenizers.encode_source(source))
        target_T = torch.tensor(model.tokenizers.encode_targets([target])[0])
        with torch.no_grad():
            theirs = oracle.logits(source_S, target_T).log_softmax(-1)
        torch.testing.assert_close(log_probabilities(model, source, target), theirs, atol=1e-4, rtol=0)


@pytest.mark.parametrize("separate", [False, True])
def test_transformers_gives_the_same_ids_probabilities_and_search(tmp_path: Path, separate: bool) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed; it is no dependency")
    write_folder(tmp_path / "marian", share_encoder_decoder_embeddings=not separate)
    if separate:  # three matrices: the source's, the decoder's and, as transformers ties it, the output's
        network = transformers.MarianMTModel(transformers.MarianConfig.from_pretrained(tmp_path / "marian"))
        network.final_logits_bias.normal_()
        network.save_pretrained(tmp_path / "marian")
    network = transformers.MarianMTModel.from_pretrained(tmp_path / "marian").eval()
    tokenizer = transformers.MarianTokenizer.from_pretrained(tmp_path / "marian")
    model = imported(tmp_path)
    special = model.tokenizers.special
    for text in TEXTS:
        ids = tokenizer(text)["input_ids"]
        assert model.tokenizers.encode_source(text) == ids
        found = network.generate(
            torch.tensor([ids]), num_beams=1, do_sample=False, max_new_tokens=20, forced_eos_token_id=None,
            bad_words_ids=[[token] for token in special.never_generated],
        )[0].tolist()[1:]  # fmt: skip
        labels = torch.tensor([found])
        with torch.no_grad():
            theirs = network(input_ids=torch.tensor([ids]), labels=labels).logits[0].log_softmax(-1)
            own = model.network()
            ours = own.output.logits(own(torch.tensor([ids]), labels))[0].log_softmax(-1)
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=0)
        translator = Translator.load(tmp_path / "model", precision="float32")
        output = translator.translate(text, beam=1, maximum_length=20, extra_length=20, keep_form=False)
        assert list(output.alternatives[0].sentences[0].tokens) == found


def test_separate_vocabularies_number_the_same_pieces_otherwise(tmp_path: Path) -> None:
    """Target ids in reverse order reverse the outputs and change nothing else."""
    weights = write_folder(tmp_path / "marian")
    plain, folder = imported(tmp_path), tmp_path / "marian"
    pieces, shared_VD = json.loads((folder / "vocab.json").read_text()), weights.pop("model.shared.weight")
    (folder / "target_vocab.json").write_text(json.dumps({p: len(pieces) - 1 - n for p, n in pieces.items()}))
    weights["model.encoder.embed_tokens.weight"] = shared_VD
    weights["model.decoder.embed_tokens.weight"] = shared_VD[::-1].copy()
    weights["final_logits_bias"] = weights["final_logits_bias"][:, ::-1].copy()
    write_tensors(folder / "model.safetensors", weights)
    changes: dict[str, dict[str, object]] = {
        "config.json": {"share_encoder_decoder_embeddings": False, "decoder_start_token_id": 0, "pad_token_id": 0},
        "tokenizer_config.json": {"separate_vocabs": True},
    }
    for name, change in changes.items():
        (folder / name).write_text(json.dumps({**json.loads((folder / name).read_text()), **change}))
    import_model(folder, tmp_path / "separate", Languages())
    model = load_model(tmp_path / "separate")
    for source, target in pairwise(TEXTS):
        ours = log_probabilities(model, source, target).flip(-1)
        torch.testing.assert_close(ours, log_probabilities(plain, source, target), atol=1e-5, rtol=0)


def test_an_exported_model_comes_back(tmp_path: Path) -> None:
    original = make(tmp_path / "original", norm_epsilon=1e-5, attention_bias=True, output_bias=True)
    export_huggingface(original, tmp_path / "marian")
    model = imported(tmp_path)
    for source, target in pairwise(TEXTS):
        assert model.tokenizers.encode_source(source) == original.tokenizers.encode_source(source)
        ours = log_probabilities(original, source, target)
        torch.testing.assert_close(log_probabilities(model, source, target), ours, atol=1e-4, rtol=0)


@pytest.mark.parametrize("is_zip", [True, False], ids=["since 1.6", "before"])
def test_a_pickled_file_gives_the_same_weights(tmp_path: Path, is_zip: bool) -> None:
    weights = write_folder(tmp_path / "marian")
    plain = imported(tmp_path)
    path, tensors = tmp_path / "marian/pytorch_model.bin", {n: torch.from_numpy(a) for n, a in weights.items()}
    torch.save(tensors, path, _use_new_zipfile_serialization=is_zip)
    (tmp_path / "marian/model.safetensors").unlink()
    import_model(tmp_path / "marian", tmp_path / "pickled", Languages())
    again = load_model(tmp_path / "pickled")
    assert all((again.parameters[name] == plain.parameters[name]).all() for name in plain.parameters)


@pytest.mark.parametrize(
    "kept",
    ["model.shared.weight", "lm_head.weight", "model.decoder.embed_tokens.weight", "model.encoder.embed_tokens.weight"],
)
def test_a_tied_matrix_may_stand_under_any_of_its_names(tmp_path: Path, kept: str) -> None:
    """Files of safetensors hold each matrix once, and which name stays depends on the program that wrote them."""
    weights = write_folder(tmp_path / "marian")
    shared_VD = weights["model.shared.weight"]
    weights[kept] = weights.pop("model.shared.weight")
    write_tensors(tmp_path / "marian/model.safetensors", weights)
    np.testing.assert_array_equal(imported(tmp_path).parameters["embeddings.source_VD"], shared_VD)


def test_languages_get_their_names_of_two_letters(tmp_path: Path) -> None:
    """Models of the Tatoeba challenge say eng and zho; a token of the macrolanguage's main language is taken."""
    write_folder(tmp_path / "marian", tags=(">>cmn<<", ">>cmn_Hans<<", ">>yue<<"))
    path = tmp_path / "marian/tokenizer_config.json"
    path.write_text(json.dumps({"source_lang": "eng", "target_lang": "zho"}))
    model = imported(tmp_path)
    assert model.description.languages == Languages(source="en", target="zh")
    assert model.tokenizers.source.piece(model.tokenizers.encode_source("the dog")[0]) == ">>cmn<<"


def test_a_target_language_becomes_a_token(tmp_path: Path) -> None:
    write_folder(tmp_path / "marian", tags=(">>deu<<", ">>nld<<"))
    with pytest.raises(ModelError, match=r"Name one of them by `--to`: deu, nld \(fr fits 0"):
        import_model(tmp_path / "marian", tmp_path / "none", Languages(target="fr"))
    model = imported(tmp_path, to="de")
    assert model.description.targets == {"nl": ">>nld<<"}
    dutch = toward(Translator.load(tmp_path / "model"), "nl").tokenizers
    assert dutch.source.piece(dutch.encode_source("the dog")[0]) == ">>nld<<"
    assert model.tokenizers.source.piece(model.tokenizers.encode_source("the dog")[0]) == ">>deu<<"
    card = (tmp_path / "model/README.md").read_text(encoding="utf-8")
    assert "cc-by-4.0" in card
    assert "MarianMT" in card


@pytest.mark.parametrize("precision", ["int8", "float32"])
def test_an_imported_model_translates_in_the_core(tmp_path: Path, precision: str) -> None:
    write_folder(tmp_path / "marian")
    imported(tmp_path)
    translator = Translator.load(tmp_path / "model", precision=precision)  # type: ignore[arg-type]
    assert translator.is_frozen
    assert len(translator.translate(TEXTS, maximum_length=12)) == len(TEXTS)


@pytest.mark.parametrize(
    ("key", "value"), [("model_type", "bart"), ("normalize_before", True), ("activation_function", "tanh")]
)
def test_an_option_that_cannot_be_expressed_is_refused_by_name(tmp_path: Path, key: str, value: object) -> None:
    write_folder(tmp_path / "marian")
    path = tmp_path / "marian/config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    with pytest.raises(ModelError, match=f"{key} = "):
        imported(tmp_path)
