"""Test sets: sources, with one or more references for each. Unlike training text, they are not cleaned."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from transduce.data.formats import Corpus, CorpusFile, Selection
from transduce.data.token_store import TokenStore
from transduce.errors import DataError
from transduce.evaluation.record import hash_of_lines
from transduce.evaluation.scores import require_equal_counts


@dataclass(frozen=True)
class ReferenceSet:
    """A test set; line n of every list belongs to sentence n."""

    name: str
    sources: list[str]
    references: list[list[str]]
    skipped: int = 0
    """The number of pairs left out because the file marks them as unfinished, such as fuzzy entries of a catalogue."""

    def hashes(self) -> dict[str, str]:
        """Return the SHA-256 of the sources and of each list of references."""
        lists = {"sources": self.sources}
        lists.update({f"reference {number}": lines for number, lines in enumerate(self.references, start=1)})
        return {name: hash_of_lines(lines) for name, lines in lists.items()}


def read_reference_set(
    name: str, *, selection: Selection | None = None, more_references: Sequence[Path] = ()
) -> ReferenceSet:
    """Read a test set in any format that training reads, and further references, one line for each sentence."""
    pairs = list(Corpus(name, selection).pairs())
    used = [pair for pair in pairs if not pair.skipped]
    if not used:
        raise DataError(f"{name} holds no pair to score. Give a test set with at least one sentence.")
    sources, references = [pair.source for pair in used], [[pair.target for pair in used]]
    references += [read_lines(path) for path in more_references]
    named = {name: sources, **{str(path): lines for path, lines in zip(more_references, references[1:], strict=True)}}
    require_equal_counts(named)
    return ReferenceSet(name, sources=sources, references=references, skipped=len(pairs) - len(used))


def test_set_of_run(run: Path) -> ReferenceSet | None:
    """Return the test pairs that a run held out of training, with their original text; None if there are none."""
    folder = run / "data" / "test"
    if not folder.is_dir():
        return None
    store = TokenStore.open(folder)
    pairs = [store.original(sentence) for sentence in range(len(store))]
    if not pairs:
        return None
    return ReferenceSet(str(folder), [source for source, _ in pairs], references=[[target for _, target in pairs]])


def read_hypotheses(path: Path, reference_set: ReferenceSet) -> list[str]:
    """Read hypotheses for this test set, one line for each sentence."""
    hypotheses = read_lines(path)
    require_equal_counts({str(path): hypotheses, reference_set.name: reference_set.sources})
    return hypotheses


def read_lines(path: Path) -> list[str]:
    """Read the lines of a text file, compressed or not."""
    return list(CorpusFile(path).lines())
