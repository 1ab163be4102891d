"""Section 6.1 of the paper: beam search with length penalty, with terms to hold, and sampling; no torch, no network."""
