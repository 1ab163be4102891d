import bz2
import gzip
import lzma
from collections.abc import Callable

import pytest
import zstandard

Pack = Callable[[bytes], bytes]


@pytest.fixture
def packers() -> dict[str, Pack]:
    """How each kind of packed file is made."""
    return {
        "": bytes,
        ".gz": gzip.compress,
        ".xz": lzma.compress,
        ".bz2": bz2.compress,
        ".zst": zstandard.ZstdCompressor().compress,
    }
