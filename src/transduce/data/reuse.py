"""Checks whether a prepared corpus is still current: the same settings, the same tokenizer, the same text.

The first start hashes the contents. Later starts compare size and modification time, and hash a file again only if its
time changed and its size did not. A corpus or tokenizer that no longer exists counts as unchanged, so a run can resume
without it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from transduce.data.config import DataConfig
from transduce.data.corpus_text import ReadCorpus
from transduce.data.formats import Fingerprint, paths_of
from transduce.errors import ConfigError
from transduce.files import sha256_of_file
from transduce.text.tokenizer import Tokenizer
from transduce.text.tokenizer_files import SOURCE_TOKENIZER, TOKENIZER, read_tokenizer

GivenTokenizer = Literal["tokenizer", "source_tokenizer"]
GIVEN_TOKENIZERS: Mapping[GivenTokenizer, str] = {"tokenizer": TOKENIZER, "source_tokenizer": SOURCE_TOKENIZER}
"""The keys of [data] that name tokenizers, and the file name of each in a model directory."""

Corpora = dict[str, tuple[ReadCorpus, ...]]
"""The corpora that were read, by split."""

_FORMAT = 1
"""Increase it when a change of the code gives different stores for the same text and settings."""


def settings_of(
    config: DataConfig,
    *,
    vocabulary_size: int,
    source_vocabulary_size: int | None = None,
    before: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return all settings that affect the result of preparation, as plain values.

    `before` is the result of this function when the corpus was prepared; it supplies the hashes of tokenizers whose
    files no longer exist.
    """
    hashes: dict[str, str | None] = dict.fromkeys(map(_hash_key, GIVEN_TOKENIZERS))
    for key, path in given_tokenizers(config).items():
        found = tokenizer_sha256(path, key=key)
        if found is None and before and is_of(before, config):
            found = before[_hash_key(key)]
        if found is None:
            tokenizer_file(path, key=key)  # raises ConfigError
        hashes[_hash_key(key)] = found
    is_given = config.tokenizer is not None
    sizes = {"vocabulary_size": vocabulary_size, "source_vocabulary_size": source_vocabulary_size or vocabulary_size}
    settings = {
        "format": _FORMAT,
        "data": _compared(config),
        **{key: None if is_given else size for key, size in sizes.items()},
        **hashes,
    }
    if config.has_source_tokenizer:
        return settings
    return {key: value for key, value in settings.items() if not key.startswith("source_")}  # as earlier versions did


def is_of(settings: Mapping[str, Any], config: DataConfig) -> bool:
    """Return whether these settings of a prepared corpus are those of `config`."""
    return settings.get("data") == _compared(config) and "tokenizer_sha256" in settings


def given_tokenizers(config: DataConfig) -> dict[GivenTokenizer, Path]:
    """Return the paths of the given tokenizers by their key in [data]."""
    paths: dict[GivenTokenizer, Path | None] = {
        "tokenizer": config.tokenizer,
        "source_tokenizer": config.source_tokenizer,
    }
    return {key: path for key, path in paths.items() if path is not None}


def tokenizer_file(path: Path, *, key: GivenTokenizer = "tokenizer") -> Path:
    """Return the file that `data.tokenizer` or `data.source_tokenizer` names, directly or by its model directory."""
    name = GIVEN_TOKENIZERS[key]
    file = path / name if path.is_dir() else path
    if not file.is_file():
        raise ConfigError(f"data.{key} = {path}: there is no such file. Name a {name} or a model directory with one.")
    return file


def given_tokenizer(config: DataConfig, key: GivenTokenizer) -> Tokenizer:
    """Read the tokenizer that a key of [data] names; raise ConfigError if it is not of the kind that the text needs."""
    path, kind = given_tokenizers(config)[key], config.pieces_of(key)
    tokenizer = read_tokenizer(tokenizer_file(path, key=key))
    if tokenizer.kind != kind:
        remedy = f'Set data.pieces = "{tokenizer.kind}"' if kind == config.pieces else "Leave it out"
        raise ConfigError(
            f"data.{key} = {path} is of the kind {tokenizer.kind!r}, and the experiment asks for {kind!r}. {remedy}."
        )
    return tokenizer


def tokenizer_sha256(path: Path, *, key: GivenTokenizer = "tokenizer") -> str | None:
    """Return the hash of the tokenizer that a key of [data] names, or None if the file does not exist."""
    try:
        return sha256_of_file(tokenizer_file(path, key=key))
    except ConfigError:
        return None


def _hash_key(key: str) -> str:
    return f"{key}_sha256"


def _compared(config: DataConfig) -> dict[str, Any]:
    stated = config.stated()
    del stated["expected_pairs"]
    return stated


def unchanged(corpora: Corpora) -> Corpora | None:
    """Return the corpora with current modification times, or None if the content of any file changed."""
    renewed: dict[str, tuple[ReadCorpus, ...]] = {}
    for split, entries in corpora.items():
        renewed[split] = ()
        for corpus in entries:
            files = [_renewed(file) for file in corpus.files]
            if None in files:
                return None
            renewed[split] += (corpus.model_copy(update={"files": tuple(files)}),)
    return renewed


def are_same_files(names: Sequence[str], corpora: Sequence[ReadCorpus]) -> bool:
    """Return whether the named files are byte for byte, and in this order, those that were read."""
    if len(names) != len(corpora):
        return False
    pairs = [(paths_of(name), corpus.files) for name, corpus in zip(names, corpora, strict=True)]
    try:
        return all(
            len(paths) == len(files) and all(_holds(path, file) for path, file in zip(paths, files, strict=True))
            for paths, files in pairs
        )
    except OSError:  # an unreadable file cannot be compared
        return False


def missing_files(corpora: Corpora) -> list[str]:
    """Return the files that no longer exist."""
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
