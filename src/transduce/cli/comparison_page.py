"""The page of `transduce compare --html`: the tables and curves of a comparison in the form of a run's report."""

from typing import Any

from transduce.cli.comparison_tables import TITLES, letter_of
from transduce.cli.score_tables import verdict
from transduce.evaluation.comparison import Comparison
from transduce.pipeline.report import page_of


def comparison_page(found: Comparison) -> str:
    """Return one self-contained page."""
    letters = {name: letter_of(place) for place, name in enumerate(found.runs)}
    return page_of(
        {
            "title": f"Comparison of {len(found.runs)} runs",
            "status": "",
            "facts": [[letter, name] for name, letter in letters.items()],
            "curves": _charts(found, letters),
            "without_curves": "There are no curves: no run has validated yet.",
            "samples": [],
            "tables": [table for table in _tables(found, letters) if table["rows"]],
        }
    )


def _charts(found: Comparison, letters: dict[str, str]) -> list[dict[str, Any]]:
    return [
        {
            "title": TITLES.get(name, name),
            "series": [
                {"name": letters[curve.run], "points": list(zip(curve.steps, curve.values, strict=True))}
                for curve in found.curves
                if curve.name == name
            ],
        }
        for name in dict.fromkeys(curve.name for curve in found.curves)
    ]


def _tables(found: Comparison, letters: dict[str, str]) -> list[dict[str, Any]]:
    def texts(values: tuple[object, ...]) -> list[str]:
        return [
            "–" if value is None else f"{value:.2f}" if isinstance(value, float) else str(value) for value in values
        ]

    settings = [[row.key, *("–" if value is None else str(value) for value in row.values)] for row in found.settings]
    scores = [[row.test, f"{row.name} ({row.signature})", *texts(row.values)] for row in found.scores]
    seeds = [
        [", ".join(letters[run] for run in row.runs), row.test, row.name, *texts((row.mean, row.lowest, row.highest))]
        for row in found.seeds
    ]
    differences = [
        [
            f"{letters[row.system]} against {letters[row.baseline]}",
            row.test,
            row.difference.name,
            f"{row.difference.system - row.difference.baseline:+.2f}",
            f"{row.difference.p_value:.3f}",
            verdict(row.difference),
        ]
        for row in found.differences
    ]
    return [
        {"title": "Scores", "head": ["test", "score", *letters.values()], "rows": scores},
        {
            "title": "Differences, by paired bootstrap",
            "head": ["runs", "test", "score", "difference", "p", ""],
            "rows": differences,
        },
        {
            "title": "Over seeds (runs that differ in nothing else)",
            "head": ["runs", "test", "score", "mean", "lowest", "highest"],
            "rows": seeds,
        },
        {"title": "Settings that differ", "head": ["setting", *letters.values()], "rows": settings},
    ]
