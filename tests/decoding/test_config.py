from typing import get_type_hints

import pytest
from pydantic import ValidationError

from transduce.decoding.config import DecodingConfig, DecodingOptions
from transduce.experiment import meanings_of


def test_the_options_are_the_fields_with_their_types() -> None:
    hints = get_type_hints(DecodingConfig)
    assert get_type_hints(DecodingOptions) == {name: hints[name] for name in DecodingConfig.model_fields}


def test_the_defaults_are_those_of_the_paper() -> None:
    config = DecodingConfig()
    assert (config.beam, config.length_penalty, config.extra_length) == (4, 0.6, 50)
    assert not config.sample


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"beam": 4, "alternatives": 5}, r"alternatives = 5 is above beam = 4.*Set beam to 5"),
        ({"minimum_length": 9, "maximum_length": 8}, r"minimum_length = 9 is above maximum_length = 8"),
        ({"temperature": 0.5}, r"Set sample = true"),
        ({"top_k": 5}, r"Set sample = true"),
        ({"top_p": 0.5}, r"Set sample = true"),
        ({"beam": 0}, "greater than 0"),
        ({"length_penalty": -0.1}, "greater than or equal to 0"),
        ({"sample": True, "top_p": 0.0}, "greater than 0"),
        ({"sample": True, "temperature": 0.0}, "greater than 0"),
        ({"seed": 2**64}, "less than"),
        ({"beams": 4}, "Extra inputs"),
    ],
)
def test_what_cannot_be_is_refused_with_a_remedy(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        DecodingConfig.model_validate(settings)


def test_any_number_of_samples_may_be_asked_for() -> None:
    assert DecodingConfig(sample=True, beam=1, alternatives=9, top_k=3, temperature=0.7).alternatives == 9


def test_every_setting_says_what_it_means() -> None:
    assert set(DecodingConfig.model_fields) == set(meanings_of(DecodingConfig))
