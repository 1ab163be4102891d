"""A corpus of our own, generated from a grammar, and the demonstration that uses it."""
