import pytest
from pydantic import ValidationError

from transduce.data.config import DataConfig


@pytest.mark.parametrize("tag", ["en", "de", "pt-BR", "zh-Hant", "sr-Latn-RS", "yue"])
def test_language_tags_are_taken(tag: str) -> None:
    assert DataConfig(source_language=tag).source_language == tag


@pytest.mark.parametrize("tag", ["english language", "e", "en_US", "", "en-"])
def test_what_is_no_language_tag_is_refused(tag: str) -> None:
    with pytest.raises(ValidationError, match=r"is not a language tag\. Write a BCP 47 tag"):
        DataConfig(target_language=tag)


def test_one_corpus_needs_no_list() -> None:
    assert DataConfig.model_validate({"train": "a.tsv"}).train == ("a.tsv",)


def test_columns_are_names_or_places_from_one() -> None:
    config = DataConfig.model_validate({"source_column": 2, "target_column": "text"})
    assert (config.source_column, config.target_column) == (2, "text")
    with pytest.raises(ValidationError, match="greater than 0"):
        DataConfig.model_validate({"source_column": 0})


def test_every_setting_says_what_it_means() -> None:
    assert all(field.description for field in DataConfig.model_fields.values())
