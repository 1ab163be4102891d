"""The languages that models serve, and detection of a text's language."""

import pytest

from transduce.serving.languages import ServedLanguages
from transduce.serving.refusal import Refusal
from transduce.text.language_names import language_name

MODELS = {
    "one": {"source": "en", "target": "de"},
    "other": {"source": "fr", "target": "de"},
    "later": {"source": "en", "target": "de"},
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
