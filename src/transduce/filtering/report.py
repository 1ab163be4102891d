"""What a filter did, as JSON and as a page with a histogram and the pairs next to each limit."""

from typing import Any

from transduce.filtering.filtering import FilterReport, ScoreReport

MEANINGS = {
    "empty": "a side without text",
    "duplicates": "a pair that came before",
    "copied": "share of the target's words that are words of the source",
    "numbers": "numbers that differ",
    "placeholders": "placeholders, URLs and tags on one side only",
    "length": "log length ratio, in deviations from the corpus' median",
    "likelihood": "cross-entropy under the model, in deviations above the corpus' median",
    "ending": "-log p of the target's end under the model",
    "language": "1 - probability of the expected language",
}


def report_as_json(report: FilterReport) -> dict[str, Any]:
    """Return counts and limits."""
    return {
        "read": report.read,
        "kept": report.kept,
        "dropped": dict(report.dropped),
        "limits": {name: score.limit for name, score in report.scores.items()},
    }


def report_page_content(report: FilterReport, *, title: str) -> dict[str, Any]:
    """Return the content of the page: one chart and one table for each score."""
    return {
        "title": title,
        "status": f"{report.kept:,} of {report.read:,} pairs kept",
        "facts": [[name, f"{count:,} dropped"] for name, count in report.dropped.most_common()],
        "curves": [_histogram(name, score) for name, score in report.scores.items()],
        "histograms": "A point counts the pairs with a score from the value below it on; the last counts all above.",
        "without_curves": "No pair has scores.",
        "samples": [],
        "tables": [_examples(name, score) for name, score in report.scores.items()],
    }


def _histogram(name: str, score: ScoreReport) -> dict[str, Any]:
    series = {
        verdict: [[low, count] for low, count in zip(score.edges, counts, strict=False) if count]  # one edge more
        for verdict, counts in (("kept", score.kept_counts), ("dropped", score.dropped_counts))
    }
    return {
        "title": f"{name}: {MEANINGS[name]}",
        "x": name,
        "log": True,  # most pairs are far below the limit
        "series": [{"name": wanted, "points": points} for wanted, points in series.items() if points],
    }


def _examples(name: str, score: ScoreReport) -> dict[str, Any]:
    rows = [
        [verdict, f"{value:.2f}", source, target]
        for verdict, pairs in (("kept", score.kept[::-1]), ("dropped", score.dropped))
        for value, source, target in pairs
    ]
    return {
        "title": f"{name}: next to the limit {score.limit:g}",
        "head": ["verdict", name, "source", "target"],
        "rows": rows,
    }
