"""Models with other tokenizers than our usual one: characters, no symbols for placeholders, sources without an end
token, and the special ids of imported models."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.text.renumbered import RenumberedTokenizer

from transduce.core import has_core
from transduce.data.padding import pad_ids
from transduce.data.shortlist import Shortlist
from transduce.data.token_store import TokenStore, token_store_written
from transduce.decoding.config import DecodingConfig, DecodingOptions
from transduce.decoding.search import search
from transduce.model import ModelConfig, Transformer
from transduce.model_directory import Description, ModelDirectory, load_model, save_model
from transduce.networks.log_probabilities import token_log_probabilities
from transduce.networks.torch_stepper import TorchStepper
from transduce.tensor_file import Array
from transduce.text.bpe_tokenizer import BpeTokenizer
from transduce.text.character_tokenizer import CharacterTokenizer
from transduce.text.tokenizer_pair import TokenizerPair
from transduce.training.arithmetic import Arithmetic
from transduce.training.validation import measure_loss
from transduce.translator import Glossary, Translator
from transduce.translator.terminology import count_terms
from transduce.translator.translator import WantedPrecision

LINES = ["the dog runs.", "a cat sleeps here", "der Hund läuft.", "eine Katze schläft hier"] * 3
TEXTS = ["the dog runs.", "a cat, {name}, sleeps", "the cat", "here the dog runs and a cat sleeps"]
PAIRS = [(TEXTS[0], "der Hund läuft."), (TEXTS[1], "eine Katze, {name}, schläft"), ("a", "")]


def make_model(folder: Path, tokenizers: TokenizerPair) -> ModelDirectory:
    torch.manual_seed(3)
    config = ModelConfig(
        vocabulary_size=tokenizers.vocabulary_size, d_model=22, heads=11, d_ff=13, layers=1, dropout=0, tied="inputs"
    )
    description = Description(architecture=config, decoding={"extra_length": 12})
    parameters = {name: parameter.detach() for name, parameter in Transformer(config).named_parameters()}
    save_model(folder, description, parameters, tokenizers=tokenizers, card="")
    return load_model(folder)


def load(model: ModelDirectory, precision: WantedPrecision = "float32") -> Translator:
    return Translator([model], precision=precision, threads=1)


@pytest.fixture(scope="module")
def bpe() -> BpeTokenizer:
    return BpeTokenizer.learn(LINES, vocabulary_size=330)


def test_terms_are_enforced_on_characters_and_stand_as_words(tmp_path: Path) -> None:
    characters = CharacterTokenizer.learn(LINES, vocabulary_size=400)
    translator = load(make_model(tmp_path / "m", TokenizerPair.shared(characters)))
    glossary = Glossary((("dog", "Köter"), ("cat", "um"), ("here", "C++")))
    for found in translator.translate(TEXTS, glossary=glossary, beam=2):
        wanted = glossary.wanted(found.source)
        assert count_terms(wanted, found.text) == len(wanted), "each as a word of its own, not inside of a longer one"
        assert not set(found.missing) & set(wanted)


def test_placeholders_without_symbols_go_through_as_text_and_are_listed_if_they_do_not_come_back(
    tmp_path: Path,
) -> None:
    seen: list[str] = []

    class WithoutSymbols(CharacterTokenizer):
        symbols = range(0)

        def encode(self, text: str) -> list[int]:
            seen.append(text)
            return super().encode(text)

        def decode(self, ids: Sequence[int]) -> str:
            return "ein %s und <b>"

    pair = TokenizerPair.shared(WithoutSymbols("abcdef"))
    found = load(replace(make_model(tmp_path / "m", pair), tokenizers=pair)).translate(
        "a %s and %s of {name}, <b>", keep_placeholders="report"
    )
    assert set(seen) == {"a %s and %s of {name}, <b>"}, "the text goes through as it is"
    assert found.text == "ein %s und <b>"
    assert found.missing == ("%s", "{name}")
    assert found.surplus == ()


@pytest.mark.parametrize("source_end", [True, False])
def test_everything_that_encodes_a_source_ends_it_as_the_model_wants(
    bpe: BpeTokenizer, tmp_path: Path, source_end: bool
) -> None:
    model = make_model(tmp_path / "m", TokenizerPair.shared(bpe, source_end=source_end))
    source, target = "the dog runs.", "der Hund läuft."
    ids, labels = bpe.encode(source) + [3] * source_end, [*bpe.encode(target), 3]
    network = model.network()
    with torch.no_grad():
        hidden_BTD = network(torch.tensor([ids]), torch.tensor([labels]))
        expected = token_log_probabilities(hidden_BTD, network.output, torch.tensor([labels]))[0].tolist()
    translator = load(model)
    assert translator.likelihood([(source, target)])[0].log_probabilities == pytest.approx(expected, abs=1e-5)
    report = translator.attention(source, target=target)
    assert [token.id for token in report.source.tokens] == ids
    assert [token.log_probability for token in report.target.tokens] == pytest.approx(expected, abs=1e-5)
    shown = translator.attention(source)
    assert shown.target_text == translator.translate(source, keep_form=False).text
    assert [token.id for token in shown.source.tokens] == ids


@pytest.fixture(scope="module")
def both(bpe: BpeTokenizer, tmp_path_factory: pytest.TempPathFactory) -> tuple[ModelDirectory, ModelDirectory]:
    """A model with our ids, and the same one with its rows in the order of an imported tokenizer's ids.

    The first number of a hidden vector is always 1, and the output row of our padding is (-1000, 0, …), so that its
    probability is 0: the imported tokenizer has no padding apart from the start token.
    """
    usual = make_model(tmp_path_factory.mktemp("models") / "usual", TokenizerPair.shared(bpe))
    parameters = dict(usual.parameters)
    norm = "decoder.layers.0.feed_forward_residual.norm"
    parameters[f"{norm}.weight"][0], parameters[f"{norm}.bias"][0] = 0.0, 1.0
    parameters["embeddings.output_VD"][0] = [-1000.0, *[0.0] * 21]
    renumbered = RenumberedTokenizer(bpe)

    def moved(matrix_VD: Array) -> Array:
        rows_VD = np.empty_like(matrix_VD)
        rows_VD[renumbered.numbers] = matrix_VD
        return rows_VD

    permuted = {name: moved(tensor) if name.endswith("_VD") else tensor for name, tensor in parameters.items()}
    return (
        replace(usual, parameters=parameters),
        replace(usual, parameters=permuted, tokenizers=TokenizerPair.shared(renumbered)),
    )


@pytest.mark.parametrize("precision", ["float32", "int8"])
@pytest.mark.parametrize("options", [{}, {"beam": 1, "minimum_length": 9}, {"stop": "full", "alternatives": 3}])
def test_special_ids_change_no_translation(
    both: tuple[ModelDirectory, ModelDirectory], options: DecodingOptions, precision: WantedPrecision
) -> None:
    if precision == "int8" and not has_core():
        pytest.skip("the C++ core was not built")
    glossary = Glossary((("dog", "Hund"),))
    expected, found = (load(model, precision).translate(TEXTS, glossary=glossary, **options) for model in both)
    for own, usual in zip(found, expected, strict=True):
        assert (own.text, own.tokens[:-1], own.missing) == (usual.text, usual.tokens[:-1], usual.missing)
        scores, usual_scores = ([one.score for one in side.alternatives] for side in (own, usual))
        assert scores == pytest.approx(usual_scores, abs=1e-4)


def test_special_ids_change_nothing_within_a_shortlist(both: tuple[ModelDirectory, ModelDirectory]) -> None:
    renumbered = both[1].tokenizers.target
    assert isinstance(renumbered, RenumberedTokenizer)
    numbers = renumbered.numbers
    texts, scores = [], []
    for model, number in zip(both, (list(range(len(numbers))), numbers), strict=True):
        pair, stepper = model.tokenizers, TorchStepper(model.network())
        common = np.array([number[token] for token in range(4, 330, 3)], dtype=np.int32)
        candidates = np.full((pair.vocabulary_size, 1), pair.special.padding, dtype=np.int32)
        shortlist = Shortlist(common, candidates, pair.special, copies_sources=True)
        rows = pair.encode_sources(TEXTS)
        source_BS = pad_ids(rows, padding=pair.special.padding)
        outputs = search(stepper, source_BS, DecodingConfig(extra_length=9), lists=[*map(shortlist.tokens, rows)])
        assert all(set(own[0].tokens) <= set(shortlist.tokens(row)) for own, row in zip(outputs, rows, strict=True))
        texts.append([pair.target.decode(own[0].tokens) for own in outputs])
        scores.append([own[0].score for own in outputs])
    assert texts[1] == texts[0]
    assert scores[1] == pytest.approx(scores[0], abs=1e-4)


def test_samples_hold_no_special_token(both: tuple[ModelDirectory, ModelDirectory]) -> None:
    """A draw falls on a place in the vocabulary, so other ids change what is drawn, but not what may be drawn."""
    for model in both:
        special = {model.tokenizers.target.piece(token) for token in model.tokenizers.special.never_generated}
        for found in load(model).translate(TEXTS, sample=True, alternatives=4):
            assert not any(special & set(one.tokens) for one in found.alternatives)
            assert found.text == model.tokenizers.target.decode(model.tokenizers.target.encode(found.text))


def test_special_ids_change_no_likelihood_and_no_attention(both: tuple[ModelDirectory, ModelDirectory]) -> None:
    usual, renumbered = map(load, both)
    for found, expected in zip(renumbered.likelihood(PAIRS), usual.likelihood(PAIRS), strict=True):
        assert found.tokens == expected.tokens
        assert found.log_probabilities == pytest.approx(expected.log_probabilities, abs=1e-5)
    for translator, model in zip((usual, renumbered), both, strict=True):
        translator._weights = [partial(replace, model)]  # these weights are in no folder from which to read them again
    shown, wanted = (own.attention(TEXTS[1]) for own in (renumbered, usual))
    for own, other in ((shown.source, wanted.source), (shown.target, wanted.target)):
        assert [(token.text, token.start, token.end, token.word) for token in own.tokens] == [
            (token.text, token.start, token.end, token.word) for token in other.tokens
        ]
    torch.testing.assert_close(shown.blocks["cross"].weights_LHQK, wanted.blocks["cross"].weights_LHQK)
    assert shown.largest_difference < 1e-5


def test_special_ids_change_no_loss_of_padded_batches(
    both: tuple[ModelDirectory, ModelDirectory], tmp_path: Path
) -> None:
    losses = []
    for number, model in enumerate(both):
        pair, folder = model.tokenizers, tmp_path / str(number)
        with token_store_written(folder, vocabulary_size=pair.vocabulary_size) as writer:
            sources, targets = map(list, zip(*PAIRS, strict=True))
            writer.append(pair.encode_sources(sources), pair.encode_targets(targets), texts=PAIRS)
        arithmetic = Arithmetic(torch.device("cpu"), "float32")
        losses.append(measure_loss(model.network(), TokenStore.open(folder), tokens_at_once=99, arithmetic=arithmetic))
    assert losses[1].loss == pytest.approx(losses[0].loss, rel=1e-5)
    assert losses[1].accuracy == losses[0].accuracy
