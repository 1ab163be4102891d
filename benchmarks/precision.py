"""What int8 and bf16 cost in quality: BLEU of each precision on the same sentences, and how often they say the same.

    python benchmarks/precision.py MODEL SOURCE REFERENCE [--lines 1000] [--beam 4]

SOURCE and REFERENCE are text files, packed or plain, line n of one translating line n of the other. Writes
results/precision.json and results/precision.md next to this file.
"""

import argparse
import datetime
import gzip
import json
import time
from pathlib import Path
from typing import Any

import sacrebleu

from transduce.machine import processor_name
from transduce.translator import Translator

HERE = Path(__file__).parent
PRECISIONS = ("float32", "bf16", "int8")


def read_lines(path: Path, count: int) -> list[str]:
    """Return the first lines of a file."""
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return content.decode("utf-8").splitlines()[:count]


def measure(model: str, sources: list[str], references: list[str], *, beam: int) -> dict[str, dict[str, float]]:
    """Return the score of each precision, its distance from float32, and its speed in processor time."""
    results: dict[str, dict[str, float]] = {}
    exact: list[str] = []
    for precision in PRECISIONS:
        translator = Translator.load(model, precision=precision, threads=1)  # type: ignore[arg-type]
        begin = time.process_time()
        found = translator.translate(sources, beam=beam)
        seconds = time.process_time() - begin
        outputs = [one.text for one in found]
        exact = exact or outputs
        results[precision] = {
            "bleu": sacrebleu.corpus_bleu(outputs, [references]).score,
            "same_as_float32": sum(a == b for a, b in zip(outputs, exact, strict=True)) / len(outputs),
            "tokens_per_processor_second": sum(len(one.tokens) for one in found) / seconds,
        }
        print(precision, results[precision], flush=True)
    return results


def report(results: dict[str, Any]) -> str:
    """Return the results as a page."""
    exact = results["precisions"]["float32"]["bleu"]
    rows = [
        f"| {name} | {found['bleu']:.2f} | {found['bleu'] - exact:+.2f} | {found['same_as_float32']:.1%} | "
        f"{found['tokens_per_processor_second']:,.0f} |"
        for name, found in results["precisions"].items()
    ]
    how = (
        f"{results['date']}, {results['processor']}, one thread. {results['sentences']:,} sentences, beam "
        f"{results['beam']}. {results['model']}"
    )
    table = [
        "| precision | BLEU | against float32 | same outputs | tokens/s of processor time |",
        "|---|---|---|---|---|",
    ]
    made = "Made by `python benchmarks/precision.py`."
    return "\n".join(["# What a precision costs in quality", "", how, "", *table, *rows, "", made, ""])


def main() -> None:
    """Read the command line, measure, write the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", help="a model directory, a run, or a bundled model")
    parser.add_argument("source", type=Path)
    parser.add_argument("reference", type=Path)
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--says", default="", help="a sentence on the model and the test, for the page")
    arguments = parser.parse_args()
    sources, references = (read_lines(path, arguments.lines) for path in (arguments.source, arguments.reference))
    results = {
        "date": datetime.date.today().isoformat(),
        "processor": processor_name(),
        "sentences": len(sources),
        "beam": arguments.beam,
        "model": arguments.says,
        "precisions": measure(arguments.model, sources, references, beam=arguments.beam),
    }
    (HERE / "results" / "precision.json").write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    (HERE / "results" / "precision.md").write_text(report(results), encoding="utf-8")


if __name__ == "__main__":
    main()
