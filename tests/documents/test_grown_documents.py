"""The time and memory of every parser grow in proportion to its input: random hostile documents, up to 10 MB."""

import os
import resource
import sys
from collections.abc import Callable

import pytest
from tests.documents.grown import GRAMMARS, grown
from tests.documents.growth import MOST_GROWTH, require_linear_growth, seconds

LARGE, PART = 10 << 20, 8
MOST_BYTES = (
    500  # of memory for each byte of a document; short paragraphs of HTML took 290: texts, gaps, splices, report
)
MOST_AT_START = 64 << 20


@pytest.mark.parametrize("format_name", GRAMMARS)
def test_some_random_documents_take_linear_time_and_memory(format_name: str) -> None:
    for number in range(3):
        require_linear_growth(format_name, grown(format_name, number))


@pytest.mark.slow
@pytest.mark.extended
@pytest.mark.parametrize("format_name", GRAMMARS)
def test_many_random_documents_take_linear_time_and_memory(format_name: str) -> None:
    for number in range(3, 60):
        require_linear_growth(format_name, grown(format_name, number))


@pytest.mark.slow
@pytest.mark.extended
@pytest.mark.skipif(sys.platform != "linux", reason="measures memory in children, in the unit of Linux")
@pytest.mark.parametrize("format_name", GRAMMARS)
def test_ten_megabytes_take_eight_times_the_work_of_an_eighth(format_name: str) -> None:
    for number in (1, 2):
        shape = grown(format_name, number)
        few = many = bytes_of_few = bytes_of_many = 0.0
        for _ in range(2):  # other work on the machine disturbs single tries
            few, bytes_of_few = _measured(format_name, shape, LARGE // PART)
            many, bytes_of_many = _measured(format_name, shape, LARGE)
            if many <= MOST_GROWTH * max(few, 0.01):
                break
        assert many <= MOST_GROWTH * max(few, 0.01), f"{number}: {few:.2f} s became {many:.2f} s"
        assert bytes_of_many <= MOST_BYTES * LARGE + MOST_AT_START, f"{number}: {bytes_of_many:,.0f} bytes"
        assert bytes_of_few <= MOST_BYTES * LARGE // PART + MOST_AT_START, f"{number}: {bytes_of_few:,.0f} bytes"


def _measured(format_name: str, shape: Callable[[int], bytes], size: int) -> tuple[float, float]:
    """Return the processor time and the memory that a document takes in a child."""
    inlet, outlet = os.pipe()
    child = os.fork()
    if child == 0:
        answer = b"failed"
        try:
            content = shape(size)
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            taken = seconds(format_name, content)
            answer = f"{taken} {1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)}".encode()
        finally:
            os.write(outlet, answer)
            os._exit(0)
    os.close(outlet)
    with os.fdopen(inlet, "rb") as answers:
        found = answers.read().split()
    os.waitpid(child, 0)
    assert len(found) == 2, f"the child failed or ran out of memory at {size:,} bytes"
    return float(found[0]), float(found[1])
