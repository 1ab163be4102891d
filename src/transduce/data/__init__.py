"""Turns parallel text into batches: formats, cleaning, the token store, batches of a token budget (5.1)."""
