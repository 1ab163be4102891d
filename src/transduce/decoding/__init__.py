"""Section 6.1 of the paper: beam search with length penalty, also with terms to hold, and sampling; no network here."""
