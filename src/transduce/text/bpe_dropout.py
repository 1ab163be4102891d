"""BPE-dropout: a random segmentation of a word each time it occurs (Provilkov et al. 2020, algorithm 1).

Byte-pair encoding joins neighbouring pieces, always the pair of best rank, until no pair makes a piece. With dropout,
every step first drops each possible join with probability p and then makes the best remaining join. If it drops all
joins, the word is finished.

At one step, the number of joins dropped before the first kept join has a geometric distribution. The number of steps
before the first step that drops the best join ("disturbed" below) has one too. So we draw random numbers per disturbed
step, not per possible join, and for most words one number shows that no step is disturbed:

    P(k joins are passed over) = (1 - p) pᵏ            P(n steps go undisturbed) = (1 - p)ⁿ

Departure: a rank belongs to the piece that a join makes, as in sentencepiece, not to the pair that makes it.
"""

import math
from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from random import Random

LONGEST_CACHED_WORD = 64  # characters
CACHED_WORDS = 1 << 16
_FOREVER = 1 << 62


class Dice:
    """The random choices of one sentence; they depend on `dropout` and `key` alone."""

    def __init__(self, *, dropout: float, key: tuple[int, int, int]) -> None:
        if not 0.0 <= dropout <= 1.0:
            raise ValueError(f"dropout = {dropout} is not a probability. Choose from 0 to 1; 0.1 is usual.")
        first, second, third = (part & 0xFFFF_FFFF_FFFF_FFFF for part in key)
        # Python guarantees the same stream for the same integer in every version; the leading 1 keeps keys distinct.
        self._random = Random(1 << 192 | first << 128 | second << 64 | third).random
        self._log_survival = math.log1p(-dropout) if dropout < 1.0 else -math.inf
        self._log_dropout = math.log(dropout) if dropout > 0.0 else -math.inf

    def undisturbed_steps(self) -> int:
        """Return the number of steps before the first that drops the best join."""
        # The logarithm is between -37 and 0, because 1 - random() is never 0; a dropout below 1e-15 drops nothing.
        return int(math.log(1.0 - self._random()) / self._log_survival) if self._log_survival < -1e-15 else _FOREVER

    def passed_over(self) -> int:
        """Return the number of joins, the best one included, that are dropped before the first that is kept."""
        return 1 + int(math.log(1.0 - self._random()) / self._log_dropout) if self._log_dropout else _FOREVER


class Merger:
    """Joins the characters of a word into pieces; `ranks` holds every piece that a join can make, 0 the best."""

    def __init__(self, ranks: Mapping[str, int]) -> None:
        self._ranks = ranks
        self._best_of_short = lru_cache(CACHED_WORDS)(self._best)

    def sample(self, word: str, dice: Dice) -> list[str]:
        """Return pieces of `word` after the random choices of `dice`."""
        pieces, steps = (self._best_of_short if len(word) <= LONGEST_CACHED_WORD else self._best)(word)
        undisturbed = dice.undisturbed_steps()
        return pieces if undisturbed >= steps else self._merge(word, undisturbed, dice)[0]

    def best(self, word: str) -> list[str]:
        """Return the pieces of `word` without dropout."""
        return (self._best_of_short if len(word) <= LONGEST_CACHED_WORD else self._best)(word)[0]

    def _best(self, word: str) -> tuple[list[str], int]:
        return self._merge(word, _FOREVER, None)

    def _merge(self, word: str, undisturbed: int, dice: Dice | None) -> tuple[list[str], int]:
        """Return the pieces of `word` and the number of joins; the first `undisturbed` steps make the best join."""
        rank_of, impossible = self._ranks.get, len(self._ranks)
        pieces = list(word)
        ranks = [rank_of(left + right, impossible) for left, right in pairwise(pieces)]
        steps = 0
        while ranks:
            if undisturbed or dice is None:
                undisturbed -= 1
                chosen = ranks.index(min(ranks))  # of equals the leftmost
            else:
                undisturbed = dice.undisturbed_steps()
                passed_over = dice.passed_over()
                if passed_over >= len(ranks):
                    break
                chosen = sorted(range(len(ranks)), key=ranks.__getitem__)[passed_over]
            if ranks[chosen] == impossible:
                break
            steps += 1
            joined = pieces[chosen] + pieces.pop(chosen + 1)
            pieces[chosen] = joined
            del ranks[chosen]
            if chosen < len(ranks):
                ranks[chosen] = rank_of(joined + pieces[chosen + 1], impossible)
            if chosen:
                ranks[chosen - 1] = rank_of(pieces[chosen - 1] + joined, impossible)
        return pieces, steps
