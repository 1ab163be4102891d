"""The ids of the tokens that stand for no text: padding, unknown, start and end.

A tokenizer says which ids they are; networks, batches and search take them from it.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class SpecialTokens:
    """Ids of the special tokens of one vocabulary. Two of them may share an id, as start and end do in fairseq."""

    padding: int
    unknown: int
    start: int
    end: int

    @property
    def ids(self) -> tuple[int, ...]:
        """All ids, ascending."""
        return tuple(sorted({self.padding, self.unknown, self.start, self.end}))

    @property
    def never_generated(self) -> tuple[int, ...]:
        """The ids that no output may hold: all but the end token's, ascending."""
        return tuple(sorted({self.padding, self.unknown, self.start} - {self.end}))


OWN_SPECIAL_TOKENS = SpecialTokens(padding=0, unknown=1, start=2, end=3)
"""The ids of every vocabulary that transduce learns."""
