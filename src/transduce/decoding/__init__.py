"""Beam search with length penalty (section 6.1), beam search with required terms, and sampling; without torch."""
