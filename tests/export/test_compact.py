"""A smaller copy is the same model up to the rounding that its storage names, and names it in its card."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from transduce.errors import ModelError
from transduce.export.compact import export_compact
from transduce.export.ctranslate2 import export_ctranslate2
from transduce.export.huggingface import export_huggingface
from transduce.model.config import ModelConfig
from transduce.model.transformer import Transformer
from transduce.model_directory import CARD, WEIGHTS, Description, ModelDirectory, Storage, load_model, save_model
from transduce.text.bpe_tokenizer import BpeTokenizer
from transduce.text.character_tokenizer import CharacterTokenizer
from transduce.text.tokenizer_pair import TokenizerPair


@pytest.fixture
def model(tmp_path: Path) -> ModelDirectory:
    tokenizer = BpeTokenizer.learn(["the dog runs.", "der Hund läuft."] * 3, vocabulary_size=400)
    config = ModelConfig(vocabulary_size=tokenizer.vocabulary_size, layers=1, d_model=16, d_ff=24, heads=2)
    torch.manual_seed(2)
    save_model(
        tmp_path / "model",
        Description(architecture=config, longest_sentence=30),
        dict(Transformer(config).named_parameters()),
        tokenizers=TokenizerPair.shared(tokenizer),
        card="# A card\n",
        training_hashes=np.arange(5, dtype=np.uint64),
    )
    return load_model(tmp_path / "model")


def test_only_one_bpe_tokenizer_for_both_sides_goes_to_other_programs(model: ModelDirectory, tmp_path: Path) -> None:
    bpe, characters = model.tokenizers.target, CharacterTokenizer(["a", "b"])
    for pair, reason in (
        (TokenizerPair.shared(characters), "its tokenizer is of the kind 'characters'"),
        (TokenizerPair(characters, bpe), "its (sources have a tokenizer of their own|tokenizer is of the kind)"),
        (TokenizerPair.shared(bpe, source_end=False), "its sources do not end in the end token"),
    ):
        other = replace(model, tokenizers=pair)
        for program, export in (("Hugging Face", export_huggingface), ("CTranslate2", export_ctranslate2)):
            with pytest.raises(ModelError, match=f"cannot be exported to {program}: {reason}"):
                export(other, tmp_path / "out")
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("weights", "part"), [("bf16", 1 / 256), ("int8", 1 / 254)])
def test_every_weight_is_near_and_the_rest_the_same(
    model: ModelDirectory, tmp_path: Path, weights: Storage, part: float
) -> None:
    size = export_compact(model, tmp_path / "small", weights=weights)
    small = load_model(tmp_path / "small")
    assert small.description == model.description.model_copy(update={"weights": weights})
    assert small.tokenizers.target.fingerprint == model.tokenizers.target.fingerprint
    hashes = small.training_hashes()
    assert hashes is not None
    assert hashes.tolist() == [0, 1, 2, 3, 4]
    for name, before in model.parameters.items():
        after = small.parameters[name]
        row = np.abs(before).max(axis=-1, keepdims=True)
        bound = part * row if weights == "int8" else part * np.abs(before)
        assert (before == after).all() if before.ndim < 2 else (np.abs(before - after) <= bound * 1.001).all()
    assert size < (tmp_path / "small" / WEIGHTS).stat().st_size < (model.folder / WEIGHTS).stat().st_size * 0.6


def test_the_card_travels_and_says_how_weights_are_stored(model: ModelDirectory, tmp_path: Path) -> None:
    export_compact(model, tmp_path / "small", weights="int8")
    card = (tmp_path / "small" / CARD).read_text(encoding="utf-8")
    assert card.startswith("# A card\n")
    assert "int8 with a float32 scale for every row" in card


def test_the_makers_words_stand_first_on_the_card(model: ModelDirectory, tmp_path: Path) -> None:
    export_compact(model, tmp_path / "small", weights="int8", words="# Mine\n\nThe text is by others.\n")
    card = (tmp_path / "small" / CARD).read_text(encoding="utf-8")
    assert card.startswith("# Mine\n\nThe text is by others.\n\n# A card\n")


def test_a_second_rounding_loses_nothing(model: ModelDirectory, tmp_path: Path) -> None:
    export_compact(model, tmp_path / "one", weights="int8")
    export_compact(load_model(tmp_path / "one"), tmp_path / "two", weights="int8")
    assert (tmp_path / "one" / WEIGHTS).read_bytes() == (tmp_path / "two" / WEIGHTS).read_bytes()


def test_nothing_is_overwritten(model: ModelDirectory, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    with pytest.raises(ModelError, match="exists already"):
        export_compact(model, tmp_path / "mine", weights="bf16")
