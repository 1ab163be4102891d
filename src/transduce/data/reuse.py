"""Whether what was prepared is still true: the same settings, the same tokenizer, the same text.

Contents are hashed when they are read. Later starts look at sizes and times only, and read a file again just when its
time alone has changed. A corpus or tokenizer that is no longer there has not changed: a run goes on without it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from transduce.data.config import DataConfig
from transduce.data.corpus_text import ReadCorpus
from transduce.data.formats import Fingerprint, paths_of
from transduce.errors import ConfigError
from transduce.files import sha256_of_file

Corpora = dict[str, tuple[ReadCorpus, ...]]
"""What was read, by split."""

_FORMAT = 1
"""Raised whenever the same text and settings would give other stores."""


def settings_of(config: DataConfig, *, vocabulary_size: int, before: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return everything but the text that decides what preparation gives, as plain values.

    `before` is what this returned when the corpus was prepared: it still knows a tokenizer that is gone.
    """
    tokenizer = None
    if config.tokenizer is not None:
        tokenizer = tokenizer_sha256(config.tokenizer)
        if tokenizer is None and before and is_of(before, config):
            tokenizer = before["tokenizer_sha256"]
        if tokenizer is None:
            tokenizer_file(config.tokenizer)  # says what is missing
    return {
        "format": _FORMAT,
        "data": _compared(config),
        "vocabulary_size": vocabulary_size if tokenizer is None else None,
        "tokenizer_sha256": tokenizer,
    }


def is_of(settings: Mapping[str, Any], config: DataConfig) -> bool:
    """Return whether what was prepared with these settings was prepared for this configuration."""
    return settings.get("data") == _compared(config) and "tokenizer_sha256" in settings


def tokenizer_file(path: Path) -> Path:
    """Return the tokenizer that `data.tokenizer` means: the file itself, or that of a model directory."""
    file = path / "tokenizer.model" if path.is_dir() else path
    if not file.is_file():
        raise ConfigError(
            f"data.tokenizer = {path}: there is no such file. Name a tokenizer.model or a model directory."
        )
    return file


def tokenizer_sha256(path: Path) -> str | None:
    """Return the hash of the tokenizer that `data.tokenizer` means, or nothing if it is not there."""
    try:
        return sha256_of_file(tokenizer_file(path))
    except ConfigError:
        return None


def _compared(config: DataConfig) -> dict[str, Any]:
    return config.model_dump(mode="json", exclude={"expected_pairs"})


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


def hold_the_same(names: Sequence[str], corpora: Sequence[ReadCorpus]) -> bool:
    """Return whether the files of these names hold, byte for byte and in this order, what was read."""
    if len(names) != len(corpora):
        return False
    pairs = [(paths_of(name), corpus.files) for name, corpus in zip(names, corpora, strict=True)]
    try:
        return all(
            len(paths) == len(files) and all(_holds(path, file) for path, file in zip(paths, files, strict=True))
            for paths, files in pairs
        )
    except OSError:  # a file that cannot be read cannot be known again
        return False


def missing_files(corpora: Corpora) -> list[str]:
    """Return the files that are no longer there."""
    files = (file for entries in corpora.values() for corpus in entries for file in corpus.files)
    return [file.path for file in files if not Path(file.path).exists()]


def _holds(path: Path, file: Fingerprint) -> bool:
    return path.is_file() and path.stat().st_size == file.bytes and sha256_of_file(path) == file.sha256


def _renewed(file: Fingerprint) -> Fingerprint | None:
    path = Path(file.path)
    if not path.exists():
        return file
    status = path.stat()
    if status.st_size == file.bytes and status.st_mtime_ns == file.modified_ns:
        return file
    return replace(file, modified_ns=status.st_mtime_ns) if _holds(path, file) else None
