"""Draws the tables of `transduce compare`. Each run has a letter, so that many runs fit in 80 columns."""

from collections.abc import Sequence
from string import ascii_uppercase
from typing import NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from transduce.cli.score_tables import verdict
from transduce.evaluation.comparison import Comparison, Curve, ScoreRow

TITLES = {"valid/loss": "Validation loss", "valid/bleu": "Validation BLEU"}
_BARS = "▁▂▃▄▅▆▇█"
_CURVE_WIDTH = 30
_SEEDS = ("runs", "test", "score", "mean", "range")
_DIFFERENCES = ("run", "test", "score", "difference", "p", "")


class ComparisonTable(NamedTuple):
    """A table of a comparison, for the terminal and for the page."""

    title: str
    head: Sequence[str]
    rows: list[list[str]]


def draw_comparison(console: Console, found: Comparison) -> None:
    """Print the runs with their letters, then settings, scores, seeds, differences and curves."""
    letters = letters_of(found)
    for name, letter in letters.items():
        console.print(Text(f"{letter}  {name}"), soft_wrap=True)
    if not found.settings:
        console.print("\nAll settings are the same.")
    settings, *others = tables_of(found)
    _draw_table(console, settings)
    _draw_scores(console, found.scores, list(letters.values()))
    for table in others:
        _draw_table(console, table)
    _draw_curves(console, found.curves, letters)


def letters_of(found: Comparison) -> dict[str, str]:
    """Return the letter of each run by its name."""
    return {name: letter_of(place) for place, name in enumerate(found.runs)}


def letter_of(place: int) -> str:
    """Return the letter of a run: A to Z for the first 26 runs, A2 to Z2 for the next."""
    number, letter = divmod(place, len(ascii_uppercase))
    return ascii_uppercase[letter] + (str(number + 1) if number else "")


def tables_of(found: Comparison) -> tuple[ComparisonTable, ComparisonTable, ComparisonTable]:
    """Return the settings that differ, the spread over seeds, and the differences; any of them may have no rows."""
    letters = letters_of(found)
    settings = [[row.key, *("–" if value is None else str(value) for value in row.values)] for row in found.settings]
    seeds = [
        [
            ", ".join(letters[run] for run in row.runs),
            *(_last_name(row.test), row.name, f"{row.mean:.2f}", f"{row.lowest:.2f} to {row.highest:.2f}"),
        ]
        for row in found.seeds
    ]
    differences = [
        [
            *(letters[row.system], _last_name(row.test), row.difference.name),
            f"{row.difference.system - row.difference.baseline:+.2f}",
            *(f"{row.difference.p_value:.3f}", verdict(row.difference)),
        ]
        for row in found.differences
    ]
    first = letter_of(0)
    return (
        ComparisonTable("Settings that differ", ["setting", *letters.values()], settings),
        ComparisonTable("Over seeds (runs that differ in nothing else)", _SEEDS, seeds),
        ComparisonTable(f"Against {first}, by paired bootstrap", _DIFFERENCES, differences),
    )


def _draw_table(console: Console, table: ComparisonTable) -> None:
    if table.rows:
        drawn = _table(table.head)
        for row in table.rows:
            drawn.add_row(*map(Text, row))
        console.print(f"\n{table.title}", style="bold")
        console.print(drawn)


def _draw_scores(console: Console, rows: Sequence[ScoreRow], letters: Sequence[str]) -> None:
    if not rows:
        console.print("\nNo run has scores yet. Score each one with: transduce evaluate RUN TEST")
        return
    console.print("\nScores", style="bold")
    for test in dict.fromkeys(row.test for row in rows):
        own = [row for row in rows if row.test == test]
        table = _table((_last_name(test), *letters), numbers=True)
        for row in own:
            table.add_row(Text(row.name), *("-" if value is None else f"{value:.2f}" for value in row.values))
        console.print(table)
        for row in own:
            console.print(Text(f"{row.name}: {row.signature}", style="dim"))


def _draw_curves(console: Console, curves: Sequence[Curve], letters: dict[str, str]) -> None:
    for name in dict.fromkeys(curve.name for curve in curves):
        own = [curve for curve in curves if curve.name == name]
        values = [value for curve in own for value in curve.values]
        last_step = max(curve.steps[-1] for curve in own)
        table = _table(("", f"step 0 to {last_step:,}", "first", "last", "best", "at step"))
        for curve in own:
            best = (min if name.endswith("loss") else max)(curve.values)
            table.add_row(
                letters[curve.run],
                sparkline(curve, last_step=last_step, lowest=min(values), highest=max(values)),
                *(f"{value:.3f}" for value in (curve.values[0], curve.values[-1], best)),
                f"{curve.steps[curve.values.index(best)]:,}",
            )
        console.print(f"\n{TITLES.get(name, name)}", style="bold")
        console.print(table)


def sparkline(curve: Curve, *, last_step: int, lowest: float, highest: float) -> str:
    """Draw a curve as one line of bars; all runs share one scale, so that curves can be compared by eye."""
    spread = (highest - lowest) or 1.0
    columns: dict[int, float] = {}
    for step, value in zip(curve.steps, curve.values, strict=True):
        columns[min(_CURVE_WIDTH - 1, step * _CURVE_WIDTH // max(1, last_step))] = value
    level = {column: round((value - lowest) / spread * (len(_BARS) - 1)) for column, value in columns.items()}
    return "".join(_BARS[level[column]] if column in level else " " for column in range(_CURVE_WIDTH))


def _table(titles: Sequence[str], *, numbers: bool = False) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for place, title in enumerate(titles):
        table.add_column(Text(title), justify="right" if numbers and place else "left", overflow="fold")
    return table


def _last_name(test: str) -> str:
    return test.replace("\\", "/").rpartition("/")[2]
