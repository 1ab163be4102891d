"""The content of the shipped corpus file; `transduce.demo.corpus` describes the format and reads it."""

import itertools
import json

from demo_grammar.labels import constituents
from demo_grammar.splits import Example, examples

SEED = 1
PAIRS = 60_000
HELD_OUT = 500
SPLITS = ("valid", "test", "test_combinations", "test_long", "train")


def content(*, pairs: int = PAIRS, held_out: int = HELD_OUT) -> str:
    """Return the lines of the file: split, English, German, and labels where the split is a test."""
    return "".join(
        f"{split}\t{found.english}\t{found.german}\t{_labels(found) if split.startswith('test') else ''}\n"
        for split in SPLITS
        for found in itertools.islice(examples(split, seed=SEED), pairs if split == "train" else held_out)
    )


def _labels(found: Example) -> str:
    parts = (
        {name: value for name, value in part._asdict().items() if value is not None}
        for part in constituents(found.tree)
    )
    return json.dumps(list(parts), separators=(",", ":"))
