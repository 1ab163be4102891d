"""The stages of preparation: read, divide, learn the tokenizer, encode, record. A stage is skipped if it is done."""

import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from transduce.data.cleaning import Dropped, dropped_list
from transduce.data.config import DataConfig
from transduce.data.corpus_text import SPLITS, CorpusText, ReadCorpus, ReadText, corpora_of, read_corpora
from transduce.data.division import counts_in_words, divide, refuse_empty, refuse_unexpected, repetitions, unrepeated
from transduce.data.encoding import SplitPairs, StoreBuilder, lines_to_learn_from
from transduce.data.report import CorpusReport, PreparationReport, SplitReport, padding_of
from transduce.data.reuse import (
    GIVEN_TOKENIZERS,
    GivenTokenizer,
    given_tokenizer,
    given_tokenizers,
    tokenizer_file,
    unchanged,
)
from transduce.data.token_store import TokenStore
from transduce.errors import ConfigError, DataError
from transduce.files import fsync_directory, manifest_fault, remove_leftovers, write_atomically
from transduce.progress import Progress
from transduce.sealed_record import sealed, unsealed
from transduce.text.tokenizer import Tokenizer
from transduce.text.tokenizer_files import SOURCE_TOKENIZER, TOKENIZER, learn_tokenizer, read_tokenizer
from transduce.text.tokenizer_pair import TokenizerPair

RECORD, TEXT, DROPPED = "prepared.json", "text", "dropped.tsv"


class PreparedRecord(BaseModel, frozen=True, extra="forbid"):
    """The content of `prepared.json`. It is written last, so if it exists, everything else is complete."""

    settings: dict[str, Any]
    corpora: dict[str, tuple[ReadCorpus, ...]]
    report: PreparationReport

    @classmethod
    def open(cls, folder: Path) -> "PreparedRecord | None":
        """Return the record at `folder`, or None if preparation did not finish there."""
        try:
            return cls.model_validate(unsealed((folder / RECORD).read_bytes()))
        except (OSError, ValueError):
            return None

    def write(self, folder: Path) -> None:
        """Write the record to `folder`."""
        write_atomically(folder / RECORD, sealed(json.loads(self.model_dump_json())))


