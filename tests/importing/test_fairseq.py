"""Checkpoints of fairseq: a network of torch.nn with the same weights is the oracle."""

from pathlib import Path

import pytest
import torch
from tests.importing.fairseq_folder import TorchTransformer, write_folder

from transduce.errors import ModelError
from transduce.importing.formats import import_model
from transduce.model_directory import Languages, ModelDirectory, load_model
from transduce.translator import Translator

PAIRS = [("the dog runs", "der Hund läuft"), ("the cat", "Hund"), ("the bigger dog", "der läuft Hund der")]


def imported(folder: Path, destination: Path) -> ModelDirectory:
    import_model(folder, destination, Languages())
    return load_model(destination)


@pytest.mark.parametrize("pre_norm", [False, True])
@pytest.mark.parametrize("is_old", [False, True])
def test_log_probabilities_are_those_of_torch(tmp_path: Path, pre_norm: bool, is_old: bool) -> None:
    network = TorchTransformer(pre_norm=pre_norm)
    write_folder(tmp_path / "fairseq", network, is_old=is_old)
    model = imported(tmp_path / "fairseq", tmp_path / "model")
    assert model.description.languages == Languages(source="en", target="de")
    for source, target in PAIRS:
        source_S, target_T = model.tokenizers.encode_source(source), model.tokenizers.encode_targets([target])[0]
        own = model.network()
        with torch.no_grad():
            ours = own.output.logits(own(torch.tensor([source_S]), torch.tensor([target_T])))[0].log_softmax(-1)
        torch.testing.assert_close(ours, network.log_probabilities(source_S, target_T), atol=1e-4, rtol=0)


def test_text_is_cut_by_the_codes_and_ids_are_those_of_the_dictionary(tmp_path: Path) -> None:
    """By hand: ids 0 to 3 are special; "cat" is ca@@ t, "bigger" is big@@ ger; a source ends in </s>, id 2."""
    write_folder(tmp_path / "fairseq", TorchTransformer())
    pair = imported(tmp_path / "fairseq", tmp_path / "model").tokenizers
    assert pair.encode_source("the cat") == [4, 7, 8, 2]
    assert pair.encode_source("the bigger dog") == [4, 12, 13, 5, 2]
    assert pair.target.decode([9, 12, 13, 10]) == "der bigger Hund"
    special = pair.special
    assert (special.start, special.padding, special.end, special.unknown) == (2, 1, 2, 3)


def test_a_dictionary_may_hold_words_that_look_like_special_tokens(tmp_path: Path) -> None:
    write_folder(tmp_path / "fairseq", TorchTransformer())
    for language in ("en", "de"):
        path = tmp_path / f"fairseq/dict.{language}.txt"
        lines = path.read_text(encoding="utf-8")
        path.write_text(lines.replace("madeupword0000 0", "<unk> 0 #fairseq:overwrite"), encoding="utf-8")
    pair = imported(tmp_path / "fairseq", tmp_path / "model").tokenizers
    assert pair.encode_source("the cat zzz")[:3] == [4, 7, 8]
    assert pair.special.unknown == 3


def test_it_translates_in_the_core(tmp_path: Path) -> None:
    write_folder(tmp_path / "fairseq", TorchTransformer())
    imported(tmp_path / "fairseq", tmp_path / "model")
    translator = Translator.load(tmp_path / "model", precision="int8")
    assert translator.is_frozen
    assert translator.translate("the dog runs", maximum_length=5).alternatives


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("activation_fn", "linear"),
        ("adaptive_input", True),
        ("decoder_attention_heads", 2),
        ("encoder_layers_to_keep", "0,1"),
        ("arch", "lightconv"),
        ("cross_self_attention", [1]),
    ],
)
def test_an_option_that_cannot_be_expressed_is_refused_by_name(tmp_path: Path, option: str, value: object) -> None:
    write_folder(tmp_path / "fairseq", TorchTransformer(), **{option: value})  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=f"{option} = "):
        imported(tmp_path / "fairseq", tmp_path / "model")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("dict.de.txt", "der\n", r"dict\.de\.txt:1 is not a piece and its count"),
        ("dict.de.txt", "der 1\n", "do not belong together"),
        ("bpecodes", "#version: 0.1\na b\n", "#version: 0.1, which transduce does not implement"),
        ("bpecodes", "a b\n", "bpecodes:1 is not a pair"),
        ("bpecodes", None, "no way to cut text"),
        ("dict.en.txt", None, "source_lang = 'en' and the dictionaries dict.de.txt"),
        ("checkpoint_best.pt", "\x80\x02", "is damaged or is not a file of weights"),
    ],
)
def test_missing_and_foreign_files_are_named(tmp_path: Path, name: str, content: str | None, words: str) -> None:
    write_folder(tmp_path / "fairseq", TorchTransformer())
    path = tmp_path / "fairseq" / name
    if content is None:
        path.unlink()
    else:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(ModelError, match=words):
        imported(tmp_path / "fairseq", tmp_path / "model")
