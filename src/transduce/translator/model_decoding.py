"""The settings of the search that a model directory holds. They have limits, since the directory may be untrusted."""

from pydantic import ValidationError

from transduce.decoding.config import DecodingConfig
from transduce.errors import ModelError
from transduce.model_directory import ModelDirectory

# These limits hold for model directories; a caller may set larger values.
_LARGEST = {
    "beam": 100,
    "alternatives": 100,
    "length_penalty": 10,
    "extra_length": 1000,
    "minimum_length": 1000,
}


def decoding_of(model: ModelDirectory) -> DecodingConfig:
    """Return the model's settings of the search; refuse those that could take all memory or time."""
    try:
        decoding = DecodingConfig.model_validate(model.description.decoding)
    except ValidationError as fault:
        raise ModelError(
            f"{model.folder} asks for a search that this version cannot do: {fault.errors()[0]['msg']}"
        ) from None
    for name, largest in _LARGEST.items():
        if (asked := getattr(decoding, name) or 0) > largest:
            raise ModelError(
                f"{model.folder} asks for decoding.{name} = {asked:g}, which could take all memory or time; a model "
                f"may ask for {largest} at most. Lower it in its config.json, or give the larger value yourself."
            )
    return decoding
