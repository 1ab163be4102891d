"""BPE-dropout: the same word cut differently each time it is seen (Provilkov et al. 2020, algorithm 1).

Byte-pair encoding joins neighbouring pieces, always the pair of best rank, until no pair makes a piece. With dropout
each possible join is dropped with probability p before the best of the rest is done, anew at every step; when all are
dropped, the word is finished.

So the number of better joins passed over at one step is geometric: P(k) = (1 - p) pᵏ. One random number per step is
enough, and the number of steps before anything is passed over is geometric, too, so that one number settles most words:

    P(nothing is passed over in n steps) = (1 - p)ⁿ

Departure: the rank belongs to the joined piece, as in sentencepiece, not to the pair that makes it.
"""

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from heapq import heapify, heappop, heappush
from random import Random

CACHED_WORDS = 1 << 16


def keyed_generator(key: tuple[int, int, int]) -> Random:
    """Return a generator of random numbers that depends on `key` alone."""
    first, second, third = (part & 0xFFFF_FFFF_FFFF_FFFF for part in key)
    # The leading one keeps keys of different sizes apart; Python promises this stream for good.
    return Random(1 << 192 | first << 128 | second << 64 | third)


class Merger:
    """Joins the characters of a word into pieces, by the rank of each piece that can arise (0 is best)."""

    def __init__(self, ranks: Mapping[str, int]) -> None:
        self._ranks = ranks
        self._best = lru_cache(CACHED_WORDS)(self._merge_all)

    def merge(self, word: str) -> tuple[str, ...]:
        """Return the pieces of `word` with nothing dropped."""
        return self._best(word)[0]

    def sample(self, word: str, *, dropout: float, generator: Random) -> tuple[str, ...]:
        """Return pieces of `word`, each possible join dropped with probability `dropout` at every step."""
        pieces, steps = self._best(word)
        undisturbed = _geometric(generator.random(), 1.0 - dropout)
        if undisturbed >= steps:
            return pieces
        # At this step the best is passed over, and whatever else is then passed over before a join survives.
        passed = [0] * undisturbed + [1 + _geometric(generator.random(), dropout)]
        passed.reverse()

        def passed_over() -> int:
            return passed.pop() if passed else _geometric(generator.random(), dropout)

        return self._merge(word, passed_over)[0]

    def _merge_all(self, word: str) -> tuple[tuple[str, ...], int]:
        return self._merge(word, lambda: 0)

    def _merge(self, word: str, passed_over: Callable[[], int]) -> tuple[tuple[str, ...], int]:
        """Return the pieces of `word` and the number of joins; `passed_over` says how many to pass over at each."""
        ranks = self._ranks
        pieces = list(word)  # a piece stands where it begins; "" where it has been joined to the left
        after = list(range(1, len(word) + 1))
        before = list(range(-1, len(word) - 1))
        end = len(word)
        agenda = [
            (ranks[joined], left, joined) for left in range(end - 1) if (joined := word[left : left + 2]) in ranks
        ]
        heapify(agenda)
        steps = 0
        while agenda:
            skipped: list[tuple[int, int, str]] = []
            to_pass = passed_over()
            chosen = None
            while agenda:
                candidate = heappop(agenda)
                _, left, joined = candidate
                right = after[left]
                if not pieces[left] or right == end or pieces[left] + pieces[right] != joined:
                    continue  # one of the two has been joined to something else
                if len(skipped) == to_pass:
                    chosen = candidate
                    break
                skipped.append(candidate)
            if chosen is None:
                break
            steps += 1
            pieces[left], pieces[right] = joined, ""
            following = after[left] = after[right]
            if following < end:
                before[following] = left
                wider = joined + pieces[following]
                if wider in ranks:
                    heappush(agenda, (ranks[wider], left, wider))
            previous = before[left]
            if previous >= 0:
                wider = pieces[previous] + joined
                if wider in ranks:
                    heappush(agenda, (ranks[wider], previous, wider))
            for candidate in skipped:
                heappush(agenda, candidate)
        return tuple(piece for piece in pieces if piece), steps


def _geometric(uniform: float, chance: float) -> int:
    """Return how many times in a row something of this `chance` happens, for a number uniform in [0, 1)."""
    if chance <= 0.0:
        return 0
    if chance >= 1.0:
        return 1 << 62
    return int(math.log(1.0 - uniform) / math.log(chance))
