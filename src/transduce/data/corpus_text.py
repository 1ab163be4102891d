"""The first stage of preparation: read every file once, clean it by its text, and copy it to a folder of rows.

The folder exists until the token stores are built. It holds the pairs as their files have them, the file and line of
each, and the hashes by which the next stage finds duplicates and decides what to hold out. It is written as a stream
and moved into place when it is complete, so a kill costs at most this one pass.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from transduce.data.cleaning import Dropped, Rule, rules_for, text_fault
from transduce.data.config import DataConfig
from transduce.data.formats import Corpus, Fingerprint, Pair, Selection
from transduce.data.portions import in_portions
from transduce.data.ragged import Ragged, RaggedWriter, map_array
from transduce.data.sentence_hashes import Hashes, fold, hash_normalized
from transduce.files import directory_written_atomically, manifest_fault
from transduce.progress import Progress
from transduce.text.normalization import normalize

SPLITS = ("train", "valid", "test")

_RECORD = "text-2.json"  # earlier versions wrote text.json, without folded hashes
_ORIGINS = np.dtype([("corpus", "<u4"), ("line", "<u8")])
_HASHES = np.dtype([(name, "<u8") for name in ("source", "target", "folded_source", "folded_target")])


class ReadCorpus(BaseModel, frozen=True):
    """The name, pairs and files of one entry of `data.train`, `data.valid` or `data.test`, once read."""

    name: str
    path: str
    """The file that line numbers refer to: the only file, or the source of two aligned files."""
    pairs: int
    files: tuple[Fingerprint, ...]


class TextWriter:
    """Writes the cleaned pairs of one split into a folder."""

    def __init__(self, folder: Path, stack: ExitStack, *, rules: frozenset[Rule]) -> None:
        folder.mkdir()
        self._pairs = stack.enter_context(RaggedWriter(folder, "pairs"))
        self._origins = stack.enter_context((folder / "origins").open("wb"))
        self._hashes = stack.enter_context((folder / "hashes").open("wb"))
        self._rules = rules
        self._corpora = 0
        self.dropped = Dropped()

    def read(self, corpus: Corpus) -> ReadCorpus:
        """Add every pair of a corpus that breaks no rule."""
        pairs, path = corpus.pairs(), str(corpus.files[0].path)
        count = 0
        for some in in_portions(pairs, lambda pair: len(pair.source) + len(pair.target)):
            self._append(list(self._kept(some, path)))
            count += len(some)
        self._corpora += 1
        return ReadCorpus(name=corpus.name, path=path, pairs=count, files=corpus.fingerprints())

    def _kept(self, pairs: Sequence[Pair], path: str) -> Iterator[tuple[Pair, tuple[str, str]]]:
        for pair in pairs:
            normalized = normalize(pair.source), normalize(pair.target)
            fault = pair.skipped or text_fault(pair.source, pair.target, normalized=normalized, rules=self._rules)
            if fault:
                self.dropped.add(fault, origin=f"{path}:{pair.line}", source=pair.source, target=pair.target)
            else:
                yield pair, normalized

    def _append(self, kept: Sequence[tuple[Pair, tuple[str, str]]]) -> None:
        self._pairs.append_texts([text for pair, _ in kept for text in (pair.source, pair.target)])
        origins = np.array([(self._corpora, pair.line) for pair, _ in kept], dtype=_ORIGINS)
        self._origins.write(origins.tobytes())
        for _, normalized in kept:
            self._hashes.write(b"".join(map(hash_normalized, (*normalized, *map(fold, normalized)))))


class CorpusText:
    """The cleaned pairs of one split, as their files have them."""

    def __init__(self, folder: Path, corpora: Sequence[ReadCorpus], *, tags: Sequence[str | None] = ()) -> None:
        """`tags` has the tag of each corpus, if any has one."""
        self._corpora, self._tags = corpora, tags
        self._pairs = Ragged(folder, "pairs")
        self._origins = map_array(folder / "origins", _ORIGINS)
        hashes = map_array(folder / "hashes", _HASHES)
        self.source_hashes: Hashes = hashes["source"].astype(np.uint64)
        self.target_hashes: Hashes = hashes["target"].astype(np.uint64)
        self.folded_source_hashes: Hashes = hashes["folded_source"].astype(np.uint64)
        self.folded_target_hashes: Hashes = hashes["folded_target"].astype(np.uint64)

    def __len__(self) -> int:
        return len(self._origins)

    def pair(self, row: int) -> tuple[str, str]:
        """Return a source and its target."""
        return self._pairs.text(2 * row), self._pairs.text(2 * row + 1)

    def tagged_pair(self, row: int) -> tuple[str, str]:
        """Return a source, after the tag of its corpus if that has one, and its target."""
        source, target = self.pair(row)
        tag = self._tags[int(self._origins["corpus"][row])] if self._tags else None
        return (source if tag is None else f"{tag} {source}"), target

    @property
    def corpus_numbers(self) -> NDArray[np.int64]:
        """The number of each row's corpus, counted from 0."""
        return np.asarray(self._origins["corpus"], dtype=np.int64)

    def origin(self, row: int) -> str:
        """Return the file and line of a pair."""
        corpus, line = self._origins[row].tolist()
        return f"{self._corpora[corpus].path}:{line}"


class ReadText(BaseModel, frozen=True):
    """The record that the first stage writes beside the text."""

    settings: dict[str, Any]
    corpora: dict[str, tuple[ReadCorpus, ...]]
    dropped: dict[str, dict[str, Any]]

    @classmethod
    def open(cls, folder: Path) -> "ReadText | None":
        """Return the record at `folder`, or None if the stage did not finish or the folder is damaged."""
        if manifest_fault(folder) is not None:
            return None
        try:
            return cls.model_validate_json((folder / _RECORD).read_bytes())
        except (OSError, ValueError):
            return None


def read_corpora(folder: Path, config: DataConfig, *, settings: dict[str, Any], progress: Progress) -> ReadText:
    """Read and clean the files of all splits, and write their pairs to `folder`."""
    corpora: dict[str, tuple[ReadCorpus, ...]] = {}
    dropped: dict[str, dict[str, Any]] = {}
    paths = [file.path for split in SPLITS for corpus in corpora_of(config, split) for file in corpus.files]
    size = sum(path.stat().st_size for path in paths if path.is_file())
    with progress.stage("reading", total=size, unit="bytes") as stage, directory_written_atomically(folder) as beside:
        for split in SPLITS:
            with ExitStack() as stack:
                writer = TextWriter(beside / split, stack, rules=rules_for(split, config))
                corpora[split] = tuple(
                    writer.read(corpus) for corpus in corpora_of(config, split, on_read=stage.advance)
                )
                dropped[split] = writer.dropped.as_json()
        record = ReadText(settings=settings, corpora=corpora, dropped=dropped)
        (beside / _RECORD).write_text(record.model_dump_json(), encoding="utf-8")
    return record


def corpora_of(config: DataConfig, split: str, *, on_read: Callable[[int], None] = lambda count: None) -> list[Corpus]:
    """Return the corpora of a split."""
    return [Corpus(name, Selection.of(config), on_read=on_read) for name in config.names(split)]
