"""Section 6.1 of the paper: beam search with length penalty, and sampling; knows no network."""
