"""Throwing bad pairs out of a parallel corpus."""
