"""The stages of preparation, each skipped if its result is there: read, divide, learn the tokenizer, encode, record."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel

from transduce.data.cleaning import Dropped, dropped_list
from transduce.data.config import DataConfig
from transduce.data.corpus_text import SPLITS, CorpusText, ReadCorpus, ReadText, corpora_of, read_corpora
from transduce.data.division import divide, refuse_empty, refuse_unexpected, repetitions, told, unrepeated
from transduce.data.encoding import Encoder, Share, lines_to_learn_from
from transduce.data.report import CorpusReport, PreparationReport, SplitReport, padding_of
from transduce.data.reuse import tokenizer_file, unchanged
from transduce.data.token_store import TokenStore
from transduce.errors import DataError
from transduce.files import fsync_directory, sweep, write_atomically
from transduce.progress import Progress
from transduce.text.tokenizer import Tokenizer

RECORD, TOKENIZER, TEXT, DROPPED = "prepared.json", "tokenizer.model", "text", "dropped.tsv"


class PreparedRecord(BaseModel, frozen=True):
    """What `prepared.json` holds: written last, it vouches for everything beside it."""

    settings: dict[str, Any]
    corpora: dict[str, tuple[ReadCorpus, ...]]
    report: PreparationReport

    @classmethod
    def open(cls, folder: Path) -> "PreparedRecord | None":
        """Return the record at `folder`, or nothing if preparation did not finish there."""
        try:
            return cls.model_validate_json((folder / RECORD).read_bytes())
        except (OSError, ValueError):
            return None

    def write(self, folder: Path) -> None:
        """Put the record at `folder`."""
        write_atomically(folder / RECORD, self.model_dump_json(indent=1) + "\n")


class Stages:
    """One preparation at one folder."""

    def __init__(self, config: DataConfig, folder: Path, *, settings: dict[str, Any], progress: Progress) -> None:
        self._config, self._folder, self._settings, self._progress = config, folder, settings, progress

    def finish(self, vocabulary_size: int) -> None:
        """Run every stage whose result is missing."""
        sweep(self._folder)
        if PreparedRecord.open(self._folder) is not None:  # finished before, but with other text or since damaged
            shutil.rmtree(self._folder / TEXT, ignore_errors=True)
        read = self._read()
        texts = {split: CorpusText(self._folder / TEXT / split, read.corpora[split]) for split in SPLITS}
        refuse_empty(texts, read)
        refuse_unexpected(read, self._config.expected_pairs)
        rows = unrepeated(texts["train"], self._config)
        shares = divide(texts, rows, self._config)
        tokenizer = self._tokenizer(shares["train"], vocabulary_size)
        stores = self._encode(shares, tokenizer)
        dropped = {split: Dropped.from_json(read.dropped[split]) for split in SPLITS}
        dropped["train"].update(repetitions(texts["train"], rows))
        for split, store in stores.items():
            dropped[split].update(Dropped.from_json(store.notes["dropped"]))
        self._record(read, shares, stores, dropped, tokenizer)

    def _read(self) -> ReadText:
        read = ReadText.open(self._folder / TEXT)
        if read is not None and read.settings == self._settings and unchanged(read.corpora) is not None:
            return read
        self._require_what_is_read()
        # What was built from other text or settings goes first, the record that vouches for it before all else: from
        # then on, whatever stands in the folder belongs to the text that stands beside it.
        for name in (RECORD, DROPPED, TOKENIZER):
            (self._folder / name).unlink(missing_ok=True)
        for name in (*SPLITS, TEXT):
            shutil.rmtree(self._folder / name, ignore_errors=True)
        fsync_directory(self._folder)  # no power cut may bring an old tokenizer back beside new text
        return read_corpora(self._folder / TEXT, self._config, settings=self._settings, progress=self._progress)

    def _require_what_is_read(self) -> None:
        """Refuse to begin anew without all that this needs: what was prepared before may be its only copy."""
        for file in (file for split in SPLITS for corpus in corpora_of(self._config, split) for file in corpus.files):
            file.require()
        if self._config.tokenizer is not None:
            tokenizer_file(self._config.tokenizer)

    def _tokenizer(self, train: Share, vocabulary_size: int) -> Tokenizer:
        place = self._folder / TOKENIZER
        if place.exists():
            return Tokenizer.from_bytes(place.read_bytes(), name=str(place))
        if self._config.tokenizer is not None:
            file = tokenizer_file(self._config.tokenizer)
            tokenizer = Tokenizer.from_bytes(file.read_bytes(), name=str(file))
        else:
            lines = lines_to_learn_from(train)
            tokenizer = Tokenizer.learn(lines, vocabulary_size=vocabulary_size, progress=self._progress)
        write_atomically(place, tokenizer.to_bytes())
        return tokenizer

    def _encode(self, shares: Mapping[str, Share], tokenizer: Tokenizer) -> dict[str, TokenStore]:
        encoder = Encoder(tokenizer, self._config, progress=self._progress)
        stores = {}
        for split, share in shares.items():
            folder = self._folder / split
            if not folder.exists():
                encoder.build(folder, share, keeps_originals=split != "train")
            stores[split] = TokenStore.open(folder)
            if len(stores[split]) == 0:
                counts = Dropped.from_json(stores[split].notes["dropped"]).counts
                raise DataError(
                    f"None of the {len(share.rows):,} pairs for {split} is left: {told(counts)}. The limits are "
                    f"data.max_length = {self._config.max_length} tokens and data.max_length_ratio."
                )
        return stores

    def _record(
        self,
        read: ReadText,
        shares: Mapping[str, Share],
        stores: Mapping[str, TokenStore],
        dropped: Mapping[str, Dropped],
        tokenizer: Tokenizer,
    ) -> None:
        training = np.unique(stores["train"].source_hashes)
        report = PreparationReport(
            source_language=self._config.source_language,
            target_language=self._config.target_language,
            corpora={split: tuple(map(CorpusReport.of, corpora)) for split, corpora in read.corpora.items()},
            splits={
                split: SplitReport.of(
                    store,
                    dropped[split],
                    is_held_out=shares[split].is_held_out,
                    max_length=self._config.max_length,
                    training=None if split == "train" else training,
                )
                for split, store in stores.items()
            },
            vocabulary_size=tokenizer.vocabulary_size,
            tokenizer_sha256=tokenizer.fingerprint,
            tokenizer_was_learned=self._config.tokenizer is None,
            padding=padding_of(stores["train"]),
        )
        write_atomically(self._folder / DROPPED, dropped_list(dropped))
        PreparedRecord(settings=self._settings, corpora=read.corpora, report=report).write(self._folder)
