"""What every attention head did: a model and token ids in, an `AttentionReport` out."""

from transduce.inspection.report import AttentionReport, Token

__all__ = ["AttentionReport", "Token"]
