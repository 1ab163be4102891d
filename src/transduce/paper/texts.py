"""Parts of a corpus to train and test on, where a claim is about the amount of text or the length of sentences."""

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from transduce.data.formats import Corpus
from transduce.files import write_atomically

_COUNTED = 10_000  # pairs of whose lengths a quantile is taken


@dataclass(frozen=True)
class Part:
    """Which pairs of a corpus a run uses."""

    pairs: int | None = None
    """Train on so many pairs, from the beginning."""
    shorter: float | None = None
    """Train on this share of the pairs, those with the shortest sources, and validate on longer ones only."""

    def written(self, corpora: Mapping[str, str], folder: Path) -> dict[str, str]:
        """Write the part of each split into `folder`, unless it is there; return the names of its files."""
        paths = {split: folder / f"{split}.tsv" for split in corpora}
        if all(path.exists() for path in paths.values()):
            return {split: str(path) for split, path in paths.items()}
        folder.mkdir(parents=True, exist_ok=True)
        bound = None if self.shorter is None else _quantile(corpora["train"], self.shorter)
        for split, name in corpora.items():
            pairs: Iterable[tuple[str, str]] = _pairs(name)
            if bound is not None:
                pairs = [pair for pair in pairs if (_words(pair) <= bound) == (split == "train")]
            if split == "train":
                pairs = itertools.islice(pairs, self.pairs)
            write_atomically(paths[split], "".join(f"{source}\t{target}\n" for source, target in pairs))
        return {split: str(path) for split, path in paths.items()}


def _pairs(name: str) -> Iterable[tuple[str, str]]:
    tab_is_no_text = str.maketrans("\t", " ")
    for pair in Corpus(name).pairs():
        if not pair.skipped:
            yield pair.source.translate(tab_is_no_text), pair.target.translate(tab_is_no_text)


def _quantile(name: str, share: float) -> int:
    lengths = sorted(_words(pair) for pair in itertools.islice(_pairs(name), _COUNTED))
    return lengths[int(share * (len(lengths) - 1))]


def _words(pair: tuple[str, str]) -> int:
    return len(pair[0].split())
