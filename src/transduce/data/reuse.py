"""Whether what was prepared is still true: the same settings, the same tokenizer, the same text.

Contents are hashed when they are read. Later starts look at sizes and times only, and read a file again just when its
time alone has changed. A corpus that is no longer there has not changed: a run goes on without it.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from transduce.data.config import DataConfig
from transduce.data.corpus_text import ReadCorpus
from transduce.data.formats import Fingerprint
from transduce.errors import ConfigError
from transduce.files import sha256_of_file

Corpora = dict[str, tuple[ReadCorpus, ...]]
"""What was read, by split."""

_FORMAT = 1
"""Raised whenever the same text and settings would give other stores."""


def settings_of(config: DataConfig, *, vocabulary_size: int) -> dict[str, Any]:
    """Return everything but the text that decides what preparation gives, as plain values."""
    tokenizer = None if config.tokenizer is None else sha256_of_file(tokenizer_file(config.tokenizer))
    return {
        "format": _FORMAT,
        "data": config.model_dump(mode="json", exclude={"expected_pairs"}),
        "vocabulary_size": vocabulary_size if tokenizer is None else None,
        "tokenizer_sha256": tokenizer,
    }


def tokenizer_file(path: Path) -> Path:
    """Return the tokenizer that `data.tokenizer` means: the file itself, or that of a model directory."""
    file = path / "tokenizer.model" if path.is_dir() else path
    if not file.is_file():
        raise ConfigError(
            f"data.tokenizer = {path}: there is no such file. Name a tokenizer.model or a model directory."
        )
    return file


def unchanged(corpora: Corpora) -> Corpora | None:
    """Return the corpora, with new times where only these changed; nothing if the text of any file did."""
    renewed: dict[str, tuple[ReadCorpus, ...]] = {}
    for split, entries in corpora.items():
        renewed[split] = ()
        for corpus in entries:
            files = [_renewed(file) for file in corpus.files]
            if None in files:
                return None
            renewed[split] += (corpus.model_copy(update={"files": tuple(files)}),)
    return renewed


def missing_files(corpora: Corpora) -> list[str]:
    """Return the files that are no longer there."""
    files = (file for entries in corpora.values() for corpus in entries for file in corpus.files)
    return [file.path for file in files if not Path(file.path).exists()]


def _renewed(file: Fingerprint) -> Fingerprint | None:
    path = Path(file.path)
    if not path.exists():
        return file
    status = path.stat()
    if status.st_size == file.bytes and status.st_mtime_ns == file.modified_ns:
        return file
    if status.st_size != file.bytes or sha256_of_file(path) != file.sha256:
        return None
    return replace(file, modified_ns=status.st_mtime_ns)
