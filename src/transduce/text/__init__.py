"""Text to token ids and back: normalisation, placeholders, BPE and character vocabularies. No torch here."""
