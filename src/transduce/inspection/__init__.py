"""What every attention head did: a model and token ids in, an `AttentionReport` out."""

from transduce.inspection.head_numbers import HeadNumbers, head_numbers
from transduce.inspection.report import AttentionReport
from transduce.inspection.tokens import Token

__all__ = ["AttentionReport", "HeadNumbers", "Token", "head_numbers"]
