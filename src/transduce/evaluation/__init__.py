"""Evaluation on a test set: scores with signatures, protocols, significance, perplexity, records."""
