"""Section 6.1 of the paper: beam search, also with terms to hold or by consensus, and sampling; no network here."""
