"""Exports models to the formats of other programs, or to our own with smaller weights."""
