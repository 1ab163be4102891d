"""Sentences are dealt to threads in batches, and come back in the order in which they were given."""

import threading
from typing import Any

import pytest

from transduce.decoding.hypothesis import Hypothesis
from transduce.text.placeholders import Protected
from transduce.translator.searching import BATCH_TOKENS, Searcher, Sentence

LENGTHS = [3 + 7 * number % 23 for number in range(160)]


def dealt(threads: int, *, count: int = len(LENGTHS), rows: int = 1) -> list[list[int]]:
    """Return the batches in which so many sentences are searched."""
    nowhere: Any = None
    sentences = [Sentence(n, 0, Protected("", ()), tuple(range(LENGTHS[n])), key=n) for n in range(count)]
    batches, lock = [], threading.Lock()

    def searched(batch: list[int]) -> list[list[Hypothesis]]:
        with lock:
            batches.append(batch)
        return [[Hypothesis(sentences[n].ids, 0.0, float(n), is_finished=True)] for n in batch]

    found = Searcher(nowhere, nowhere, threads=threads)._in_batches(sentences, searched, rows=rows)
    assert [own[0].score for own in found] == list(range(count))
    return batches


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_every_thread_has_a_batch_though_one_would_hold_them_all(threads: int) -> None:
    assert len(dealt(1)) == 1
    batches = dealt(threads)
    assert threads <= len(batches) <= 2 * threads + 1
    work = [sum(LENGTHS[n] for n in batch) for batch in batches]
    assert max(work) < sum(LENGTHS) * 0.8 / (threads - 1)


def test_a_few_words_are_not_torn_apart() -> None:
    assert len(dealt(2, count=9)) == 1


def test_a_batch_never_grows_beyond_its_bound() -> None:
    assert all(len(batch) * max(LENGTHS[n] for n in batch) * 40 <= BATCH_TOKENS for batch in dealt(2, rows=40))
