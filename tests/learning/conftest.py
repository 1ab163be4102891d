"""A lesson of a tiny model with random weights: its laws need no good translations."""

from pathlib import Path
from typing import Any

import pytest
from tests.serving.conftest import write_model

from transduce.learning.lesson import lesson
from transduce.translator import Translator

TEXT = "the dog runs."


@pytest.fixture(scope="session")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    folder = write_model(tmp_path_factory.mktemp("learning") / "tiny", fondness_of_ending=4.0)
    return Translator.load(folder, precision="float32", threads=1)


@pytest.fixture(scope="session")
def content(translator: Translator) -> dict[str, Any]:
    return lesson(translator, TEXT, reference="der Hund läuft.")
