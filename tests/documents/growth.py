"""Whether the time and memory of finding a document's gaps and filling them grow in proportion to its size."""

import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from transduce.data.formats import Selection
from transduce.documents.filling import document_of, fill_at_once
from transduce.errors import DataError
from transduce.translator import Translation
from transduce.translator.translation import Alternative

FACTOR = 8
MOST_GROWTH = 30  # quadratic growth would be FACTOR² = 64; the clock is shared with other work, so the margin is wide
FEWEST, MOST = 200, 16_000
LEAST_SECONDS, LEAST_BYTES = 0.004, 1 << 16


def same(text: str) -> Translation:
    return Translation(text, (Alternative(text, 0.0, 0.0, (), is_finished=True),))


def work(format_name: str, content: bytes) -> None:
    path = Path(f"x.{format_name}")
    try:
        document = document_of(content, format_name, path=path, selection=Selection("en", "de"))
        fill_at_once(document, format_name, lambda texts, first: [same(text) for text in texts])
    except DataError:
        pass  # a refusal counts too: it must come in time


def seconds(format_name: str, content: bytes) -> float:
    start = time.process_time()
    work(format_name, content)
    return time.process_time() - start


def peak_bytes(format_name: str, content: bytes) -> int:
    tracemalloc.start()
    try:
        work(format_name, content)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def require_linear_growth(format_name: str, shape: Callable[[int], bytes]) -> None:
    """Fail if a document of a shape, FACTOR times as large, takes far more than FACTOR times the time or memory."""
    size = FEWEST
    while size < MOST and seconds(format_name, shape(size)) < LEAST_SECONDS:
        size *= 2
    for remaining in (2, 1, 0):  # other work on the machine disturbs single tries
        few = max(seconds(format_name, shape(size)), LEAST_SECONDS / 2)
        many = seconds(format_name, shape(size * FACTOR))
        if many <= MOST_GROWTH * few:
            break
        assert remaining, f"{few:.3f} s for {size:,} became {many:.3f} s for {size * FACTOR:,}"
    little, much = (peak_bytes(format_name, shape(count)) for count in (FEWEST, FEWEST * FACTOR))
    assert much <= 2 * FACTOR * max(little, LEAST_BYTES), f"{little:,} bytes became {much:,}"
