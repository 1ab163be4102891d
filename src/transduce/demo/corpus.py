"""The bundled English-German corpus: sentence pairs in five splits, and labels for the words of the test sentences.

A grammar with about 760 words wrote the corpus (`demo_grammar/` in the repository, which is not installed).

- train: 60,000 pairs of at most 18 words on either side.
- valid, test: 500 pairs each of the same kind of sentences.
- test_combinations: 500 pairs, each with a verb and an object, or an adjective and a noun, that never meet in training.
- test_long: 500 pairs, each longer on both sides than any pair of training.

No sentence is in two splits or twice in one. `corpus.tsv.bz2` has one line per pair with four columns: split, English,
German, and the labels of a test sentence, a JSON list of objects with the fields of `Constituent` that have a value.
The lines of train come last.
"""

import bz2
import itertools
import json
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from transduce.errors import DataError
from transduce.files import write_atomically

FILE = "corpus.tsv.bz2"

TextPair = tuple[str, str]
LabelledSplit = Literal["test", "test_combinations", "test_long"]
Role = Literal[
    "verb", "subject", "accusative", "dative", "oblique", "place", "predicate", "comparison", "owner", "addressee"
]
Tense = Literal["present", "progressive", "past", "perfect", "pluperfect", "future"]


class CorpusSplits(NamedTuple):
    """The sentence pairs of each split, English first."""

    train: list[TextPair]
    valid: list[TextPair]
    test: list[TextPair]
    test_combinations: list[TextPair]
    test_long: list[TextPair]


class Constituent(NamedTuple):
    """A verb group, noun, name or pronoun of a sentence pair, and what the grammar knows about it.

    Role, number and gender are those of the German sentence: "accusative", "dative" and "oblique" (after a preposition)
    are the objects of the German verb, the polite "Sie" is plural, and an English noun has the gender of its German
    translation, in the plural too. A verb has the number of its subject. Articles, adjectives, adverbs, prepositions
    and conjunctions have no labels.
    """

    clause: int
    """The number of the clause, 0 for the main clause; a verb, its subject and its objects share the number."""
    role: Role
    english: tuple[int, ...]
    """The positions of its words in the English sentence, split at spaces; empty if English leaves it out."""
    german: tuple[int, ...]
    """The positions of its words in the German sentence."""
    number: Literal["singular", "plural"] | None = None
    gender: Literal["masculine", "feminine", "neuter"] | None = None
    tense: Tense | None = None
    """Of a finite verb only; an infinitive and a command have neither tense nor number."""


def corpus(*, pairs: int, held_out: int = 500) -> CorpusSplits:
    """Return the first `pairs` sentence pairs of train and the first `held_out` of each other split."""
    wanted = {split: pairs if split == "train" else held_out for split in CorpusSplits._fields}
    found: dict[str, list[TextPair]] = {split: [] for split in wanted}
    for split, english, german, _ in _rows():
        if len(found[split]) < wanted[split]:
            found[split].append((english, german))
        elif split == "train":  # the last split of the file
            break
    for split, count in wanted.items():
        if len(found[split]) < count:
            raise DataError(
                f"The bundled corpus has {len(found[split]):,} pairs in {split}, not {count:,}. Ask for fewer."
            )
    return CorpusSplits(**found)


def labels(split: LabelledSplit) -> list[tuple[Constituent, ...]]:
    """Return the labels of the 500 sentences of a test split, in the order of `corpus`."""
    if split not in get_args(LabelledSplit):
        raise DataError(
            f"The bundled corpus has no labels for {split!r}, only for {', '.join(get_args(LabelledSplit))}."
        )
    held_out = itertools.takewhile(lambda row: row[0] != "train", _rows())
    return [tuple(_constituent(item) for item in json.loads(row[3])) for row in held_out if row[0] == split]


def write_corpus(folder: Path, *, pairs: int, held_out: int = 500) -> None:
    """Write each split as `<split>.tsv` into `folder`: English, tab, German, newline, in UTF-8."""
    found = corpus(pairs=pairs, held_out=held_out)
    for split, taken in found._asdict().items():
        write_atomically(folder / f"{split}.tsv", "".join(f"{english}\t{german}\n" for english, german in taken))


def _rows() -> Iterator[list[str]]:
    """Yield split, English, German and labels of every line of the file."""
    with (
        resources.files(__package__).joinpath(FILE).open("rb") as packed,
        bz2.open(packed, "rt", encoding="utf-8", newline="\n") as lines,
    ):
        for line in lines:
            yield line.rstrip("\n").split("\t")


def _constituent(item: dict[str, Any]) -> Constituent:
    return Constituent(**{**item, "english": tuple(item["english"]), "german": tuple(item["german"])})
