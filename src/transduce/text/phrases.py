"""Many phrases looked for in a text at once, in a time that hardly depends on how many there are.

All phrases that begin a text are prefixes of the last phrase that is not after it in order. So one search by halves
finds the candidates at a place: that phrase, the longest phrase that begins it, and so on.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator


class Phrases:
    """A set of phrases, none of them empty."""

    def __init__(self, phrases: Iterable[str]) -> None:
        self._sorted = sorted(set(phrases))
        self._firsts = {phrase[0] for phrase in self._sorted}
        self._longest = max(map(len, self._sorted), default=0)
        self._inner: list[int] = []  # the number of the longest other phrase that begins each phrase, or -1
        for number, phrase in enumerate(self._sorted):
            inner = number - 1
            while inner >= 0 and not phrase.startswith(self._sorted[inner]):
                inner = self._inner[inner]
            self._inner.append(inner)

    def found(
        self, text: str, *, fits: Callable[[int, int], bool] = lambda start, end: True
    ) -> Iterator[tuple[int, int]]:
        """Yield start and end of the phrases in a text that fit, without overlap: the first, then the longest."""
        start = 0
        while start < len(text):
            end = self._end(text, start, fits) if text[start] in self._firsts else start
            if end > start:
                yield start, end
            start = max(end, start + 1)

    def _end(self, text: str, start: int, fits: Callable[[int, int], bool]) -> int:
        rest = text[start : start + self._longest]
        number = bisect_right(self._sorted, rest) - 1
        while number >= 0:
            end = start + len(self._sorted[number])
            if rest.startswith(self._sorted[number]) and fits(start, end):
                return end
            number = self._inner[number]
        return start
