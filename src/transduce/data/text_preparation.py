"""Preparation of text without translations, for a language model: files to token stores of contiguous blocks.

Lines are normalised as every text is, and each ends in the end token, which stands for the line break; those of
GPT-2's byte-level pieces stay as they are, and the line break is a piece. `data.unit` says what a text is: the whole
`stream` of lines, a `document` (lines up to an empty one, which is a second end token), or a `line`. A text is cut
into blocks of `data.max_length` tokens, and no block holds tokens of two texts. The prompt of a block, its source in
the store, is the token before it; that of a text's first block is the start token.

The end of the text, `data.held_out_tail` of its characters, is held out for validation unless `data.valid` is given: a
random choice of blocks would put the neighbours of a validation block into training. Files are read as streams, three
times: to count, to learn the tokenizer from the training part, and to encode.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

from transduce.data.cleaning import Dropped
from transduce.data.config import DataConfig
from transduce.data.corpus_text import ReadCorpus
from transduce.data.formats.corpus_file import CorpusFile, without_tilde
from transduce.data.portions import in_portions
from transduce.data.report import CorpusReport, PreparationReport, SplitReport, padding_of
from transduce.data.reuse import given_tokenizer
from transduce.data.stages import RECORD, PreparedRecord
from transduce.data.token_store import TokenStore, token_store_written
from transduce.errors import DataError
from transduce.files import fsync_directory, remove_leftovers, write_atomically
from transduce.progress import Progress
from transduce.text.normalization import normalize
from transduce.text.tokenizer import Tokenizer
from transduce.text.tokenizer_files import TOKENIZER, learn_tokenizer

_SPLITS = ("train", "valid")


def prepare_text(
    config: DataConfig, folder: Path, *, settings: dict[str, Any], vocabulary_size: int, progress: Progress
) -> None:
    """Write the tokenizer, the stores and, last, the record of a language model's text."""
    remove_leftovers(folder)
    for name in (RECORD, TOKENIZER):
        (folder / name).unlink(missing_ok=True)
    for name in _SPLITS:
        shutil.rmtree(folder / name, ignore_errors=True)
    fsync_directory(folder)
    with progress.stage("reading the text", unit="lines") as stage:
        corpora = {split: _read(config.names(split), stage.advance) for split in _SPLITS}
    held_out = 0 if config.valid else _lines_held_out(config)
    total = sum(corpus.pairs for corpus in corpora["train"])
    if total - held_out < 1:
        raise DataError("The text is too short to hold out its end. Give more text, or data.valid.")

    def texts(split: str) -> Iterator[str]:
        if held_out and split == "valid":
            return islice(_lines(config, "train"), total - held_out, total)
        return islice(_lines(config, split), 0, total - held_out if split == "train" else None)

    tokenizer = _tokenizer(config, lambda: texts("train"), vocabulary_size=vocabulary_size, progress=progress)
    write_atomically(folder / TOKENIZER, tokenizer.to_bytes())
    splits = [split for split in _SPLITS if split == "train" or held_out or config.valid]
    stores = {}
    for split in splits:
        with progress.stage(f"encoding {split}", unit="lines") as stage:
            _encode(folder / split, texts(split), tokenizer, config, stage.advance)
        stores[split] = TokenStore.open(folder / split)
    report = PreparationReport(
        source_language=None,
        target_language=config.target_language,
        corpora={split: tuple(map(CorpusReport.of, found)) for split, found in corpora.items()},
        splits={
            split: SplitReport.of(
                store,
                Dropped(),
                is_held_out=split == "valid" and not config.valid,
                max_length=config.max_length,
                training=None,
            )
            for split, store in stores.items()
        },
        vocabulary_size=tokenizer.vocabulary_size,
        tokenizer_sha256=tokenizer.fingerprint,
        tokenizer_was_learned=config.tokenizer is None,
        padding=padding_of(stores["train"]),
    )
    PreparedRecord(settings=settings, corpora=corpora, report=report).write(folder)


