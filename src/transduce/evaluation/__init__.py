"""Honest scores: sacrebleu with its signature, the protocols of the literature, perplexity."""
