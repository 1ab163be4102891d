"""Section 3 of the paper, in its order: pure torch, no files, no ranks, no text."""
