"""The page of `transduce paper --html`: every table and claim, and the curves that were measured, with error bars."""

from collections.abc import Mapping

from transduce.paper.experiments import Measured, claims
from transduce.paper.tables import TABLES, Row, rows_of, shipped_measurements
from transduce.pipeline.report import page_of

HEAD = ("claim", "printed", "counted here", "measured here", "expected")


def paper_page(measured: Mapping[str, Measured] | None = None) -> str:
    """Return one self-contained page, with these measurements or those that come with the package."""
    found = shipped_measurements() if measured is None else measured
    tables = [
        {"title": table, "head": HEAD, "rows": [_cells(row) for row in rows_of(table, found)]} for table in TABLES
    ]
    return page_of(
        {
            "title": "Attention Is All You Need: printed, counted, measured",
            "status": "Small experiments test the direction of a claim, never its absolute scores.",
            "facts": [],
            "curves": _charts(found),
            "without_curves": "Nothing is measured yet: transduce paper claims --run.",
            "samples": [],
            "tables": tables,
        }
    )


def measured_text(found: Measured) -> str:
    """Return a measurement in one line."""
    low, high = found.range
    seeds = f"{len(found.seeds)} seed{'s' if len(found.seeds) > 1 else ''}"
    others = "".join(f"; {name} {value:g}" for name, value in found.also.items())
    return f"{found.number:g} ({low:g} to {high:g}, {seeds}; {found.unit}{others})"


def _charts(measured: Mapping[str, Measured]) -> list[dict[str, object]]:
    charts = []
    for claim in claims():
        runs = {run: measured[f"{claim.name}/{run}"] for run in claim.runs if f"{claim.name}/{run}" in measured}
        if any(found.points for found in runs.values()):
            series = [{"name": run, "points": found.points} for run, found in runs.items()]
            charts.append({"title": claim.text, "x": "at", "log": claim.study == "growth", "series": series})
    return charts


def _cells(row: Row) -> list[str]:
    counted = "" if row.counted is None else str(row.counted)
    here = f"not measured: {row.not_measured}" if row.measured is None else measured_text(row.measured)
    return [row.claim, "" if row.printed is None else str(row.printed), counted, here, row.expected or ""]
