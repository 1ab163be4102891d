"""Section 3 of the paper, in its order: pure torch, no files, no ranks, no text.

    attention.py (3.2.1, 3.2.2) · masks.py (3.2.3) · feed_forward.py (3.3) · embedding.py (3.4) ·
    positional_encoding.py (3.5) · layers.py (3.1) · transformer.py (3)

A tensor's name ends in its shape: B batch · S source length · T target length · Q queries · K keys · D d_model ·
H heads · F d_ff · E d_k · G d_v · V vocabulary · W beam width · R rows, a beam each · N tokens of a whole batch ·
A all heads side by side.
"""

from transduce.model.config import ModelConfig
from transduce.model.transformer import Transformer

__all__ = ["ModelConfig", "Transformer"]
