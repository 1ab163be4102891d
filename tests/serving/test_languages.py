"""Which languages are served and which a text is in."""

import pytest

from transduce.serving.languages import Languages
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
    languages = Languages(MODELS)
    assert languages.model("en", "de") == "one"
    assert languages.all == ["en", "fr", "de"]
    assert languages.targets("fr") == ["de"]


def test_pairs_that_no_model_serves_are_refused_in_libretranslate_s_words() -> None:
    languages = Languages(MODELS)
    with pytest.raises(Refusal, match="xx is not supported"):
        languages.model("xx", "de")
    with pytest.raises(
        Refusal, match=r"German \(de\)|French \(fr\) is not available as a target language from English"
    ):
        languages.model("en", "fr")


@pytest.mark.parametrize(("text", "language"), [(GERMAN, "de"), (ENGLISH, "en"), (FRENCH, "fr")])
def test_detection_ranks_what_is_served(text: str, language: str) -> None:
    best = Languages(MODELS).detect(text)[0]
    assert best.language == language
    assert best.confidence > 90


def test_a_language_that_is_not_served_gives_no_confidence() -> None:
    found = Languages({"one": MODELS["one"]}).detect(FRENCH)
    assert max(own.confidence for own in found) < 10


def test_a_source_is_one_that_leads_to_the_target() -> None:
    languages = Languages(MODELS)
    assert [own.language for own in languages.detect_source([ENGLISH, FRENCH, GERMAN], "de")] == ["en", "fr", "de"]
    with pytest.raises(Refusal, match="xx is not supported"):
        languages.detect_source([ENGLISH], "xx")


def test_names() -> None:
    assert language_name("de-AT") == "German"
    assert language_name("tlh") == "tlh"
