"""Models that other programs trained, read without running anything in them, as model directories of our own."""
