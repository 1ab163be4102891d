"""Section 3 of the paper, in its order: pure torch, no files, no ranks, no text.

    attention.py (3.2.1, 3.2.2) · masks.py (3.2.3) · neighbourhood.py (4) · feed_forward.py (3.3) ·
    embedding.py (3.4) · positional_encoding.py (3.5) · normalization.py and layers.py (3.1) · transformer.py (3);
    ssru.py and decoding_cache.py, not in the paper; cost.py and parameters.py count without torch

A tensor's name ends in its shape: B batch · S source length · T target length · Q queries · K keys · D d_model ·
H heads · F d_ff · E d_k · G d_v · V vocabulary · W beam width · R rows, a beam each · N tokens of a whole batch ·
A all heads side by side.
"""

from typing import TYPE_CHECKING, Any

from transduce.model.config import ModelConfig

if TYPE_CHECKING:
    from transduce.model.transformer import Transformer

__all__ = ["ModelConfig", "Transformer"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - Python's own signature
    """Import the Transformer, and with it torch, when it is used."""
    if name != "Transformer":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from transduce.model.transformer import Transformer

    return Transformer
