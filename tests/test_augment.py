"""recipes/augment.py: what it adds to a corpus obeys the laws that a model should learn from it."""

import random
import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

from transduce.text.placeholders import protect

Pair = tuple[str, str]
AUGMENT = runpy.run_path(str(Path(__file__).parents[1] / "recipes" / "augment.py"))
PAIRS = [
    ("Tom has three dogs.", "Tom hat drei Hunde."),
    ("I saw Mary in 1999.", "Ich habe Mary 1999 gesehen."),
    ("Come here!", "Komm her!"),
    ("Is Boston large?", "Ist Boston groß?"),
]


@pytest.mark.parametrize("kind", ["with_placeholder", "with_tag", "with_frame", "with_addition"])
def test_both_sides_have_the_same_placeholders(kind: str) -> None:
    change: Callable[[Pair, random.Random], Pair | None] = AUGMENT[kind]
    chance = random.Random(1)
    made = [new for _ in range(500) for pair in PAIRS if (new := change(pair, chance)) is not None]
    assert len(made) > 500
    for source, target in made:
        assert sorted(protect(source).originals) == sorted(protect(target).originals), (source, target)


def test_a_number_is_the_same_digits_on_both_sides() -> None:
    chance = random.Random(1)
    made = [AUGMENT["with_number"](pair, chance) for pair in PAIRS[:2]]
    for (source, target), (old, _) in zip(made, PAIRS, strict=False):
        digits = ["".join(filter(str.isdigit, side)) for side in (source, target)]
        assert digits[0] == digits[1] != ""
        assert source != old


def test_a_typing_error_leaves_the_target_and_the_length_of_the_source_within_one() -> None:
    chance = random.Random(1)
    for pair in PAIRS:
        if (new := AUGMENT["with_typing_error"](pair, chance)) is not None:
            assert new[1] == pair[1]
            assert abs(len(new[0]) - len(pair[0])) <= 1


def test_the_same_seed_writes_the_same_pairs_and_another_seed_others() -> None:
    corpus = PAIRS * 50
    first, again, other = (AUGMENT["augment"](corpus, seed=seed, share=1.0) for seed in (1, 1, 2))
    assert first == again != other
    assert len(first) > len(corpus) // 4


def test_the_other_direction_changes_its_own_source_and_leaves_its_target() -> None:
    corpus = [(f"We know number {n}!", f"Wir kennen Nummer {n}!") for n in range(500)]
    reverse = AUGMENT["augment"](corpus, seed=1, share=1.0, reverse=True)
    english = {source for source, _ in corpus}
    wrongly_typed = {german for _, german in corpus}
    changed = [source for source, target in reverse if target in english and source not in wrongly_typed]
    assert len(changed) > 10
    assert all(source.lower().startswith("wir ") for source in changed)
