"""Portions of a stream: large enough to process quickly, and of bounded size in memory even if lines are long."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")

_ITEMS, _CHARACTERS = 4096, 1 << 20


def in_portions(items: Iterable[Item], characters: Callable[[Item], int]) -> Iterator[list[Item]]:
    """Yield all items in order, up to 4,096 at a time, and fewer if they have many characters."""
    portion: list[Item] = []
    size = 0
    for item in items:
        portion.append(item)
        size += characters(item)
        if len(portion) >= _ITEMS or size >= _CHARACTERS:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion
