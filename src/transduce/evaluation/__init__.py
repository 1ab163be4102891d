"""From text to an honest number: scores with signatures, protocols, significance, perplexity, records."""
