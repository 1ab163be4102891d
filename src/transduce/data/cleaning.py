"""Cleaning rules: each can be switched on or off, counts its dropped pairs exactly, and lists the first of them.

Only rules that cannot cost a good pair are on by default: an empty side, too many tokens for the model, control
characters. All rules that are on apply to training text, and only those for empty and overlong pairs to validation
text. Test text is not cleaned, because a score must be that of the whole file.

Control characters are U+0000 to U+001F and U+007F to U+009F without white space. U+0080 to U+009F mostly come from
Windows-1252 read as Latin-1, which damages the rest of the sentence too.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from transduce.data.config import DataConfig

LISTED = 1000
"""The most dropped pairs listed for each reason."""
_SHOWN = 300
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")


class Rule(StrEnum):
    """A reason to drop a pair, as reports name it."""

    EMPTY = "empty"
    CONTROL_CHARACTERS = "control characters"
    COPY = "source equal to target"
    DUPLICATE = "duplicate"
    TOO_LONG = "too long"
    LENGTH_RATIO = "length ratio"


def rules_for(split: str, config: DataConfig) -> frozenset[Rule]:
    """Return the rules that clean a split: `train`, `valid` or `test`."""
    switched_on = {
        Rule.EMPTY: config.drop_empty,
        Rule.CONTROL_CHARACTERS: config.drop_control_characters,
        Rule.COPY: config.drop_copies,
        Rule.DUPLICATE: config.drop_duplicates,
        Rule.TOO_LONG: config.drop_too_long,
        Rule.LENGTH_RATIO: config.drop_length_ratio,
    }
    allowed = {"train": set(Rule), "valid": {Rule.EMPTY, Rule.TOO_LONG}, "test": set()}[split]
    return frozenset(rule for rule in allowed if switched_on[rule])


def text_fault(source: str, target: str, *, normalized: tuple[str, str], rules: frozenset[Rule]) -> Rule | None:
    """Return the first rule that the text of a pair breaks."""
    if Rule.EMPTY in rules and not all(normalized):
        return Rule.EMPTY
    if Rule.CONTROL_CHARACTERS in rules and (_CONTROL.search(source) or _CONTROL.search(target)):
        return Rule.CONTROL_CHARACTERS
    if Rule.COPY in rules and normalized[0] == normalized[1]:
        return Rule.COPY
    return None


def length_fault(source: int, target: int, *, config: DataConfig, rules: frozenset[Rule]) -> Rule | None:
    """Return the first rule that the lengths of a pair break, in tokens with end tokens."""
    if Rule.TOO_LONG in rules and max(source, target) > config.max_length:
        return Rule.TOO_LONG
    if Rule.LENGTH_RATIO in rules and max(source, target) > config.max_length_ratio * min(source, target):
        return Rule.LENGTH_RATIO
    return None


@dataclass
class Dropped:
    """The number of dropped pairs for each reason, and the first `LISTED` of them."""

    counts: Counter[str] = field(default_factory=Counter)
    listed: list[tuple[str, str, str, str]] = field(default_factory=list)
    """File and line, reason, source and target, the last two shortened."""

    def add(self, reason: str, *, origin: str, source: str, target: str) -> None:
        """Count a dropped pair, and list it unless enough are listed for its reason."""
        self.counts[str(reason)] += 1
        if self.counts[str(reason)] <= LISTED:
            self.listed.append((origin, str(reason), _shown(source), _shown(target)))

    def as_json(self) -> dict[str, Any]:
        """Return counts and list as plain values."""
        return {"counts": dict(self.counts), "listed": [list(pair) for pair in self.listed]}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Dropped":
        """Return the object that `as_json` converted to `value`."""
        return cls(Counter(value["counts"]), [(str(a), str(b), str(c), str(d)) for a, b, c, d in value["listed"]])

    def update(self, other: "Dropped") -> None:
        """Add the counts and the list of `other`."""
        self.counts.update(other.counts)
        self.listed.extend(other.listed)


def dropped_list(dropped: Mapping[str, Dropped]) -> str:
    """Return the dropped pairs of all splits as the content of a TSV file; a row says how many are not listed."""
    rows = [("split", "where", "why", "source", "target")]
    for split, pairs in dropped.items():
        rows += [(split, *pair) for pair in pairs.listed]
        for reason, count in sorted(pairs.counts.items()):
            if count > LISTED:
                rows.append((split, "…", reason, f"and {count - LISTED:,} more", ""))
    return "".join("\t".join(row) + "\n" for row in rows)


def _shown(text: str) -> str:
    plain = " ".join(_CONTROL.sub("\ufffd", text[: _SHOWN + 1]).split())
    return plain if len(text) <= _SHOWN else plain[:_SHOWN] + "…"
