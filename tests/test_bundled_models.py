"""The model in the box: small, whole, honest about whose text it learned, and able to translate."""

from pathlib import Path

import pytest

import transduce
from transduce.model_directory import CARD, bundled_models, find_model, load_model

README = Path(__file__).parents[1] / "README.md"
LARGEST = 16_000_000
CREDITS = ("CC BY 2.0", "tatoeba.org", "manythings.org/anki")

each = pytest.mark.parametrize("name", sorted(bundled_models()))


def test_english_german_is_in_the_box() -> None:
    assert "en-de" in bundled_models()


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


@pytest.mark.parametrize(
    ("english", "german"),
    [
        ("Where is the nearest pharmacy?", {"apotheke", "nächste"}),
        ("I am hungry.", {"hunger", "hungrig"}),
        ("She reads a book.", {"liest", "buch"}),
    ],
)
def test_it_translates_everyday_sentences(english: str, german: set[str]) -> None:
    translator = transduce.load("en-de", threads=1)
    for shortlist in (False, True):
        translation = translator.translate(english, shortlist=shortlist).text
        assert german & set(translation.lower().rstrip("?.").split())
