"""Models beside a baseline on one test set: scores, speed, size, and each gap with its interval."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from transduce.cli.loading import load_translator
from transduce.errors import ConfigError
from transduce.evaluation.evaluate import System, SystemOutput, translate_test_set
from transduce.evaluation.protocols import detokenised
from transduce.evaluation.reference_set import ReferenceSet, test_set_of_run
from transduce.evaluation.scores import score
from transduce.evaluation.significance import intervals_of_differences
from transduce.files import write_atomically
from transduce.model_directory import WEIGHTS
from transduce.progress import Progress

COMPARISON = "comparison.json"
_PROTOCOL = detokenised()


def models_beside(run: Path, models: Mapping[str, Sequence[str]], *, threads: int | None, progress: Progress) -> str:
    """Score models on the test pairs of a run, the first as the baseline; write and return the result as JSON.

    `models` has one name, or those of an ensemble, for each label.
    """
    test = test_set_of_run(run)
    if test is None:
        raise ConfigError(f"{run} has no test pairs. Give --test, or let some be held out (data.held_out_test).")
    rows: dict[str, dict[str, Any]] = {}
    outputs: dict[str, list[str]] = {}
    for label, names in models.items():
        outputs[label], rows[label] = _scored(label, names, test, threads=threads, progress=progress)
    baseline, *others = models
    for label in others:
        intervals = intervals_of_differences(outputs[baseline], outputs[label], test.references, protocol=_PROTOCOL)
        rows[label]["gap"] = {name: [rows[label][name] - rows[baseline][name], *own] for name, own in intervals.items()}
    content = json.dumps({"test": test.name, "sentences": len(test.sources), "models": rows}, indent=1) + "\n"
    write_atomically(run / COMPARISON, content)
    return content


def draw(content: str) -> None:
    """Show the result of `models_beside` as a table."""
    from rich.table import Table
    from rich.text import Text

    from transduce.cli.terminal import SafeConsole

    found = json.loads(content)
    console = SafeConsole(highlight=False)
    console.print(Text(f"{found['sentences']:,} test sentences, gaps to the first model with 95 % intervals:"))
    table = Table(box=None, padding=(0, 2, 0, 0))
    for title in ("", "BLEU", "gap", "chrF2", "sentences/s", "MB"):
        table.add_column(title, justify="left" if not title else "right")
    for label, row in found["models"].items():
        gap, low, high = row.get("gap", {}).get("BLEU", (0.0, 0.0, 0.0))
        own = f"{gap:+.1f} [{low:+.1f}, {high:+.1f}]" if "gap" in row else ""
        scores = (f"{row['BLEU']:.1f}", own, f"{row['chrF2']:.1f}")
        table.add_row(Text(label), *scores, f"{row['sentences_per_second']:,.0f}", f"{row['megabytes']:.1f}")
    console.print(table)


def _scored(
    label: str, names: Sequence[str], test: ReferenceSet, *, threads: int | None, progress: Progress
) -> tuple[list[str], dict[str, Any]]:
    """Return the translations of a test set by a model, and its scores, speed and size."""
    translator = load_translator(*names, precision="auto", threads=threads)
    config = translator.configure(keep_placeholders="report", keep_form=False)

    def translate(texts: Sequence[str]) -> list[SystemOutput]:
        return [SystemOutput(one.text, len(one.tokens)) for one in translator.translate_all(texts, config)]

    done = translate_test_set(System(label, translate=translate), test.sources, progress=progress)
    scores = {one.name: one.value for one in score(done.hypotheses, test.references, protocol=_PROTOCOL)}
    size = sum((model.folder / WEIGHTS).stat().st_size for model in translator.models) / 1e6
    speed = len(test.sources) / max(done.seconds, 1e-9)
    facts = {"sentences_per_second": speed, "megabytes": size, "precision": translator.precision, "beam": config.beam}
    return done.hypotheses, {"models": list(names), **scores, **facts}
