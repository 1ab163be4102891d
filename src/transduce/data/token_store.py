"""Token ids of a corpus in memory-mapped files, so a corpus may be larger than RAM.

A store is a folder that appears whole or not at all. It holds the ids of both sides of every pair, end tokens included,
as 16-bit numbers where the vocabulary allows. It also holds the text that they were made from, normalised and with
placeholders replaced, because BPE-dropout cuts it again in every epoch. Stores for validation and test also keep each
pair as its file has it: scores are computed against that.
"""

import copy
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.data.ragged import Ragged, RaggedWriter, map_array
from transduce.data.sentence_hashes import Hashes, hashes_after_folding, sentence_hashes
from transduce.errors import DataError
from transduce.files import directory_written_atomically, manifest_fault

_FORMAT = 1
_DESCRIPTION = "store.json"
_HASHES, _FOLDED = "source.hashes", "source.folded_hashes"


class TokenStoreWriter:
    """Appends pairs to a store under construction."""

    def __init__(
        self,
        folder: Path,
        stack: ExitStack,
        *,
        vocabulary_size: int,
        source_vocabulary_size: int,
        keeps_originals: bool,
    ) -> None:
        self._source = stack.enter_context(RaggedWriter(folder, "source", _id_type(source_vocabulary_size)))
        self._target = stack.enter_context(RaggedWriter(folder, "target", _id_type(vocabulary_size)))
        self._text = stack.enter_context(RaggedWriter(folder, "text"))
        self._originals = stack.enter_context(RaggedWriter(folder, "originals")) if keeps_originals else None
        self._hashes, self._folded = (stack.enter_context((folder / name).open("wb")) for name in (_HASHES, _FOLDED))
        self.pairs = 0
        self.notes: dict[str, Any] = {}
        """Plain values to keep with the store, such as the dropped pairs."""

    def append(
        self,
        sources: Sequence[Sequence[int]],
        targets: Sequence[Sequence[int]],
        *,
        texts: Sequence[tuple[str, str]],
        originals: Sequence[tuple[str, str]] = (),
        source_hashes: Hashes | None = None,
        folded_hashes: Hashes | None = None,
    ) -> None:
        """Add pairs: the ids of each side with end tokens, and the normalised text that they encode.

        Symbols replace placeholders in the text. `source_hashes` and `folded_hashes` are those of the original sources;
        without them, the sources of `texts` are hashed.
        """
        sources_of_texts = [source for source, _ in texts]
        exact = sentence_hashes(sources_of_texts) if source_hashes is None else source_hashes
        folded = hashes_after_folding(sources_of_texts) if folded_hashes is None else folded_hashes
        self._hashes.write(exact.astype("<u8").tobytes())
        self._folded.write(folded.astype("<u8").tobytes())
        self._source.append(sources)
        self._target.append(targets)
        self._text.append_texts([side for pair in texts for side in pair])
        if self._originals is not None:
            assert len(originals) == len(texts), "this store keeps the original of every pair"
            self._originals.append_texts([side for pair in originals for side in pair])
        self.pairs += len(texts)


@contextmanager
def token_store_written(
    folder: Path, *, vocabulary_size: int, source_vocabulary_size: int | None = None, keeps_originals: bool = False
) -> Iterator[TokenStoreWriter]:
    """Yield a writer; move the store to `folder` when the block ends, or delete it if the block raises.

    `source_vocabulary_size` is given where source and target have separate vocabularies.
    """
    own = {} if source_vocabulary_size is None else {"source_vocabulary_size": source_vocabulary_size}
    with directory_written_atomically(folder) as beside:
        with ExitStack() as stack:
            writer = TokenStoreWriter(
                beside,
                stack,
                vocabulary_size=vocabulary_size,
                source_vocabulary_size=source_vocabulary_size or vocabulary_size,
                keeps_originals=keeps_originals,
            )
            yield writer
        description = {
            **own,
            "format": _FORMAT,
            "pairs": writer.pairs,
            "vocabulary_size": vocabulary_size,
            "keeps_originals": keeps_originals,
            "notes": writer.notes,
        }
        (beside / _DESCRIPTION).write_text(json.dumps(description, indent=1) + "\n", encoding="utf-8")


