import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from transduce.data.batching import BatchPlan, Sentences

Lengths = NDArray[np.int64]


def captions(pairs: int, seed: int = 0) -> tuple[Lengths, Lengths]:
    """Lengths like those of image captions: about 15 tokens, the target a little off the source."""
    random = np.random.default_rng(seed)
    source = np.clip(random.normal(15, 5, pairs), 2, None).astype(np.int64)
    target = np.clip(source + random.normal(0, 2.8, pairs), 2, None).astype(np.int64)
    return source, target


def plan(pairs: int = 997, *, tokens_per_step: int = 509, seed: int = 3) -> BatchPlan:
    return BatchPlan(*captions(pairs), tokens_per_step=tokens_per_step, seed=seed)


def as_sets(steps: list[Sentences]) -> set[frozenset[int]]:
    return {frozenset(step.tolist()) for step in steps}


lengths = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=120)


@given(lengths, st.integers(1, 200), st.integers(0, 2**40), st.integers(0, 5))
def test_every_sentence_is_in_exactly_one_step_and_no_step_exceeds_its_budget(
    pairs: list[tuple[int, int]], budget: int, seed: int, epoch: int
) -> None:
    source, target = np.array(pairs).T
    steps = BatchPlan(source, target, tokens_per_step=budget, seed=seed).epoch(epoch)
    assert sorted(np.concatenate(steps).tolist()) == list(range(len(pairs)))
    for step in steps:
        assert len(step) == 1 or len(step) * max(source[step].max(), target[step].max()) <= budget


@given(lengths, st.integers(1, 7), st.one_of(st.none(), st.integers(1, 90)))
def test_ranks_and_micro_batches_share_a_step_without_changing_its_set(
    pairs: list[tuple[int, int]], ranks: int, micro_batch_tokens: int | None
) -> None:
    source, target = np.array(pairs).T
    batches = BatchPlan(source, target, tokens_per_step=97, seed=5)
    for step in batches.epoch(0):
        shares = [
            batches.deal(step, rank=rank, ranks=ranks, micro_batch_tokens=micro_batch_tokens) for rank in range(ranks)
        ]
        assert sorted(np.concatenate([b for share in shares for b in share]).tolist()) == sorted(step.tolist())
        for batch in (b for share in shares for b in share):
            assert len(batch) > 0
            longest = max(source[batch].max(), target[batch].max())
            assert micro_batch_tokens is None or len(batch) == 1 or len(batch) * longest <= micro_batch_tokens


def test_a_rank_may_be_left_without_a_share() -> None:
    batches = BatchPlan(np.array([5]), np.array([7]), tokens_per_step=11, seed=1)
    (step,) = batches.epoch(0)
    assert [len(batches.deal(step, rank=rank, ranks=3)) for rank in range(3)] == [1, 0, 0]


def test_shares_of_a_step_weigh_nearly_the_same() -> None:
    batches = plan(9973, tokens_per_step=8191)
    for step in batches.epoch(0):
        longer = np.maximum(batches.source_lengths, batches.target_lengths)
        weights = [longer[batches.deal(step, rank=rank, ranks=2)[0]].sum() for rank in range(2)]
        assert abs(weights[0] - weights[1]) <= longer[step].max()


def test_an_epoch_depends_on_seed_and_epoch_alone() -> None:
    steps, again = plan().epoch(2), plan().epoch(2)
    assert [step.tolist() for step in steps] == [step.tolist() for step in again]
    assert as_sets(plan(seed=4).epoch(2)) != as_sets(steps)


def test_an_epoch_equals_the_same_plan_written_with_plain_python_loops() -> None:
    source, target, budget = *captions(211), 89
    words = np.random.PCG64(np.random.SeedSequence([3, 1]))
    longer = [max(s, t) + (word % 4 == 0) for s, t, word in zip(source, target, words.random_raw(211), strict=True)]
    ties = words.random_raw(211)
    order = sorted(range(211), key=lambda n: (longer[n], ties[n]))
    limit = budget // 2 + int(words.random_raw(1)[0]) % (budget // 2 + 1)
    steps: list[list[int]] = [[]]
    for n in order:
        grown = [*steps[-1], n]
        if steps[-1] and len(grown) * max(max(source[m], target[m]) for m in grown) > limit:
            steps.append([n])
            limit = budget
        else:
            steps[-1] = grown
    shuffled = [step for _, step in sorted(zip(words.random_raw(len(steps)), steps, strict=True))]
    planned = BatchPlan(source, target, tokens_per_step=budget, seed=3).epoch(1)
    assert [step.tolist() for step in planned] == shuffled


