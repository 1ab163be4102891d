"""The page of `transduce compare --html`: the tables and curves of a comparison in the form of a run's report."""

from typing import Any

from transduce.cli.comparison_tables import TITLES, ComparisonTable, letters_of, tables_of
from transduce.evaluation.comparison import Comparison
from transduce.pipeline.report import page_of


def comparison_page(found: Comparison) -> str:
    """Return one self-contained page."""
    letters = letters_of(found)
    settings, seeds, differences = tables_of(found)
    return page_of(
        {
            "title": f"Comparison of {len(found.runs)} runs",
            "status": "",
            "facts": [[letter, name] for name, letter in letters.items()],
            "curves": _charts(found, letters),
            "without_curves": "There are no curves: no run has validated yet.",
            "samples": [],
            "tables": [
                table._asdict() for table in (_scores(found, letters), differences, seeds, settings) if table.rows
            ],
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


def _scores(found: Comparison, letters: dict[str, str]) -> ComparisonTable:
    rows = [
        [row.test, f"{row.name} ({row.signature})", *("–" if value is None else f"{value:.2f}" for value in row.values)]
        for row in found.scores
    ]
    return ComparisonTable("Scores", ["test", "score", *letters.values()], rows)
