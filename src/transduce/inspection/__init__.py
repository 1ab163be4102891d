"""Attention reports: the weights of every attention head of a model for one sentence and its translation."""

from transduce.inspection.head_numbers import HeadNumbers, head_numbers
from transduce.inspection.report import AttentionReport
from transduce.inspection.tokens import Token

__all__ = ["AttentionReport", "HeadNumbers", "Token", "head_numbers"]
