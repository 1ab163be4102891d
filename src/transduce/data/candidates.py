"""Outputs that stand beside the targets of a token store, each with how good it is: what risk is taken over.

A folder that appears whole or not at all, read through a memory map like the store it belongs to. A sentence may have
none.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.data.ragged import Ragged, RaggedWriter
from transduce.errors import DataError
from transduce.files import directory_written_atomically

_FORMAT = 1
_DESCRIPTION = "candidates.json"
_IDS, _REWARDS = np.dtype("<u4"), np.dtype("<u4")
_STEPS = 1 << 24  # rewards are kept as so many steps from 0 to 1, which float32 holds exactly


class CandidateStoreWriter:
    """Appends the candidates of sentences, in their order."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._ids = stack.enter_context(RaggedWriter(folder, "candidates", _IDS))
        self._rewards = stack.enter_context(RaggedWriter(folder, "rewards", _REWARDS))
        self.sentences = 0
        self.notes: dict[str, Any] = {}
        """Plain values to keep with the store."""

    def append(self, candidates: Sequence[Sequence[int]], rewards: Sequence[float]) -> None:
        """Add the candidates of the next sentence: their ids, EOS included, and their rewards from 0 to 1."""
        assert len(candidates) == len(rewards), "every candidate has a reward"
        assert all(0.0 <= reward <= 1.0 for reward in rewards), "a reward is from 0 to 1"
        self._ids.append(candidates)
        self._rewards.append([[round(reward * _STEPS) for reward in rewards]])
        self.sentences += 1


@contextmanager
def candidate_store_written(folder: Path) -> Iterator[CandidateStoreWriter]:
    """Yield a writer; when the block ends well the store takes its place at `folder`, else nothing is left."""
    with directory_written_atomically(folder) as beside:
        with ExitStack() as stack:
            writer = CandidateStoreWriter(beside, stack)
            yield writer
        description = {"format": _FORMAT, "sentences": writer.sentences, "notes": writer.notes}
        (beside / _DESCRIPTION).write_text(json.dumps(description, indent=1) + "\n", encoding="utf-8")


class CandidateStore:
    """The candidates of every sentence of a token store."""

    longest: NDArray[np.int64]
    """The most ids of a candidate of every sentence, EOS included; 0 where it has none."""
    most: int
    """The most candidates of a sentence."""

    def __init__(self, folder: Path) -> None:
        """Open the store at `folder`; DataError when it is missing, cut off or of another version."""
        self.folder = folder
        try:
            description = json.loads((folder / _DESCRIPTION).read_text(encoding="utf-8"))
            if description["format"] != _FORMAT:
                raise ValueError(f"format {description['format']}")
            self._ids, self._rewards = Ragged(folder, "candidates", _IDS), Ragged(folder, "rewards", _REWARDS)
            self.notes: dict[str, Any] = dict(description["notes"])
            sentences = int(description["sentences"])
        except (OSError, ValueError, TypeError, KeyError) as fault:
            raise DataError(
                f"{folder} holds no candidates that this version can read ({fault}). Delete it and start again: "
                "they are found anew."
            ) from fault
        counts = self._rewards.lengths()
        self._first = np.concatenate([[0], np.cumsum(counts)])
        if (len(counts), int(self._first[-1])) != (sentences, len(self._ids)):
            raise DataError(f"{folder} does not hold the candidates that it should. Delete it and start again.")
        self.most = int(counts.max(initial=0))
        self.longest = np.zeros(sentences, dtype=np.int64)
        np.maximum.at(self.longest, np.repeat(np.arange(sentences), counts), self._ids.lengths())

    def __len__(self) -> int:
        return len(self._rewards)

    def of(self, sentence: int) -> list[tuple[NDArray[Any], float]]:
        """Return the ids of each candidate of a sentence, EOS at the end, and its reward."""
        rewards = (self._rewards[sentence] / _STEPS).tolist()
        first = int(self._first[sentence])
        return [(self._ids[first + place], reward) for place, reward in enumerate(rewards)]
