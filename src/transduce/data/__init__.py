"""Parallel text in, batches out: formats, cleaning, the token store, batches of a token budget (5.1)."""
