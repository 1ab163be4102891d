"""Two aligned files, written `a.en,a.de`: line n of one translates line n of the other."""

from collections.abc import Iterator
from itertools import zip_longest

from transduce.data.formats.corpus_file import CorpusFile
from transduce.data.formats.pair import Pair
from transduce.errors import DataError


def read_aligned(source: CorpusFile, target: CorpusFile) -> Iterator[Pair]:
    """Yield the pairs of two files; raise DataError at the end if one has more lines than the other."""
    counts = [0, 0]
    first_blank = ""
    for number, (source_line, target_line) in enumerate(zip_longest(source.lines(), target.lines()), start=1):
        counts[0] += source_line is not None
        counts[1] += target_line is not None
        if not first_blank and (source_line == "" or target_line == ""):
            first_blank = f"{source.path if source_line == '' else target.path}:{number}"
        if source_line is not None and target_line is not None:
            yield Pair(source_line, target_line, number)
    if counts[0] != counts[1]:
        look = (
            f"look first at {first_blank}, the first blank line of either file" if first_blank else "compare their ends"
        )
        raise DataError(
            f"{target.path} has {counts[1]:,} lines but {source.path} has {counts[0]:,}. Line n of one must translate "
            f"line n of the other; {look}."
        )