class Stages:
    """One preparation in one folder."""

    def __init__(self, config: DataConfig, folder: Path, *, settings: dict[str, Any], progress: Progress) -> None:
        self._config, self._folder, self._settings, self._progress = config, folder, settings, progress

    def finish(self, vocabulary_size: int, *, source_vocabulary_size: int | None = None) -> None:
        """Run every stage whose result is missing; give `source_vocabulary_size` if vocabularies are separate."""
        remove_leftovers(self._folder)
        if PreparedRecord.open(self._folder) is not None:  # finished before, but the text changed or a store is damaged
            shutil.rmtree(self._folder / TEXT, ignore_errors=True)
        read = self._read()
        tags = [corpus.tag for corpus in self._config.training_corpora for _ in corpus.files]
        texts = {
            split: CorpusText(self._folder / TEXT / split, read.corpora[split], tags=tags if split == "train" else ())
            for split in SPLITS
        }
        refuse_empty(texts, read)
        refuse_unexpected(read, self._config.expected_pairs)
        rows = unrepeated(texts["train"], self._config)
        shares = divide(texts, rows, self._config)
        sizes = {TOKENIZER: vocabulary_size, SOURCE_TOKENIZER: source_vocabulary_size or vocabulary_size}
        tokenizers = self._tokenizers(shares["train"], sizes)
        self._warn_of_unknown_tags(tokenizers)
        stores = self._encode(shares, tokenizers)
        dropped = {split: Dropped.from_json(read.dropped[split]) for split in SPLITS}
        dropped["train"].update(repetitions(texts["train"], rows))
        for split, store in stores.items():
            dropped[split].update(Dropped.from_json(store.notes["dropped"]))
        self._record(read, shares, stores, dropped, tokenizers)

    def _read(self) -> ReadText:
        read = ReadText.open(self._folder / TEXT)
        if read is not None and read.settings == self._settings and unchanged(read.corpora) is not None:
            return read
        self._require_files()
        # Delete the results of other text or settings, the record first. From then on, everything in the folder is made
        # from the text in it.
        for name in (RECORD, DROPPED, TOKENIZER, SOURCE_TOKENIZER):
            (self._folder / name).unlink(missing_ok=True)
        for name in (*SPLITS, TEXT):
            shutil.rmtree(self._folder / name, ignore_errors=True)
        fsync_directory(self._folder)  # else a power cut could bring back the old tokenizer beside new text
        return read_corpora(self._folder / TEXT, self._config, settings=self._settings, progress=self._progress)

    def _require_files(self) -> None:
        """Refuse to prepare again if a file is missing: the prepared corpus may be its only copy."""
        for file in (file for split in SPLITS for corpus in corpora_of(self._config, split) for file in corpus.files):
            file.require()
        for key, path in given_tokenizers(self._config).items():
            tokenizer_file(path, key=key)

    def _tokenizers(self, train: SplitPairs, sizes: Mapping[str, int]) -> TokenizerPair:
        source_end = self._config.source_end
        if not self._config.has_source_tokenizer:
            tokenizer = self._tokenizer("tokenizer", lines_to_learn_from(train), size=sizes[TOKENIZER])
            return TokenizerPair.shared(tokenizer, source_end=source_end)
        sources, targets = (lines_to_learn_from(train, sides=[side]) for side in range(2))
        pair = TokenizerPair(
            self._tokenizer("source_tokenizer", sources, size=sizes[SOURCE_TOKENIZER]),
            self._tokenizer("tokenizer", targets, size=sizes[TOKENIZER]),
            source_end,
        )
        if self._config.vocabularies == "shared" and not pair.has_one_vocabulary:
            raise ConfigError(
                "data.tokenizer and data.source_tokenizer do not give the same pieces the same ids. "
                'Set data.vocabularies = "separate".'
            )
        return pair

    def _tokenizer(self, key: GivenTokenizer, lines: Iterable[str], *, size: int) -> Tokenizer:
        """Return the tokenizer of a key: that of an earlier start, the given one, or one learned from `lines`."""
        place, kind = self._folder / GIVEN_TOKENIZERS[key], self._config.pieces_of(key)
        if place.exists():
            return read_tokenizer(place)
        if key not in given_tokenizers(self._config):
            reads_sources = key == "source_tokenizer" or not self._config.has_source_tokenizer
            tags = self._tags() if reads_sources else ()
            assert kind != "imported", "DataConfig asks for the tokenizer then"
            assert kind != "byte_pieces", "likewise"
            assert kind != "word_pieces", "likewise"
            tokenizer = learn_tokenizer(kind, lines, vocabulary_size=size, tags=tags, progress=self._progress)
        else:
            tokenizer = given_tokenizer(self._config, key)
        write_atomically(place, tokenizer.to_bytes())
        return tokenizer

    def _tags(self) -> list[str]:
        return list(dict.fromkeys(corpus.tag for corpus in self._config.corpora if corpus.tag is not None))

    def _warn_of_unknown_tags(self, tokenizers: TokenizerPair) -> None:
        for tag in self._tags():
            pieces = [tokenizers.source.piece(token) for token in tokenizers.source.encode(tag)]
            if tag not in pieces:
                self._progress.warn(
                    f"The vocabulary has no piece {tag}, so the tag is spelled in {len(pieces)} pieces before each "
                    "source. That works, and makes sources longer; a BPE vocabulary learned by this run would have it."
                )

    def _encode(self, shares: Mapping[str, SplitPairs], tokenizers: TokenizerPair) -> dict[str, TokenStore]:
        builder = StoreBuilder(tokenizers, self._config, progress=self._progress)
        stores = {}
        for split, share in shares.items():
            folder = self._folder / split
            if manifest_fault(folder) is not None:  # there is none yet, or the disk damaged it since a kill
                builder.build(folder, share, keeps_originals=split != "train")
            stores[split] = TokenStore.open(folder)
            if len(stores[split]) == 0:
                counts = Dropped.from_json(stores[split].notes["dropped"]).counts
                raise DataError(
                    f"None of the {len(share.rows):,} pairs for {split} is left: {counts_in_words(counts)}. The limits "
                    f"are data.max_length = {self._config.max_length} tokens and data.max_length_ratio."
                )
        return stores

    def _record(
        self,
        read: ReadText,
        shares: Mapping[str, SplitPairs],
        stores: Mapping[str, TokenStore],
        dropped: Mapping[str, Dropped],
        tokenizers: TokenizerPair,
    ) -> None:
        training = stores["train"].known_hashes()
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
            vocabulary_size=tokenizers.vocabulary_size,
            source_vocabulary_size=tokenizers.source_vocabulary_size,
            tokenizer_sha256=tokenizers.fingerprint,
            tokenizer_was_learned=self._config.tokenizer is None,
            padding=padding_of(stores["train"]),
        )
        write_atomically(self._folder / DROPPED, dropped_list(dropped))
        PreparedRecord(settings=self._settings, corpora=read.corpora, report=report).write(self._folder)