def test_an_epoch_is_the_same_on_every_platform() -> None:
    # A constant because only a constant can be compared from one machine to another.
    source, target = np.array([3, 5, 4, 9, 3, 6, 5, 4, 8, 2, 7]), np.array([4, 5, 3, 7, 3, 6, 6, 5, 9, 2, 5])
    steps = BatchPlan(source, target, tokens_per_step=20, seed=2017).epoch(1)
    assert [step.tolist() for step in steps] == [[5, 10], [9, 4, 2], [7, 1, 0], [6, 8], [3]]


def test_composition_changes_with_the_epoch_and_not_only_the_order() -> None:
    batches = plan(29_989, tokens_per_step=4096)
    first, second = batches.epoch(0), batches.epoch(1)
    assert not as_sets(first) & as_sets(second)
    step_of = np.empty(29_989, dtype=np.int64)
    for place, step in enumerate(second):
        step_of[step] = place
    together = possible = 0
    for step in first:
        _, counts = np.unique(step_of[step], return_counts=True)
        together += int((counts * (counts - 1)).sum())
        possible += len(step) * (len(step) - 1)
    assert together / possible < 0.4, "two sentences that met should mostly not meet again in the next epoch"


def test_the_order_of_steps_is_shuffled_and_not_by_length() -> None:
    batches = plan(9973, tokens_per_step=1021)
    longest = np.array([batches.source_lengths[step].max() for step in batches.epoch(0)])
    assert abs(np.corrcoef(longest, np.arange(len(longest)))[0, 1]) < 0.2


def test_a_step_holds_pairs_of_many_length_ratios() -> None:
    batches = plan(29_000, tokens_per_step=4096)
    difference = batches.source_lengths - batches.target_lengths
    spread = np.mean([difference[step].std() for step in batches.epoch(0)])
    assert spread > 0.8 * difference.std(), "a step should be as mixed as its lengths allow"


def test_padding_of_captions_stays_below_a_tenth() -> None:
    batches = plan(29_000, tokens_per_step=4096)
    for epoch in range(3):
        assert batches.padding(batches.epoch(epoch)).share < 0.1


def test_micro_batches_pad_less_than_the_step_they_come_from() -> None:
    batches = plan(29_000, tokens_per_step=25_000)
    steps = batches.epoch(0)
    dealt = [batch for step in steps for batch in batches.deal(step, micro_batch_tokens=4096)]
    assert batches.padding(dealt).share < 0.7 * batches.padding(steps).share


def test_padding_counts_both_sides() -> None:
    batches = BatchPlan(np.array([2, 3]), np.array([5, 1]), tokens_per_step=100, seed=1)
    padding = batches.padding([np.array([0, 1])])
    assert (padding.tokens, padding.computed) == (11, 2 * (3 + 5))
    assert padding.share == pytest.approx(5 / 16)


def test_a_sentence_beyond_the_budget_is_a_step_of_its_own() -> None:
    steps = BatchPlan(np.array([3, 50, 4]), np.array([4, 9, 3]), tokens_per_step=10, seed=1).epoch(0)
    assert frozenset([1]) in as_sets(steps)


def test_the_largest_batch_is_the_one_with_most_padded_tokens() -> None:
    batches = BatchPlan(np.array([3, 9, 4, 4]), np.array([4, 2, 5, 5]), tokens_per_step=100, seed=1)
    assert batches.largest([np.array([0]), np.array([1]), np.array([2, 3])]).tolist() == [2, 3]


@pytest.mark.slow
def test_five_million_sentences_are_planned_within_half_a_minute() -> None:
    import time

    batches = plan(5_000_000, tokens_per_step=4096)
    start = time.process_time()
    steps = batches.epoch(0)
    assert sum(map(len, steps)) == 5_000_000
    assert time.process_time() - start < 30
