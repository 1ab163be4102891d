"""Parallel text in, whatever people have it in: one door, and behind it one file per format.

A corpus is named by a text: `a.en,a.de` for two aligned files (`en.po,de.po` for two catalogues that share their
keys), else one file whose name says what it is. To add a format, write its reader (`CorpusFile` and `Selection` in, an
iterator of `Pair` out) and name it in `READERS`.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from transduce.data.formats.aligned import read_aligned
from transduce.data.formats.corpus_file import COMPRESSIONS, CorpusFile, Fingerprint
from transduce.data.formats.delimited import read_csv, read_tsv
from transduce.data.formats.json_lines import read_json_lines
from transduce.data.formats.pair import Pair, Selection
from transduce.data.formats.po import read_po, read_po_by_key
from transduce.data.formats.tmx import read_tmx
from transduce.data.formats.xliff import read_xliff
from transduce.errors import DataError

__all__ = ["READERS", "Corpus", "CorpusFile", "Fingerprint", "Pair", "Selection"]

READERS: Mapping[str, Callable[[CorpusFile, Selection], Iterator[Pair]]] = {
    ".tsv": read_tsv,
    ".csv": read_csv,
    ".jsonl": read_json_lines,
    ".po": read_po,
    ".tmx": read_tmx,
    ".xlf": read_xliff,
    ".xliff": read_xliff,
}


class Corpus:
    """One entry of `data.train`, `data.valid` or `data.test`."""

    def __init__(
        self, name: str, selection: Selection | None = None, *, on_read: Callable[[int], None] = lambda count: None
    ) -> None:
        """`on_read` is told how many bytes more of its files were read."""
        self.name = name
        self.selection = selection or Selection()
        self.files = tuple(CorpusFile(path, on_read=on_read) for path in paths_of(name))
        if len(self.files) == 1 and self.files[0].kind not in READERS:
            raise DataError(
                f"{name!r} is one file, and its name does not say what kind. Two aligned files are written "
                f"a.en,a.de; one file of pairs ends in {', '.join(READERS)} (and may be packed: "
                f"{', '.join(COMPRESSIONS)})."
            )

    def pairs(self) -> Iterator[Pair]:
        """Yield every pair, in order. May be called once."""
        if len(self.files) == 2 and all(file.kind == ".po" for file in self.files):
            return read_po_by_key(*self.files)
        if len(self.files) == 2:
            return read_aligned(*self.files)
        return READERS[self.files[0].kind](self.files[0], self.selection)

    def fingerprints(self) -> tuple[Fingerprint, ...]:
        """Return what the files were; call it when all pairs have been read."""
        return tuple(file.fingerprint() for file in self.files)


def paths_of(name: str) -> tuple[Path, ...]:
    """Return the one or two files that a corpus' name means; a comma that belongs to a file's own name is allowed."""
    if not name.strip():
        raise DataError("The name of a corpus is empty. Write two aligned files as a.en,a.de, or one file of pairs.")
    parts = name.split(",")
    if len(parts) == 1 or Path(name).expanduser().exists():
        return (Path(name).expanduser(),)
    splits = [
        (Path(",".join(parts[:cut]).strip()).expanduser(), Path(",".join(parts[cut:]).strip()).expanduser())
        for cut in range(1, len(parts))
    ]
    whole = [split for split in splits if all(path.exists() for path in split)]
    if not whole and len(splits) > 1:
        raise DataError(f"{name!r} names more than two files. Write two aligned files as a.en,a.de; give others apart.")
    return (whole or splits)[0]
