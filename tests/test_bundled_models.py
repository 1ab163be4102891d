"""The models in the box: small, whole, honest about whose text they learned, and able to translate."""

from pathlib import Path

import pytest

import transduce
from transduce.model_directory import CARD, bundled_models, find_model, load_model

README = Path(__file__).parents[1] / "README.md"
LARGEST = 12_000_000
CREDITS = ("CC BY 2.0", "tatoeba.org", "manythings.org/anki")

EVERYDAY = {
    "en-de": {
        "Where is the nearest pharmacy?": {"apotheke", "nächste"},
        "I am hungry.": {"hunger", "hungrig"},
        "She reads a book.": {"liest", "buch"},
    },
    "de-en": {
        "Wo ist die nächste Apotheke?": {"pharmacy", "nearest", "drugstore"},
        "Ich habe Hunger.": {"hungry", "starving"},
        "Sie liest ein Buch.": {"reads", "reading", "book"},
    },
}
each = pytest.mark.parametrize("name", sorted(bundled_models()))


def test_english_german_is_in_the_box_and_the_first_that_a_server_offers() -> None:
    assert list(bundled_models())[:1] == ["en-de"]


@each
def test_it_is_whole_and_small_and_knows_its_languages(name: str) -> None:
    model = load_model(find_model(name))
    assert sum(path.stat().st_size for path in model.folder.iterdir()) <= LARGEST
    assert f"{model.description.languages.source}-{model.description.languages.target}" == name
    assert model.training_hashes() is not None
    assert model.shortlist() is not None


@each
def test_card_and_readme_name_those_who_wrote_the_text(name: str) -> None:
    card = (find_model(name) / CARD).read_text(encoding="utf-8")
    for page in (card, README.read_text(encoding="utf-8")):
        assert [credit for credit in CREDITS if credit not in page] == []
    assert "not good for" in card


@each
def test_it_translates_everyday_sentences(name: str) -> None:
    translator = transduce.load(name, threads=1)
    for shortlist in (False, True):
        for text, words in EVERYDAY[name].items():
            translation = translator.translate(text, shortlist=shortlist).text
            assert words & set(translation.lower().rstrip("?.").split()), translation
