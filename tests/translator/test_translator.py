"""The translator: what goes around the network. The network is real but untrained; laws need no good translations."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import transduce
from transduce.data.shortlist import Shortlist
from transduce.decoding.config import DecodingOptions
from transduce.errors import ConfigError, ModelError
from transduce.model import ModelConfig, Transformer
from transduce.model_directory import Description, Languages, load_model, save_model
from transduce.special_tokens import OWN_SPECIAL_TOKENS
from transduce.text.bpe_tokenizer import BpeTokenizer
from transduce.text.tokenizer_pair import TokenizerPair
from transduce.translator import Translator
from transduce.translator.cutting import sentences_to_search
from transduce.translator.searching import Searcher
from transduce.translator.translator import WantedPrecision

LINES = ["the dog runs.", "a cat sleeps here", "der Hund läuft.", "eine Katze schläft hier"] * 3


def make_model(folder: Path, *, seed: int = 3, lines: list[str] = LINES) -> Path:
    tokenizer = BpeTokenizer.learn(lines, vocabulary_size=400)
    torch.manual_seed(seed)
    config = ModelConfig(vocabulary_size=tokenizer.vocabulary_size, d_model=22, heads=11, d_ff=13, layers=1, dropout=0)
    description = Description(
        architecture=config,
        languages=Languages(source="en", target="de"),
        longest_sentence=12,
        decoding={"extra_length": 3},
    )
    parameters = {name: parameter.detach() for name, parameter in Transformer(config).named_parameters()}
    save_model(folder, description, parameters, tokenizers=TokenizerPair.shared(tokenizer), card="")
    return folder


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    return transduce.load(make_model(tmp_path_factory.mktemp("models") / "model"), threads=1)


@pytest.mark.parametrize("key", ["beam", "extra_length", "length_penalty", "minimum_length"])
def test_a_model_cannot_ask_for_all_memory_or_time(key: str, tmp_path: Path) -> None:
    model = load_model(make_model(tmp_path / "model"))
    description = model.description.model_copy(update={"decoding": {key: 10**8}})
    with pytest.raises(ModelError, match=rf"asks for decoding.{key} = 1e\+08, which could take all memory or time"):
        Translator([replace(model, description=description)], threads=1)


def test_one_text_gives_one_translation_and_several_give_a_list(translator: Translator) -> None:
    one = translator.translate("the dog runs.")
    several = translator.translate(["the dog runs.", "a cat"])
    assert one.text == several[0].text
    assert [translation.source for translation in several] == ["the dog runs.", "a cat"]
    assert one.tokens == one.alternatives[0].tokens
    assert one.text == one.alternatives[0].text


def test_what_is_around_sentences_stays(translator: Translator) -> None:
    text = "  the dog runs. \n\n\ta cat sleeps here\r\n"
    alone = [translator.translate(part).text for part in ("the dog runs.", "a cat sleeps here")]
    assert translator.translate(text).text == f"  {alone[0]} \n\n\t{alone[1]}\r\n"
    for empty in ("", "   ", "\n"):
        assert translator.translate(empty).text == empty


def test_company_changes_nothing(translator: Translator) -> None:
    texts = ["the dog runs.", "a", "cat sleeps", "the the the dog dog", "", "hier läuft der Hund"] * 5
    together = translator.translate(texts)
    assert [t.text for t in together] == [translator.translate(text).text for text in texts]


def test_alternatives_are_ranked_and_their_scores_are_their_likelihoods(translator: Translator) -> None:
    translation = translator.translate("the dog runs.", beam=4, alternatives=3)
    scores = [alternative.score for alternative in translation.alternatives]
    assert len(scores) == 3
    assert scores == sorted(scores, reverse=True)


def test_likelihood_sums_token_log_probabilities(translator: Translator) -> None:
    pairs = [("the dog runs.", "der Hund läuft."), ("a cat", "eine Katze schläft hier"), ("a cat", "")]
    together = translator.likelihood(pairs)
    for pair, likelihood in zip(pairs, together, strict=True):
        alone = translator.likelihood([pair])[0]
        assert alone.log_probabilities == pytest.approx(likelihood.log_probabilities, abs=1e-5)
        assert likelihood.log_probability == pytest.approx(sum(likelihood.log_probabilities))
        assert len(likelihood.tokens) == len(translator.tokenizers.target.encode(pair[1])) + 1


def test_an_ensemble_of_a_model_with_itself_is_the_model(translator: Translator, tmp_path: Path) -> None:
    folder = translator.models[0].folder
    ensemble = transduce.load(folder, folder, threads=1)
    assert ensemble.translate("the dog runs.").text == translator.translate("the dog runs.").text
    other = make_model(tmp_path / "other", lines=[*LINES, "zebra zebra zebra"])
    with pytest.raises(ModelError, match="must share one tokenizer"):
        transduce.load(folder, other)


def test_sentences_longer_than_the_model_has_seen_are_cut_not_lost(translator: Translator) -> None:
    long = " ".join(["dog"] * 40)
    parts = translator._cutter.cut([long])[0].parts
    assert "".join(part.text for part in parts) == long
    assert all(len(part.encoded.ids) <= 12 for part in parts if part.encoded is not None)
    assert translator.translate(long).source == long


def test_no_part_of_a_long_sentence_is_encoded_twice(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[str] = []
    encode = TokenizerPair.encode_sources

    def noted(tokenizers: TokenizerPair, texts: Sequence[str]) -> list[list[int]]:
        encoded.extend(texts)
        return encode(tokenizers, texts)

    monkeypatch.setattr(TokenizerPair, "encode_sources", noted)
    long = ", ".join(["the dog runs", "a cat"] * 10)
    assert len(translator._cutter.cut([long])[0].parts) > 3
    assert len(encoded) == len(set(encoded))


def test_a_forced_beginning_is_kept(translator: Translator) -> None:
    config = translator.configure()
    forced = translator.translate_all(["the dog runs."], config, prefixes=["eine Katze"])[0]
    assert forced.text.startswith("eine Katze")


def test_impossible_settings_are_told(translator: Translator) -> None:
    with pytest.raises(ConfigError, match="alternatives = 5 is above beam = 4"):
        translator.translate("a cat", alternatives=5)
    with pytest.raises(ConfigError, match="bim: Extra inputs"):
        translator.translate("a cat", bim=5)  # type: ignore[call-overload]


def test_samples_depend_on_seed_and_place_alone(translator: Translator) -> None:
    texts = ["the dog runs.", "a cat", "the dog runs."]
    config = translator.configure(sample=True, seed=7)
    together = translator.translate_all(texts, config, numbers=[10, 11, 12])
    alone = [translator.translate_all([text], config, numbers=[number])[0] for number, text in enumerate(texts, 10)]
    assert [t.text for t in together] == [t.text for t in alone]


def test_a_sentence_beyond_all_measure_is_refused_alone(translator: Translator) -> None:
    before, refused, after = translator.translate(["a cat", "x" * 5000, "the dog runs."])
    assert refused.text == ""
    assert "it holds a sentence of" in refused.refusal
    assert not before.refusal
    assert after.text == translator.translate("the dog runs.").text


def test_two_threads_translate_as_one_does(tmp_path: Path) -> None:
    folder = make_model(tmp_path / "model")
    texts = ["the dog runs.", "a", "cat sleeps", "the the the dog dog", "", "hier läuft der Hund"] * 40
    one, two = (transduce.load(folder, threads=threads).translate(texts, beam=8) for threads in (1, 2))
    assert [t.text for t in one] == [t.text for t in two]


def with_shortlist(folder: Path, *, decoding: dict[str, object]) -> tuple[Path, Shortlist]:
    """Make a model with a list that leaves most of the vocabulary out."""
    model = load_model(make_model(folder))
    size = model.tokenizers.target.vocabulary_size
    draws = np.random.default_rng(1).integers(4, size, (size, 2), dtype=np.int32)
    shortlist = Shortlist(np.array([5, 6], dtype=np.int32), draws, OWN_SPECIAL_TOKENS, copies_sources=True)
    description = model.description.model_copy(update={"decoding": {**model.description.decoding, **decoding}})
    save_model(folder, description, model.parameters, tokenizers=model.tokenizers, card="", shortlist=shortlist)
    return folder, shortlist


@pytest.mark.parametrize("precision", ["float32", "bf16", "auto"])
def test_with_a_shortlist_outputs_are_made_of_its_tokens(precision: WantedPrecision, tmp_path: Path) -> None:
    folder, shortlist = with_shortlist(tmp_path / "model", decoding={})
    translator = Translator.load(folder, precision=precision, threads=1)
    source = "the dog runs"
    allowed = {
        translator.tokenizers.target.piece(t)
        for t in shortlist.tokens([*translator.tokenizers.target.encode(source), 3])
    }
    assert not set(translator.translate(source).tokens) <= allowed, "else this test could not fail"
    assert set(translator.translate(source, shortlist=True).tokens) <= allowed
    shown = translator.attention(source, shortlist=True).target.tokens
    assert {translator.tokenizers.target.piece(token.id) for token in shown} <= allowed


def test_the_models_own_setting_is_a_shortlist_and_can_be_turned_off(tmp_path: Path) -> None:
    own = Translator.load(with_shortlist(tmp_path / "a", decoding={"shortlist": True})[0], threads=1)
    other = Translator.load(with_shortlist(tmp_path / "b", decoding={})[0], threads=1)
    text = "the dog runs. a cat sleeps here"
    assert own.translate(text) == other.translate(text, shortlist=True)
    assert own.translate(text, shortlist=False) == other.translate(text)
    assert own.translate(text) != other.translate(text)


def test_a_sentence_with_a_shortlist_does_not_depend_on_its_neighbours(tmp_path: Path) -> None:
    translator = Translator.load(with_shortlist(tmp_path / "model", decoding={"shortlist": True})[0], threads=1)
    texts = ["the dog runs", "a cat sleeps here and there and the dog", "der Hund", "x"]
    together = translator.translate(texts)
    assert [one.text for one in together] == [translator.translate(text).text for text in texts]


def test_a_model_without_a_shortlist_says_so(translator: Translator) -> None:
    with pytest.raises(ConfigError, match=r"holds no shortlist. Train with training.shortlist = 50, or leave it out"):
        translator.translate("the dog runs.", shortlist=True)


def test_what_an_output_must_begin_with_is_in_its_list(tmp_path: Path) -> None:
    folder, shortlist = with_shortlist(tmp_path / "model", decoding={"shortlist": True})
    translator = Translator.load(folder, threads=1)
    source, prefix = "the dog", "eine Katze"
    pieces = translator.tokenizers.target.encode(prefix)
    assert not set(pieces) <= set(shortlist.tokens([*translator.tokenizers.target.encode(source), 3])), (
        "else nothing is shown"
    )
    [found] = translator.translate_all([source], translator.configure(), prefixes=[prefix])
    assert found.tokens[: len(pieces)] == tuple(map(translator.tokenizers.target.piece, pieces))


@pytest.mark.parametrize("options", [DecodingOptions(), DecodingOptions(consensus=True), DecodingOptions(beam=6)])
def test_no_two_alternatives_have_the_same_text(options: DecodingOptions) -> None:
    translator = transduce.load("en-de", threads=1)
    plain = Searcher(translator.stepper, translator.tokenizers.target.decode)
    config = translator.configure(**options).model_copy(update={"alternatives": 4})
    texts = ["It is raining.", "The dog sleeps.", "I cannot find my keys.", "Yes. He bought a screwdriver."]
    cut, target = translator._cutter.cut(texts), translator.tokenizers.target
    sentences = sentences_to_search(cut, target, numbers=None, prefixes=None)
    found = [[plain.decode(own.tokens) for own in outputs] for outputs in plain._search(sentences, config)]
    assert any(len(set(own)) < len(own) for own in found), "one text in several tokenizations; else nothing is shown"
    offered = [[own.text for own in found.alternatives] for found in translator.translate_all(texts, config)]
    assert all(len(outputs) == len(set(outputs)) <= 4 for outputs in offered)
    assert any(len(outputs) > 1 for outputs in offered)
