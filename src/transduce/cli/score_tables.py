"""Draws scores as tables that fit in 80 columns, for `evaluate` and `compare`."""

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from transduce.evaluation.record import EvaluationRecord
from transduce.evaluation.significance import Difference


def draw_scores(console: Console, record: EvaluationRecord) -> None:
    """Show the scores with their signatures, and below them perplexity, speed and overlap."""
    for score in record.scores:
        precisions = score.detail.partition(" ratio")[0] + ")" if score.detail else ""
        console.print(Text.assemble((f"{score.name:<13}{score.value:>8.2f}", "bold"), f"  {precisions}".rstrip()))
        console.print(Text(f"  {score.signature}", style="dim"))
    for name, value, meaning in _further_lines(record):
        console.print(Text(f"{name:<13}{value:>8}  {meaning}"))
    for line in overlap_lines(record):
        console.print(Text(line))


def _further_lines(record: EvaluationRecord) -> Iterator[tuple[str, str, str]]:
    if record.perplexity_per_piece is not None and record.perplexity_per_byte is not None:
        yield "perplexity", f"{record.perplexity_per_piece:,.2f}", "per piece"
        yield "", f"{record.perplexity_per_byte:,.3f}", "per byte"
    if record.speed is not None:
        threads = f"{record.speed.threads} thread" + ("s" if record.speed.threads != 1 else "")
        precision = f"{record.precision}, shortlist" if record.shortlist else record.precision
        beam = f"beam {record.beam}" + (" by consensus" if record.consensus else "")
        how = f"{beam}, length penalty {record.length_penalty}, {precision}, {threads}"
        yield "sentences/s", f"{record.speed.sentences_per_second:,.1f}", how
        yield "tokens/s", f"{record.speed.tokens_per_second:,.0f}", "target pieces, end tokens included"


def overlap_lines(record: EvaluationRecord) -> Iterator[str]:
    """Yield lines that say how many test sentences the model was trained on, and its scores on the others."""
    overlap = record.overlap
    if record.model_sha256 is None:
        return
    if overlap is None:
        yield "It is not known whether the model was trained on any of these sentences."
    elif overlap.sentences == 0:
        yield "None of these sentences were in the training text."
    elif overlap.scores_without:
        without = ", ".join(f"{score.name} {score.value:.2f}" for score in overlap.scores_without)
        yield f"{overlap.sentences:,} of these sentences were in the training text. Without them: {without}."
    else:
        yield "All of these sentences were in the training text: the scores measure memory, not translation."


def draw_differences(console: Console, differences: Sequence[Difference], *, baseline: str) -> None:
    """Show the differences that a paired bootstrap measured, with their p-values."""
    console.print(Text(f"\nAgainst {baseline}, by paired bootstrap:"))
    table = Table(box=None, padding=(0, 2, 0, 0))
    for title in ("", "other", "this", "difference", "p"):
        table.add_column(title, justify="left" if not title else "right", no_wrap=True)
    table.add_column("")
    for found in differences:
        table.add_row(
            Text(found.name, style="bold"),
            f"{found.baseline:.2f} ± {found.baseline_interval.half_width:.2f}",
            f"{found.system:.2f} ± {found.system_interval.half_width:.2f}",
            f"{found.system - found.baseline:+.2f}",
            f"{found.p_value:.3f}",
            verdict(found),
        )
    console.print(table)


def verdict(difference: Difference) -> str:
    """Return `better`, `worse` or `maybe chance`; a lower TER is better."""
    if not difference.is_significant:
        return "maybe chance"
    gain = difference.system - difference.baseline
    is_better = gain < 0 if difference.name == "TER" else gain > 0
    return "better" if is_better else "worse"
