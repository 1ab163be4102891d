"""Division of the pairs into training, validation and test text, without duplicates where these are dropped."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from transduce.data.cleaning import Dropped, Rule, rules_for
from transduce.data.config import DataConfig
from transduce.data.corpus_text import CorpusText, ReadText
from transduce.data.encoding import PairRows, SplitPairs
from transduce.data.held_out import SplitPart, are_repeated, held_out_sizes, hold_out
from transduce.errors import DataError


def unrepeated(train: CorpusText, config: DataConfig) -> PairRows:
    """Return the training pairs without duplicates, or all if `data.drop_duplicates` is off."""
    if not config.drop_duplicates:
        return np.arange(len(train))
    return np.flatnonzero(~are_repeated(train.source_hashes, train.target_hashes))


def repetitions(train: CorpusText, rows: PairRows) -> Dropped:
    """Return the training pairs that are not among `rows` as dropped duplicates."""
    dropped = Dropped()
    others = np.ones(len(train), dtype=np.bool_)
    others[rows] = False
    for row in np.flatnonzero(others).tolist():
        source, target = train.pair(row)
        dropped.add(Rule.DUPLICATE, origin=train.origin(row), source=source, target=target)
    return dropped


def divide(texts: Mapping[str, CorpusText], rows: PairRows, config: DataConfig) -> dict[str, SplitPairs]:
    """Return the pairs of each split that has any; `rows` are the training pairs to divide."""
    train, rules = texts["train"], rules_for("train", config)
    may_leave = train.corpus_numbers[rows] < len(config.train or config.names("train"))
    valid, test = held_out_sizes(config, int(may_leave.sum()))
    sources = train.folded_source_hashes[rows]
    # Different sentences rightly have the same tree, so a tree links no pairs.
    hashes = sources, sources if config.has_trees else train.folded_target_hashes[rows]
    parts = hold_out(*hashes, valid=valid, test=test, seed=config.held_out_seed, may_leave=may_leave)
    shares = {"train": SplitPairs(train, rows[parts == SplitPart.TRAIN], rules)}
    for split, part in (("valid", SplitPart.VALID), ("test", SplitPart.TEST)):
        if len(texts[split]):
            shares[split] = SplitPairs(texts[split], np.arange(len(texts[split])), rules_for(split, config))
        elif (parts == part).any():
            shares[split] = SplitPairs(train, rows[parts == part], rules, is_held_out=True)
    if valid and "valid" not in shares:
        raise DataError(
            f"No pair can be held out for validation: common sources or targets link all {len(rows):,} training pairs "
            "to each other. Give data.valid, or set data.held_out_valid = 0."
        )
    return shares


def refuse_empty(texts: Mapping[str, CorpusText], read: ReadText) -> None:
    """Refuse a given split if cleaning dropped all its pairs."""
    for split, text in texts.items():
        given = sum(corpus.pairs for corpus in read.corpora[split])
        if read.corpora[split] and len(text) == 0:
            counts = Dropped.from_json(read.dropped[split]).counts
            raise DataError(
                f"None of the {given:,} pairs of data.{split} is left after cleaning ({counts_in_words(counts)}). "
                "Look at the files, or switch rules off (data.drop_…)."
            )


def refuse_unexpected(read: ReadText, expected: Mapping[str, int]) -> None:
    """Refuse a file that does not hold as many pairs as `data.expected_pairs` says."""
    for corpus in (corpus for corpora in read.corpora.values() for corpus in corpora):
        wanted = expected.get(Path(corpus.path).name, corpus.pairs)
        if corpus.pairs != wanted:
            raise DataError(
                f"{corpus.path} holds {corpus.pairs:,} pairs, but data.expected_pairs says {wanted:,}: the download is "
                "incomplete, or another file. Download it again as the recipe says, or use it as it is with "
                "--set 'data.expected_pairs={}'."
            )


def counts_in_words(counts: Mapping[str, int]) -> str:
    """Return counts by reason in one line."""
    return ", ".join(f"{reason}: {count:,}" for reason, count in sorted(counts.items())) or "nothing dropped"
