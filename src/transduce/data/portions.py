"""Work in portions: large enough to be quick, small enough for any memory, however long the lines."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")

_ITEMS, _CHARACTERS = 4096, 1 << 20


def in_portions(items: Iterable[Item], characters: Callable[[Item], int]) -> Iterator[list[Item]]:
    """Yield all items in order, some thousands at a time and fewer where they are long."""
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
