import itertools
from collections import Counter

import pytest

from transduce.text.bpe_dropout import Dice, Merger

RANKS = {"ab": 0, "bc": 1, "abc": 2, "aa": 3, "ca": 4, "bca": 5, "aab": 6, "abca": 7}


def exact_distribution(pieces: tuple[str, ...], dropout: float) -> dict[tuple[str, ...], float]:
    """Algorithm 1 of Provilkov et al., taken literally: every subset of the possible joins is dropped at each step."""
    joins = [
        (RANKS[left + right], at)
        for at, (left, right) in enumerate(itertools.pairwise(pieces))
        if left + right in RANKS
    ]
    ends: Counter[tuple[str, ...]] = Counter()
    for dropped in itertools.product((True, False), repeat=len(joins)):
        chance = 1.0
        for is_dropped in dropped:
            chance *= dropout if is_dropped else 1.0 - dropout
        rest = [join for join, is_dropped in zip(joins, dropped, strict=True) if not is_dropped]
        if not rest:
            ends[pieces] += chance  # type: ignore[assignment]
            continue
        at = min(rest)[1]
        after = (*pieces[:at], pieces[at] + pieces[at + 1], *pieces[at + 2 :])
        for end, share in exact_distribution(after, dropout).items():
            ends[end] += chance * share  # type: ignore[assignment]
    return dict(ends)


@pytest.mark.parametrize("dropout", [0.0, 0.1, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("word", ["abc", "abcaab", "xaabca"])
def test_samples_follow_the_distribution_of_the_paper(word: str, dropout: float) -> None:
    merger, trials = Merger(RANKS), 4000
    seen = Counter(tuple(merger.sample(word, Dice(dropout=dropout, key=(7, 0, n)))) for n in range(trials))
    expected = exact_distribution(tuple(word), dropout)
    assert sum(expected.values()) == pytest.approx(1.0)
    for pieces in set(seen) | set(expected):
        share = expected.get(pieces, 0.0)
        # Five standard deviations, and a few rare events more. The keys are fixed, so the test never flickers.
        assert seen[pieces] == pytest.approx(
            trials * share, abs=5 * (trials * share * (1 - share)) ** 0.5 + 2 * (share > 0)
        )


def test_joins_are_done_in_order_of_rank_and_then_from_the_left() -> None:
    merger, nothing_dropped = Merger({"aa": 0, "aab": 1}), Dice(dropout=0.0, key=(0, 0, 0))
    assert merger.sample("aaab", nothing_dropped) == ["aa", "a", "b"]
    assert merger.sample("aab", nothing_dropped) == ["aab"]


def test_the_dice_depend_on_every_part_of_the_key_and_on_nothing_else() -> None:
    def throw(*key: int) -> list[int]:
        dice = Dice(dropout=0.3, key=(key[0], key[1], key[2]))
        return [dice.undisturbed_steps() for _ in range(40)]

    keys = [(1, 2, 3), (1, 3, 2), (2, 1, 3), (-1, 2, 3), (1, 2, 3 + 2**32), (0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
    throws = {key: tuple(throw(*key)) for key in keys}
    assert len(set(throws.values())) == len(keys)
    assert all(tuple(throw(*key)) == throws[key] for key in reversed(keys))


def test_neighbouring_sentences_do_not_have_related_numbers() -> None:
    first = [Dice(dropout=0.5, key=(1, 1, sentence)).undisturbed_steps() for sentence in range(4000)]
    agreements = sum(here == after for here, after in itertools.pairwise(first))
    # P(equal) = Σ (1/2)²⁽ᵏ⁺¹⁾ = 1/3
    assert agreements / 3999 == pytest.approx(1 / 3, abs=0.04)


@pytest.mark.parametrize("dropout", [-0.1, 1.1, float("nan")])
def test_a_dropout_that_is_no_probability_is_refused(dropout: float) -> None:
    with pytest.raises(ValueError, match="not a probability"):
        Dice(dropout=dropout, key=(0, 0, 0))
