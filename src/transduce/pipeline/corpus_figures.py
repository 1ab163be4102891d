"""The figures of a corpus for the card and the report: pairs kept and dropped, lengths, files."""

import hashlib
from typing import Any

from transduce.data.report import PreparationReport


def corpus_figures(report: PreparationReport) -> dict[str, Any]:
    """Return the figures of a prepared corpus by name, with its files and their hashes last."""
    figures: dict[str, Any] = {}
    for split, part in report.splits.items():
        held_out = " (held out)" if part.is_held_out else ""
        figures[f"{split} pairs{held_out}"] = part.pairs
        figures[f"{split} tokens, source and target"] = f"{part.source.total:,} and {part.target.total:,}"
        figures[f"{split} sentence length, mean and longest"] = (
            f"{part.source.mean:g} and {part.source.longest} source, "
            f"{part.target.mean:g} and {part.target.longest} target"
        )
        if part.seen_in_training:
            figures[f"{split} pairs whose source was trained on"] = part.seen_in_training
    for split, reason, count in report.dropped_rows():
        figures[f"{split} pairs dropped: {reason}"] = count
    figures["vocabulary"] = (
        f"{report.vocabulary_in_words} pieces, {'learned' if report.tokenizer_was_learned else 'given'}"
    )
    figures["files"] = [
        {"name": _last_part(file.name), "bytes": file.bytes, "sha256": file.sha256}
        for corpora in report.corpora.values()
        for corpus in corpora
        for file in corpus.files
    ]
    return figures


def corpus_fingerprint(report: PreparationReport) -> str:
    """Return a hash that changes with the text, its division into splits, or its tokenizer."""
    return hashlib.sha256(
        report.model_dump_json(exclude={"padding", "source_vocabulary_size"}).encode("utf-8")
    ).hexdigest()


def _last_part(name: str) -> str:
    return name.replace("\\", "/").rpartition("/")[2]
