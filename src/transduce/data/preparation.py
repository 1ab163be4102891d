"""Preparation of a corpus, from files to token stores: read, clean, hold out, learn the tokenizer, encode.

    folder/prepared.json        the settings, the files read, and the report; written last, when the rest is complete
    folder/tokenizer.model      learned from the training text, or given; with separate vocabularies also
                                source_tokenizer.model
    folder/train, valid, test   token stores
    folder/dropped.tsv          the dropped pairs and the reasons
    folder/text                 the pairs that were read; deleted at the end

Every stage writes its result completely or not at all, and depends only on the stages before it. If preparation is
killed and started again, it resumes with the first stage whose result is missing and ends with the same bytes. When it
is done, another start does nothing unless settings, tokenizer or text changed.
"""

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from transduce.data.config import DataConfig
from transduce.data.division import counts_in_words
from transduce.data.mixture import corpus_sizes
from transduce.data.report import PreparationReport
from transduce.data.reuse import missing_files, settings_of, unchanged
from transduce.data.sentence_hashes import Hashes
from transduce.data.stages import DROPPED, TEXT, PreparedRecord, Stages
from transduce.data.text_preparation import prepare_text
from transduce.data.token_store import TokenStore
from transduce.errors import ConfigError, DataError, ModelError
from transduce.files import locked
from transduce.progress import Progress, Silent
from transduce.text.tokenizer_files import SOURCE_TOKENIZER, TOKENIZER
from transduce.text.tokenizer_pair import TokenizerPair


@dataclass(frozen=True)
class Prepared:
    """A corpus ready to train on."""

    folder: Path
    tokenizers: TokenizerPair
    train: TokenStore
    valid: TokenStore | None
    test: TokenStore | None
    report: PreparationReport

    def training_hashes(self, config: DataConfig) -> Hashes:
        """Return the sorted hashes of the training sources, which a model keeps to recognise training sentences."""
        if not config.corpora:
            return self.train.known_hashes()
        written = [not corpus.synthetic for corpus in config.training_corpora]
        return np.unique(self.train.folded_hashes[np.repeat(written, corpus_sizes(config, self.train))])

    def reversed(self) -> "Prepared":
        """Return the same corpus from target to source."""
        return replace(
            self,
            tokenizers=self.tokenizers.reversed(),
            train=self.train.reversed(),
            valid=self.valid and self.valid.reversed(),
            test=self.test and self.test.reversed(),
            report=self.report.reversed(),
        )


def prepare(
    config: DataConfig,
    folder: Path,
    *,
    vocabulary_size: int,
    source_vocabulary_size: int | None = None,
    progress: Progress = Silent(),  # noqa: B008
) -> Prepared:
    """Return the token stores of a corpus; build them at `folder` unless they are there already."""
    if not config.has_training_text:
        raise ConfigError("data.train is empty. Name the training text: a.en,a.de, or one file of pairs such as x.tsv.")
    record = PreparedRecord.open(folder)
    settings = settings_of(
        config,
        vocabulary_size=vocabulary_size,
        source_vocabulary_size=source_vocabulary_size,
        before=record.settings if record else None,
    )
    prepared = _reuse(folder, record, settings, config, progress=progress) if record else None
    if prepared is not None:
        return prepared
    with locked(folder / ".lock", purpose="preparing a corpus"):
        if config.text:
            prepare_text(config, folder, settings=settings, vocabulary_size=vocabulary_size, progress=progress)
        else:
            stages = Stages(config, folder, settings=settings, progress=progress)
            stages.finish(vocabulary_size, source_vocabulary_size=source_vocabulary_size)
        shutil.rmtree(folder / TEXT, ignore_errors=True)
    record = PreparedRecord.open(folder)
    assert record is not None, "the last stage wrote the record"
    prepared = _open(folder, record, config)
    _note_sizes(prepared, progress)
    return prepared


def is_prepared(
    config: DataConfig, folder: Path, *, vocabulary_size: int, source_vocabulary_size: int | None = None
) -> bool:
    """Return whether `folder` holds the complete token stores of this corpus, made from the current text."""
    record = PreparedRecord.open(folder)
    if record is None or unchanged(record.corpora) is None:
        return False
    settings = settings_of(
        config,
        vocabulary_size=vocabulary_size,
        source_vocabulary_size=source_vocabulary_size,
        before=record.settings,
    )
    if record.settings != settings:
        return False
    try:
        _open(folder, record, config, verified=False)  # `prepare` compares the hashes, once for every start
    except (DataError, ModelError, OSError):
        return False
    return True


def _reuse(
    folder: Path, record: PreparedRecord, settings: dict[str, Any], config: DataConfig, *, progress: Progress
) -> Prepared | None:
    if record.settings != settings:
        return None
    corpora = unchanged(record.corpora)
    if corpora is None:
        return None
    if corpora != record.corpora:
        record.model_copy(update={"corpora": corpora}).write(folder)
    try:
        prepared = _open(folder, record, config)
    except (DataError, ModelError, OSError) as fault:
        progress.warn(f"The prepared corpus is damaged and is built again: {fault}")
        return None
    for path in missing_files(record.corpora):
        progress.warn(f"{path} no longer exists; the run uses the corpus prepared from it.")
    return prepared


def _open(folder: Path, record: PreparedRecord, config: DataConfig, *, verified: bool = True) -> Prepared:
    open_store = TokenStore.open if verified else TokenStore
    stores = {split: open_store(folder / split) for split in record.report.splits}
    tokenizers = TokenizerPair.read(
        folder / TOKENIZER,
        source=folder / SOURCE_TOKENIZER if config.has_source_tokenizer else None,
        source_end=config.source_end,
    )
    if tokenizers.fingerprint != record.report.tokenizer_sha256:
        raise DataError(f"{folder / TOKENIZER} is not the tokenizer that the corpus was prepared with.")
    return Prepared(
        folder=folder,
        tokenizers=tokenizers,
        train=stores["train"],
        valid=stores.get("valid"),
        test=stores.get("test"),
        report=record.report,
    )


def _note_sizes(prepared: Prepared, progress: Progress) -> None:
    for split, report in prepared.report.splits.items():
        held_out = " held out of the training text" if report.is_held_out else ""
        notes = (prepared.train if split == "train" or prepared.valid is None else prepared.valid).notes
        if "characters" in notes:
            progress.note(
                f"{split}: {notes['characters']:,} characters{held_out}, {report.target.total:,} tokens in "
                f"{report.pairs:,} blocks"
            )
            continue
        progress.note(
            f"{split}: {report.pairs:,} pairs{held_out}, {report.source.total:,} source and {report.target.total:,} "
            "target tokens"
        )
        if report.dropped:
            reasons = counts_in_words(report.dropped)
            progress.note(f"{split}: dropped {reasons}; listed in {prepared.folder / DROPPED}")
        if report.seen_in_training:
            progress.warn(
                f"{report.seen_in_training:,} of {report.pairs:,} {split} sources are in the training text too."
            )
        if report.beyond_maximum:
            progress.warn(
                f"{report.beyond_maximum:,} of {report.pairs:,} {split} pairs are longer than data.max_length."
            )
    shares = ", ".join(f"{share:.1%} at {tokens:,} tokens a step" for tokens, share in prepared.report.padding.items())
    progress.note(f"vocabulary {prepared.report.vocabulary_in_words}; padding {shares}")
