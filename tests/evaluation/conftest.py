"""Text to score: sentences with the things that make protocols differ, and translations of uneven quality."""

import random
from pathlib import Path

import pytest

SENTENCES = (
    "The quick brown fox jumps over the lazy dog.",
    "“Well-known” problems aren't always easy, are they?",
    "It cost $1,234.50 (about 1.100,00 €) in mid-2016!",
    "Mr. Smith's e-mail: smith@example.org & co.",
    "Zwei junge weiße Männer sind im Freien in der Nähe vieler Büsche.",
    "Der so-genannte „Rich-Text“-Editor öffnet sich nicht…",
    "A man in an orange hat starring at something.",
    "这是一个测试。",
    "Одна собака бежит по снегу, другая — спит.",
    "",
    "yes",
    "a-b-c and x - y -- z",
)


@pytest.fixture
def references() -> list[str]:
    return [sentence for sentence in SENTENCES for _ in range(4)]


@pytest.fixture
def hypotheses(references: list[str]) -> list[str]:
    return spoiled(references, seed=1, share=0.1)


@pytest.fixture
def worse_hypotheses(references: list[str]) -> list[str]:
    return spoiled(references, seed=2, share=0.35)


def spoiled(sentences: list[str], *, seed: int, share: float) -> list[str]:
    """Drop, swap and lower-case some words of each sentence."""
    chance = random.Random(seed)
    result = []
    for sentence in sentences:
        words = [word for word in sentence.split() if chance.random() > share]
        if len(words) > 3 and chance.random() < share:
            words[1], words[2] = words[2], words[1].lower()
        result.append(" ".join(words))
    return result


@pytest.fixture
def shared_data() -> Path:
    """Real corpora that may lie beside the checkout; nothing in the product depends on them."""
    for parent in Path(__file__).resolve().parents:
        if (parent.parent / "shared" / "data").is_dir():
            return parent.parent / "shared" / "data"
    pytest.skip("the corpora are not at ../shared/data")
