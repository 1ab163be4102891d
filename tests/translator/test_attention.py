"""`Translator.attention`: the translation that search gave, or one that the user forces, with what translated it."""

from pathlib import Path

import pytest
import torch

from transduce.core import has_core
from transduce.errors import ConfigError, DataError, ModelError
from transduce.model import ModelConfig, Transformer
from transduce.model_directory import Description, Languages, load_model, save_model
from transduce.networks.network import Network
from transduce.text.bpe_tokenizer import BpeTokenizer
from transduce.text.tokenizer_pair import TokenizerPair
from transduce.translator import Translator

LINES = ["the dog runs.", "a cat sleeps here", "der Hund läuft.", "eine Katze schläft hier"] * 3


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two models of one tokenizer."""
    tokenizer = BpeTokenizer.learn(LINES, vocabulary_size=400)
    config = ModelConfig(vocabulary_size=tokenizer.vocabulary_size, d_model=22, heads=11, d_ff=13, layers=2, dropout=0)
    description = Description(
        architecture=config,
        languages=Languages(source="en", target="de"),
        longest_sentence=20,
        decoding={"extra_length": 3, "keep_form": False},
    )
    found = []
    for seed in (3, 4):
        torch.manual_seed(seed)
        folder = tmp_path_factory.mktemp("models") / f"model{seed}"
        parameters = {name: parameter.detach() for name, parameter in Transformer(config).named_parameters()}
        save_model(folder, description, parameters, tokenizers=TokenizerPair.shared(tokenizer), card="")
        found.append(folder)
    return found


@pytest.fixture(scope="module")
def translator(folders: list[Path]) -> Translator:
    return Translator.load(folders[0], precision="float32", threads=1)


def test_what_is_shown_is_what_search_gave(translator: Translator) -> None:
    for text in ("the dog runs.", "see {name}: <b>a cat</b> 100%"):
        report = translator.attention(text, beam=3)
        translation = translator.translate(text, beam=3)
        assert (report.source.text, report.source.language) == (text, "en")
        assert report.target.text == translation.text
        if "<b>" not in text:  # tags are put in after the search
            assert sum(t.log_probability or 0 for t in report.target.tokens) == pytest.approx(
                translation.alternatives[0].log_probability, abs=1e-3
            )
        assert not report.translated.is_forced
        assert report.largest_difference < 1e-4
        assert report.blocks["cross"].weights_LHQK.shape[2:] == (len(report.target.ids), len(report.source.ids))


@pytest.mark.skipif(not has_core(), reason="the C++ core was not built")
def test_numbers_are_those_of_float32_whatever_translates(translator: Translator, folders: list[Path]) -> None:
    other = Translator.load(folders[0], precision="int8", threads=1)
    report = other.attention("the dog runs.", target="eine Katze")
    assert report.translated.precision == "int8"
    source, target = report.source.ids, report.target.ids
    found, expected = (
        each.head_numbers(source=source, target=target, stack="cross", layer=1, head=3) for each in (other, translator)
    )
    assert found == expected


def test_a_forced_translation_has_the_likelihood_that_likelihood_gives(translator: Translator) -> None:
    report = translator.attention("the dog runs.", target="eine Katze läuft")
    (expected,) = translator.likelihood([("the dog runs.", "eine Katze läuft")])
    assert report.translated.is_forced
    assert report.target.text == "eine Katze läuft"
    assert [t.log_probability for t in report.target.tokens] == pytest.approx(expected.log_probabilities, abs=1e-5)


def test_placeholders_of_a_forced_translation_are_those_of_the_source(translator: Translator) -> None:
    report = translator.attention("a {a} or {b}", target="{b} {a}")
    ids = {token.text: token.id for token in report.source.tokens}
    assert [(t.text, t.id) for t in report.target.tokens if t.text.startswith("{")] == [
        ("{b}", ids["{b}"]),
        ("{a}", ids["{a}"]),
    ]


def test_the_distance_from_bfloat16_is_told(folders: list[Path]) -> None:
    coarse = Translator.load(folders[0], precision="bf16", threads=1)
    report = coarse.attention("the dog runs.", target="der Hund läuft.")
    assert report.translated.precision == "bf16"
    assert 1e-5 < report.largest_difference < 0.5
    (asked,) = coarse.likelihood([("the dog runs.", "der Hund läuft.")])
    assert report.translated.log_probabilities == pytest.approx(asked.log_probabilities, abs=0.05)
    fine = Translator.load(folders[0], threads=1).attention("the dog runs.", target="der Hund läuft.")
    assert torch.equal(report.blocks["cross"].weights_LHQK, fine.blocks["cross"].weights_LHQK)


def test_an_ensemble_shows_its_first_model_and_says_so(folders: list[Path]) -> None:
    both = Translator([load_model(folder) for folder in folders], threads=1)
    report = both.attention("the dog runs.", target="der Hund läuft.")
    alone = [Translator.load(f, threads=1).attention("the dog runs.", target="der Hund läuft.") for f in folders]
    assert report.translated.models == 2
    assert torch.equal(report.blocks["cross"].weights_LHQK, alone[0].blocks["cross"].weights_LHQK)
    means = [
        torch.tensor([a, b]).exp().mean().log().item()
        for a, b in zip(*(one.translated.log_probabilities for one in alone), strict=True)
    ]
    assert report.translated.log_probabilities == pytest.approx(means, abs=1e-4)


def test_numbers_come_when_asked_for(translator: Translator) -> None:
    plain, full = (translator.attention("a cat", numbers=numbers).to_entry() for numbers in (False, True))
    assert all(block.numbers is None for block in plain.blocks.values())
    assert all(block.numbers is not None for block in full.blocks.values())


def test_a_network_without_attention_has_nothing_to_show(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Network, "attention", lambda *_: {})
    with pytest.raises(ModelError, match=r"\(kind transformer\) has no attention to show"):
        translator.attention("a cat")


def test_what_is_too_long_or_unknown_is_refused(translator: Translator) -> None:
    with pytest.raises(DataError, match="Look at one sentence at a time"):
        translator.attention("the dog runs. " * 20, target="der Hund läuft.")
    with pytest.raises(DataError, match="at most 32 can be shown at once"):
        translator.attention_by_sentence("the dog runs. " * 33)
    with pytest.raises(DataError, match="this model has seen at most 20"):
        translator.attention("a cat", target="der Hund läuft. " * 20)
    with pytest.raises(ConfigError, match="beams"):
        translator.attention("a cat", beams=3)  # type: ignore[call-arg]
    for nothing in ("", " \n"):
        with pytest.raises(DataError, match="the text is empty"):
            translator.attention(nothing)
        with pytest.raises(DataError, match="the text is empty"):
            translator.attention_by_sentence(nothing)


def test_token_ids_of_a_translation_are_shown_as_they_are(translator: Translator) -> None:
    text = "  the dog runs. A {x} sleeps here.\n"
    translation = translator.translate(text, beam=3, alternatives=3)
    for alternative in translation.alternatives:
        assert [text[own.start : own.end] for own in alternative.sentences] == ["the dog runs.", "A {x} sleeps here."]
        for own in alternative.sentences:
            report = translator.attention(text[own.start : own.end], target=own.tokens)
            assert report.target.ids == list(own.tokens)
            assert not report.translated.is_forced
            assert report.target.text in alternative.text
        written = [token for own in alternative.sentences for token in own.tokens]
        assert [translator.tokenizers.target.piece(token) for token in written] == list(alternative.tokens)
    forced = translator.attention("the dog runs.", target=translation.alternatives[0].text).target.ids
    assert forced != list(translation.alternatives[0].sentences[0].tokens), "else the test shows nothing"


def test_no_sentence_of_a_text_is_dropped(translator: Translator) -> None:
    text = "the dog runs. A cat sleeps here."
    with pytest.raises(DataError, match="Choose it with sentence=1 to 2"):
        translator.attention(text)
    with pytest.raises(DataError, match="There is no sentence 3: the text has 2 sentences, counted from 1"):
        translator.attention(text, sentence=3)
    reports = translator.attention_by_sentence(text, beam=3)
    assert [report.source.text for report in reports] == ["the dog runs.", "A cat sleeps here."]
    assert " ".join(report.target.text for report in reports) == translator.translate(text, beam=3).text
    second = translator.attention(text, sentence=2, beam=3)
    assert second.to_dictionary() == reports[1].to_dictionary()
    parts = translator.sentences_of("the dog " * 30)
    assert len(parts) > 1
    assert "".join(parts).replace(" ", "") == "thedog" * 30, "a sentence that is too long is cut as for translation"
