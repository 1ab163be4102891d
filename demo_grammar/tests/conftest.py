"""Trees of the grammar, made once for all tests."""

import itertools

import pytest

from demo_grammar.composition import compose, compose_long
from demo_grammar.tree import Sentence


@pytest.fixture(scope="session")
def trees() -> list[Sentence]:
    """Return sentences of every kind, the long ones too."""
    ordinary = itertools.islice(compose(11, stream="tests"), 4000)
    long = itertools.islice(compose_long(11, stream="tests"), 400)
    return [*ordinary, *long]
