import itertools

import pytest

from transduce.text.bpe_tokenizer import BpeTokenizer

SUBJECTS = ("The old baker", "My sister", "A young doctor", "Der alte Bäcker", "Meine Schwester", "Eine junge Ärztin")
VERBS = ("opens", "paints", "forgets", "öffnet", "streicht", "vergißt", "übersetzt")
OBJECTS = (
    "the green door.",
    "a letter from Kraków!",
    "die grüne Tür.",
    "einen Brief aus Köln, bitte.",
    "«три слова»",
    "日本語の本",
)


@pytest.fixture(scope="session")
def lines() -> list[str]:
    return [" ".join(words) for words in itertools.product(SUBJECTS, VERBS, OBJECTS)]


@pytest.fixture(scope="session")
def tokenizer(lines: list[str]) -> BpeTokenizer:
    return BpeTokenizer.learn(lines, vocabulary_size=500)
