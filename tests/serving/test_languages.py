"""The languages that models serve, and detection of a text's language."""

from typing import Any

import pytest

from transduce.serving.languages import ServedLanguages, with_pivots
from transduce.serving.refusal import Refusal
from transduce.text.language_names import language_name

MODELS: dict[str, dict[str, Any]] = {
    "one": {"kind": "translation", "source": "en", "target": "de"},
    "writer": {"kind": "language-model", "source": None, "target": None},
    "other": {"kind": "translation", "source": "fr", "target": "de"},
    "later": {"kind": "translation", "source": "en", "target": "de"},
}
GERMAN = "Der Hund läuft über die Straße, und die Katze schläft in der Sonne."
ENGLISH = "The dog runs across the street, and the cat sleeps in the sun."
FRENCH = "Le chien traverse la rue en courant, et le chat dort au soleil."


def test_the_first_model_of_a_pair_serves_it() -> None:
    languages = ServedLanguages(MODELS)
    assert languages.model("en", "de") == "one"
    assert languages.codes == ["en", "fr", "de"]
    assert languages.targets("fr") == ["de"]


def test_pairs_that_no_model_serves_are_refused_in_libretranslate_s_words() -> None:
    languages = ServedLanguages(MODELS)
    with pytest.raises(Refusal, match="xx is not supported"):
        languages.model("xx", "de")
    with pytest.raises(
        Refusal, match=r"German \(de\)|French \(fr\) is not available as a target language from English"
    ):
        languages.model("en", "fr")


def test_a_language_between_serves_pairs_without_a_model() -> None:
    pairs = {"de-fr": "de-fr", "fr-nl": "fr-nl", "de-en": "de-en", "en-nl": "en-nl", "nl-de": "nl-de", "x": "und-fr"}
    sizes = {"kind": "translation", "parameters": 5, "longest_sentence": 9, "beam": 4}
    sizes |= {"is_calibrated": True, "aligns_tags": False}
    models = {name: dict(zip(("source", "target"), pair.split("-"), strict=True)) for name, pair in pairs.items()}
    models["y"] = {"source": "nl", "target": "und"}
    found = with_pivots({name: {**model, **sizes} for name, model in models.items()})
    assert list(found)[: len(models)] == list(models)
    assert {name: own["pivot"] for name, own in found.items() if own["pivot"]} == {
        "de-en+en-nl": "en",  # and not through French, whose models come first
        "en-nl+nl-de": "nl",
        "fr-nl+nl-de": "nl",
        "nl-de+de-fr": "de",
        "nl-de+de-en": "de",
    }
    assert found["nl-de+de-en"]["parameters"] == 10
    languages = ServedLanguages(found)
    assert languages.model("de", "nl") == "de-en+en-nl"
    assert languages.model("de", "fr") == "de-fr", "a model of its own comes first"
    with pytest.raises(Refusal, match="not available as a target language"):
        languages.model("fr", "en")  # it would take three models


@pytest.mark.parametrize(("text", "language"), [(GERMAN, "de"), (ENGLISH, "en"), (FRENCH, "fr")])
def test_detection_ranks_the_served_languages(text: str, language: str) -> None:
    best = ServedLanguages(MODELS).detect(text)[0]
    assert best.language == language
    assert best.confidence > 90


def test_a_language_that_is_not_served_gives_no_confidence() -> None:
    found = ServedLanguages({"one": MODELS["one"]}).detect(FRENCH)
    assert max(own.confidence for own in found) < 10


def test_a_detected_source_has_a_model_to_the_target() -> None:
    languages = ServedLanguages(MODELS)
    assert [own.language for own in languages.detect_source([ENGLISH, FRENCH, GERMAN], "de")] == ["en", "fr", "de"]
    with pytest.raises(Refusal, match="xx is not supported"):
        languages.detect_source([ENGLISH], "xx")
    assert [languages.likeliest_source(text, target="de") for text in (ENGLISH, FRENCH)] == ["en", "fr"]
    assert languages.likeliest_source(GERMAN, target="de") in ("en", "fr"), "the target itself is no source"
    assert languages.likeliest_source(FRENCH, target=None) == "fr"
    assert languages.likeliest_source(ENGLISH, target="xx") is None


def test_names() -> None:
    assert language_name("de-AT") == "German"
    assert language_name("tlh") == "tlh"
