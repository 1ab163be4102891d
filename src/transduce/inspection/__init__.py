"""Attention reports: the weights of every attention head of a model for one sentence and its translation."""
