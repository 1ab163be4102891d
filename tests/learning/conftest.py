"""A lesson of the bundled model."""

from typing import Any

import pytest

from transduce.learning.lesson import lesson
from transduce.translator import Translator

TEXT = "I cannot find my keys."
REFERENCE = "Ich finde meine Schlüssel nicht."


@pytest.fixture(scope="session")
def translator() -> Translator:
    return Translator.load("en-de", precision="float32", threads=1)


@pytest.fixture(scope="session")
def content(translator: Translator) -> dict[str, Any]:
    return lesson(translator, TEXT, reference=REFERENCE)
