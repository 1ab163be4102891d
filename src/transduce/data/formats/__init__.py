"""Formats of parallel text: `Corpus` reads pairs of sentences from all of them, with one module per format.

A corpus is named by a string: `a.en,a.de` for two aligned files, `en.po,de.po` for two catalogues with the same keys,
else one file whose ending gives its format. To add a format, write its reader (a function from `CorpusFile` and
`Selection` to an iterator of `Pair`) and list it in `READERS`.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from transduce.data.config import TREEBANKS
from transduce.data.formats.aligned import read_aligned
from transduce.data.formats.corpus_file import COMPRESSIONS, CorpusFile, Fingerprint, without_tilde
from transduce.data.formats.delimited import read_csv, read_tsv
from transduce.data.formats.json_lines import read_json_lines
from transduce.data.formats.pair import Pair, Selection
from transduce.data.formats.po import read_po, read_po_by_key
from transduce.data.formats.tmx import read_tmx
from transduce.data.formats.treebank import read_treebank
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
    **dict.fromkeys(TREEBANKS, read_treebank),
}


class Corpus:
    """One entry of `data.train`, `data.valid` or `data.test`."""

    def __init__(
        self, name: str, selection: Selection | None = None, *, on_read: Callable[[int], None] = lambda count: None
    ) -> None:
        """`on_read` is called with the number of bytes of every read from the files."""
        self.name = name
        self.selection = selection or Selection()
        self.files = tuple(CorpusFile(path, on_read=on_read) for path in paths_of(name))
        if len(self.files) == 1 and self.files[0].kind not in READERS:
            raise DataError(
                f"{name!r} is one file, and its ending is not a known format. Write two aligned files as a.en,a.de; "
                f"one file of pairs must end in {', '.join(READERS)} and may be compressed ({', '.join(COMPRESSIONS)})."
            )

    def pairs(self) -> Iterator[Pair]:
        """Yield every pair, in order. Call it once."""
        if len(self.files) == 2 and all(file.kind == ".po" for file in self.files):
            return read_po_by_key(*self.files)
        if len(self.files) == 2:
            return read_aligned(*self.files)
        return READERS[self.files[0].kind](self.files[0], self.selection)

    def fingerprints(self) -> tuple[Fingerprint, ...]:
        """Return the files' fingerprints; call it after reading all pairs."""
        return tuple(file.fingerprint() for file in self.files)


def paths_of(name: str) -> tuple[Path, ...]:
    """Return the one or two files that a corpus' name stands for; a file's own name may contain a comma."""
    if not name.strip():
        raise DataError("The name of a corpus is empty. Write two aligned files as a.en,a.de, or one file of pairs.")
    parts = name.split(",")
    if len(parts) == 1 or without_tilde(name).exists():
        return (without_tilde(name),)
    splits = [
        (without_tilde(",".join(parts[:cut]).strip()), without_tilde(",".join(parts[cut:]).strip()))
        for cut in range(1, len(parts))
    ]
    whole = [split for split in splits if all(path.exists() for path in split)]
    if not whole and len(splits) > 1:
        raise DataError(f"{name!r} names more than two files. Write two aligned files as a.en,a.de, others separately.")
    return (whole or splits)[0]
