"""The tokens of target languages, by the names that people give them."""

import pytest

from transduce.errors import ModelError
from transduce.importing.target_tags import other_targets, target_tag

THREE = [">>est<<", ">>spa<<", ">>jav<<", ">>jpn<<", ">>deu<<", ">>cmn_Hans<<", ">>cmn_Hant<<", ">>ces<<"]
TWO = [">>fr<<", ">>fr_CA<<", ">>pt_br<<", ">>pt<<"]


@pytest.mark.parametrize(
    ("tags", "wanted", "expected"),
    [
        (THREE, "es", ">>spa<<"),  # not Estonian
        (THREE, "et", ">>est<<"),
        (THREE, "ja", ">>jpn<<"),  # not Javanese
        (THREE, "cs", ">>ces<<"),
        (THREE, "de", ">>deu<<"),
        (THREE, "deu", ">>deu<<"),
        (THREE, "de-AT", ">>deu<<"),
        (THREE, "zh-Hant", ">>cmn_Hant<<"),
        (THREE, "cmn_Hans", ">>cmn_Hans<<"),
        (TWO, "fr", ">>fr<<"),
        (TWO, "fra", ">>fr<<"),
        (TWO, "pt-BR", ">>pt_br<<"),
        (["\u2581a"], "fr", None),
    ],
)
def test_a_language_finds_its_token(tags: list[str], wanted: str, expected: str | None) -> None:
    assert target_tag([*tags, "<pad>"], wanted) == expected


@pytest.mark.parametrize(("wanted", "count"), [("zh", 2), ("e", 0), ("fr", 0), ("zh-TW", 0)])
def test_a_language_that_fits_no_token_or_several_is_refused(wanted: str, count: int) -> None:
    with pytest.raises(ModelError, match=f"{wanted} fits {count} of them"):
        target_tag(THREE, wanted)


def test_each_other_language_has_a_name_of_its_own() -> None:
    found = other_targets([*THREE, ">>zho_Hans<<"], "de")
    assert found["es"] == ">>spa<<"
    assert (found["zh-Hans"], found["zho_Hans"]) == (">>cmn_Hans<<", ">>zho_Hans<<")
    assert len(found) == len(THREE)
