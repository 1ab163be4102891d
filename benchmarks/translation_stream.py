"""Translate a million lines with one translator, and see whether its speed holds and its memory stays.

    python benchmarks/translation_stream.py MODEL [--lines 1000000] [--beam 1] [--core 0]

The lines are short sentences of the demonstration's corpus, 20,000 different ones, drawn at random again and again,
and go where `transduce translate` would send them: through the window that sorts and batches them, in order, to a file.
After each tenth it notes lines a second and the memory that the process occupies. Writes results/translation_stream.md
and results/translation_stream.json next to this file.
"""

import argparse
import datetime
import json
import os
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from translation_worker import resident

from transduce.demo.corpus import corpus
from transduce.machine import processor_name
from transduce.translator import Translator
from transduce.translator.lines import translate_lines

HERE = Path(__file__).parent


def sentences(count: int) -> Iterator[str]:
    """Yield short sentences."""
    pool = [source for source, _ in corpus(pairs=20_000, held_out=1).train if len(source) < 60]
    draw = random.Random(1)
    for _ in range(count):
        yield draw.choice(pool)


def measure(translator: Translator, *, lines: int, beam: int) -> list[dict[str, float]]:
    """Translate, and return what each tenth took."""
    config = translator.configure(beam=beam)
    tenths: list[dict[str, float]] = []
    with tempfile.TemporaryFile("w", encoding="utf-8") as output:
        begin, begin_cpu = time.perf_counter(), time.process_time()
        for number, translation in enumerate(translate_lines(translator, sentences(lines), config), start=1):
            output.write(translation.text + "\n")
            if number * 10 // lines > len(tenths):
                now, now_cpu = time.perf_counter(), time.process_time()
                count = number - sum(int(tenth["lines"]) for tenth in tenths)
                tenths.append(
                    {
                        "lines": count,
                        "lines_per_second": count / (now - begin),
                        "lines_per_processor_second": count / (now_cpu - begin_cpu),
                        "memory_mb": resident() / 1e6,
                    }
                )
                print(json.dumps(tenths[-1]), flush=True)
                begin, begin_cpu = now, now_cpu
    return tenths


def report(results: dict[str, Any]) -> str:
    """Return the results as a page."""
    rows = [
        f"| {number} | {tenth['lines_per_second']:,.0f} | {tenth['lines_per_processor_second']:,.0f} | "
        f"{tenth['memory_mb']:,.0f} |"
        for number, tenth in enumerate(results["tenths"], start=1)
    ]
    how = (
        f"{results['date']}, {results['processor']}, one core, load average {results['load']:.1f} at the start. "
        f"{results['lines']:,} short sentences, beam {results['beam']}, {results['precision']}, "
        f"{results['parameters']:,} parameters."
    )
    return "\n".join(
        [
            "# Many lines through one translator",
            "",
            how,
            "",
            "| tenth | lines/s | lines/s of processor time | memory, MB |",
            "|---|---|---|---|",
            *rows,
            "",
            "Made by `python benchmarks/translation_stream.py`.",
            "",
        ]
    )


def main() -> None:
    """Read the command line, measure, write the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", help="a model directory, a run, or a bundled model")
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--beam", type=int, default=1)
    parser.add_argument("--core", type=int, default=0)
    arguments = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {arguments.core})
    translator = Translator.load(arguments.model, threads=1)
    from transduce.networks.cost import parameter_count

    results = {
        "date": datetime.date.today().isoformat(),
        "processor": processor_name(),
        "load": os.getloadavg()[0],
        "lines": arguments.lines,
        "beam": arguments.beam,
        "precision": translator.precision,
        "parameters": parameter_count(translator.models[0].description.architecture),
        "tenths": measure(translator, lines=arguments.lines, beam=arguments.beam),
    }
    (HERE / "results" / "translation_stream.json").write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    (HERE / "results" / "translation_stream.md").write_text(report(results), encoding="utf-8")


if __name__ == "__main__":
    main()
