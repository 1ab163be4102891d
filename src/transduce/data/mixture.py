"""Which pairs an epoch holds if a run has several corpora (`data.corpora`), each with a weight.

    pairs of corpus i in an epoch = max(1, round(weight_i · size_i))

The pairs of a corpus follow each other in an endless sequence of rounds. A round is every pair once, in an order that
depends on (seed, corpus, round) alone, and an epoch takes the next pairs of the sequence. So a corpus of weight 0.25 is
read whole in four epochs, one of weight 2 twice in each, and any epoch can be computed without those before it. The
number of ranks has no influence.
"""

from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from transduce.data.batching import Noise, Sentences
from transduce.data.config import DataConfig
from transduce.data.token_store import TokenStore

_STREAM = 0x6D6978  # keeps the random words of a mixture apart from those of a batch plan


def corpus_sizes(config: DataConfig, store: TokenStore) -> tuple[int, ...]:
    """Return how many pairs the training store holds of each of `config.training_corpora`."""
    of_files = [*store.notes["pairs_of_corpora"], *([0] * len(config.names("train")))]
    ends = list(accumulate(len(corpus.files) for corpus in config.training_corpora))
    return tuple(sum(of_files[start:end]) for start, end in zip([0, *ends], ends, strict=False))


@dataclass(frozen=True)
class Mixture:
    """The corpora of a token store, in their order in it, and how many pairs of each an epoch holds."""

    sizes: tuple[int, ...]
    counts: tuple[int, ...]
    seed: int

    @classmethod
    def of(cls, config: DataConfig, store: TokenStore, *, seed: int) -> "Mixture | None":
        """Return the mixture that `data.corpora` asks for, or None without such corpora."""
        if not config.corpora:
            return None
        sizes = corpus_sizes(config, store)
        weights = [
            min(1.0, sizes[0] / max(1, size)) if corpus.weight == "equal" else corpus.weight
            for corpus, size in zip(config.training_corpora, sizes, strict=True)
        ]
        counts = (size and max(1, round(weight * size)) for weight, size in zip(weights, sizes, strict=True))
        return cls(sizes, tuple(counts), seed)

    def epoch(self, epoch: int) -> Sentences:
        """Return the pairs of an epoch, counted from 0; a pair may occur several times."""
        taken = [np.empty(0, dtype=np.int64)]
        first = 0
        for corpus, (size, count) in enumerate(zip(self.sizes, self.counts, strict=True)):
            place, end = epoch * count, (epoch + 1) * count
            while place < end:
                within = place % size
                order = np.argsort(Noise(self.seed, _STREAM, corpus, place // size).draw(size), kind="stable")
                taken.append(first + order[within : within + end - place])
                place += len(taken[-1])
            first += size
        return np.concatenate(taken)