class TokenStore:
    """The pairs of one split, numbered from 0."""

    source_lengths: NDArray[np.int64]
    """The number of ids of every source, the end token included."""
    target_lengths: NDArray[np.int64]
    """The number of ids of every target, the end token included."""

    def __init__(self, folder: Path) -> None:
        """Open the store at `folder`; DataError when it is missing, cut off or of another version.

        This does not read the content; `open` does.
        """
        self.folder = folder
        try:
            description = json.loads((folder / _DESCRIPTION).read_text(encoding="utf-8"))
            if description["format"] != _FORMAT:
                raise ValueError(f"format {description['format']}")
            self.vocabulary_size = int(description["vocabulary_size"])
            self.source_vocabulary_size = int(description.get("source_vocabulary_size", self.vocabulary_size))
            self._source = Ragged(folder, "source", _id_type(self.source_vocabulary_size))
            self._target = Ragged(folder, "target", _id_type(self.vocabulary_size))
            self._text = Ragged(folder, "text")
            self._originals = Ragged(folder, "originals") if description["keeps_originals"] else None
            self.source_hashes: Hashes = map_array(folder / _HASHES, np.dtype("<u8"))
            has_folded = (folder / _FOLDED).exists()  # not in stores of earlier versions
            folded = map_array(folder / _FOLDED, np.dtype("<u8")) if has_folded else self.source_hashes
            self.folded_hashes: Hashes = folded
            self.notes: dict[str, Any] = dict(description["notes"])
            pairs = int(description["pairs"])
            self._sides = (0, 1)
        except (OSError, ValueError, TypeError, KeyError) as fault:
            raise DataError(
                f"{folder} is not a token store that this version can read ({fault}). Delete it and start again to "
                "build it from the corpus."
            ) from fault
        self._check_rows(pairs)
        self.source_lengths = self._source.lengths()
        self.target_lengths = self._target.lengths()

    @classmethod
    def open(cls, folder: Path) -> "TokenStore":
        """Open the store at `folder` after comparing its content with the manifest and the vocabulary.

        DataError if it differs: one flipped bit would train to other weights. This reads every byte once.
        """
        fault = manifest_fault(folder) if folder.is_dir() else None  # a missing store has a message of its own
        if fault is not None:
            raise DataError(f"{folder} is damaged: {fault}. Delete it and start again to build it from the corpus.")
        store = cls(folder)
        if not (store._source.is_below(store.source_vocabulary_size) and store._target.is_below(store.vocabulary_size)):
            raise DataError(f"{folder} is damaged: it holds ids beyond its vocabulary. Delete it and start again.")
        return store

    def __len__(self) -> int:
        return len(self._source)

    def source(self, sentence: int) -> NDArray[np.unsignedinteger]:
        """Return the ids of a source, with its end token if sources have one."""
        return self._source[sentence]

    def target(self, sentence: int) -> NDArray[np.unsignedinteger]:
        """Return the ids of a target with its end token."""
        return self._target[sentence]

    def text(self, sentence: int) -> tuple[str, str]:
        """Return a pair as it was segmented: normalised, its placeholders replaced."""
        source, target = self._sides
        return self._text.text(2 * sentence + source), self._text.text(2 * sentence + target)

    def original(self, sentence: int) -> tuple[str, str]:
        """Return a pair as its file has it. Validation and test stores keep it, training stores do not."""
        assert self._originals is not None, f"{self.folder} keeps no originals"
        source, target = self._sides
        return self._originals.text(2 * sentence + source), self._originals.text(2 * sentence + target)

    def reversed(self) -> "TokenStore":
        """Return the same pairs from target to source; the hashes are then those of the segmented targets."""
        other = copy.copy(self)
        other.vocabulary_size, other.source_vocabulary_size = self.source_vocabulary_size, self.vocabulary_size
        other._source, other._target = self._target, self._source
        other.source_lengths, other.target_lengths = self.target_lengths, self.source_lengths
        other._sides = (self._sides[1], self._sides[0])
        sources = [other.text(sentence)[0] for sentence in range(len(self))]
        other.source_hashes, other.folded_hashes = sentence_hashes(sources), hashes_after_folding(sources)
        return other

    def known_hashes(self) -> Hashes:
        """Return the sorted hashes by which a source of this store is recognised."""
        return np.unique(self.folded_hashes)

    def _check_rows(self, pairs: int) -> None:
        originals = 2 * pairs if self._originals is None else len(self._originals)
        hashes = len(self.source_hashes), len(self.folded_hashes)
        found = (len(self._source), len(self._target), *hashes, len(self._text), originals)
        if found != (pairs, pairs, pairs, pairs, 2 * pairs, 2 * pairs):
            raise DataError(f"{self.folder} is damaged: it does not hold {pairs:,} pairs. Delete it and start again.")


def _id_type(vocabulary_size: int) -> np.dtype[np.unsignedinteger]:
    return np.dtype("<u2") if vocabulary_size <= 1 << 16 else np.dtype("<u4")