def _read(names: Iterable[str], advance: Callable[[int], None]) -> tuple[ReadCorpus, ...]:
    """Read files to their ends; return the number of lines and the fingerprint of each."""
    found = []
    for name in names:
        file, count = CorpusFile(without_tilde(name)), 0
        for count, _ in enumerate(file.lines(), start=1):
            if count % 1000 == 0:
                advance(1000)
        found.append(ReadCorpus(name=name, path=str(file.path), pairs=count, files=(file.fingerprint(),)))
    return tuple(found)


def _lines(config: DataConfig, split: str) -> Iterator[str]:
    lines = chain.from_iterable(CorpusFile(without_tilde(name)).lines() for name in config.names(split))
    return lines if config.pieces == "byte_pieces" else map(normalize, lines)


def _lines_held_out(config: DataConfig) -> int:
    """Return how many lines at the end hold the share to hold out; of documents, whole ones."""
    total = sum(len(line) + 1 for line in _lines(config, "train"))
    kept, read, numbers = int(total * (1 - config.held_out_tail)), 0, 0
    boundary: int | None = None
    is_open = False
    for line in _lines(config, "train"):
        if boundary is None and read >= kept and not (config.unit == "document" and is_open):
            boundary = numbers
        read, numbers, is_open = read + len(line) + 1, numbers + 1, bool(line)
    return numbers - boundary if boundary is not None else 0


def _tokenizer(
    config: DataConfig, lines: Callable[[], Iterator[str]], *, vocabulary_size: int, progress: Progress
) -> Tokenizer:
    if config.tokenizer is not None:
        return given_tokenizer(config, "tokenizer")
    assert config.pieces != "imported", "DataConfig asks for the tokenizer then"
    assert config.pieces != "byte_pieces", "likewise"
    return learn_tokenizer(config.pieces, lines(), vocabulary_size=vocabulary_size, progress=progress)


def _encode(
    folder: Path, lines: Iterator[str], tokenizer: Tokenizer, config: DataConfig, advance: Callable[[int], None]
) -> None:
    """Write the store of some lines; its notes count the characters and bytes of the text, line ends included."""
    counts = {"characters": 0, "bytes": 0}

    def encoded() -> Iterator[list[int]]:
        for some in in_portions(lines, len):
            broken = [f"{line}\n" for line in some] if tokenizer.has_line_breaks else some
            for line, ids in zip(some, tokenizer.encode_all(broken), strict=True):
                if line or config.unit != "line":
                    counts["characters"] += len(line) + 1
                    counts["bytes"] += len(line.encode("utf-8")) + 1
                    yield ids if tokenizer.has_line_breaks else [*ids, tokenizer.special.end]
            advance(len(some))

    with token_store_written(folder, vocabulary_size=tokenizer.vocabulary_size) as writer:
        rows = _blocks(encoded(), config, start=tokenizer.special.start)
        for some in in_portions(rows, lambda row: len(row[1])):
            writer.append([[before] for before, _ in some], [block for _, block in some], texts=[("", "")] * len(some))
        writer.notes.update({"dropped": Dropped().as_json(), **counts})
    if not counts["characters"]:
        raise DataError(f"There is no text for {folder.name}: every line is empty. Check the files.")


def _blocks(lines: Iterator[list[int]], config: DataConfig, *, start: int) -> Iterator[tuple[int, list[int]]]:
    """Yield the token before each block, and the block."""
    before, waiting, length = start, list[int](), config.max_length
    for ids in lines:
        waiting += ids
        is_end = config.unit == "line" or (config.unit == "document" and len(ids) == 1)
        while len(waiting) >= length:
            yield before, waiting[:length]
            before, waiting = waiting[length - 1], waiting[length:]
        if is_end:
            if waiting:
                yield before, waiting
            before, waiting = start, []
    if waiting:
        yield before, waiting
