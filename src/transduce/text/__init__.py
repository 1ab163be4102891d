"""Text to token ids and back: normalisation, placeholders, the shared BPE vocabulary. No torch here."""
