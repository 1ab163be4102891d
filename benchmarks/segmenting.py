"""How fast text is cut into pieces: as usual, with BPE-dropout, and when someone sends a megabyte without a space.

    python benchmarks/segmenting.py [--runs 3] [--data ../shared/data/multi30k]

Multi30k's training sentences, English and German, under a vocabulary of 8,000 learned from them; processor time on one
core. A hostile line is measured at 1 MB and at a quarter of it: where time is linear, the whole takes four times as
long. Writes results/segmenting.json and results/segmenting.md next to this file.
"""

import argparse
import datetime
import gzip
import json
import os
import platform
import random
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from transduce.text.bpe_tokenizer import BpeTokenizer
from transduce.text.normalization import normalize
from transduce.text.placeholders import protect

HERE = Path(__file__).parent
VOCABULARY = 8000
DROPOUTS = (0.05, 0.1, 0.2, 0.5)
MEGABYTE = 1_000_000


def seconds(work: Callable[[], Any]) -> float:
    """Return the processor time of some work."""
    start = time.process_time()
    work()
    return time.process_time() - start


def rates(tokenizer: BpeTokenizer, lines: list[str], *, runs: int) -> dict[str, float]:
    """Return sentences per second of each way to cut them; sampling begins with an empty cache in every run."""
    numbered = list(enumerate(lines))
    ids = tokenizer.encode_all(lines)

    def sampling(dropout: float) -> Callable[[], Any]:
        fresh = BpeTokenizer.from_bytes(tokenizer.to_bytes())
        return lambda: [fresh.sample(line, dropout=dropout, key=(1, 1, number)) for number, line in numbered]

    works: dict[str, Callable[[], Callable[[], Any]]] = {
        "normalize": lambda: lambda: [normalize(line) for line in lines],
        "protect": lambda: lambda: [protect(line) for line in lines],
        "encode": lambda: lambda: [tokenizer.encode(line) for line in lines],
        "encode_all": lambda: lambda: tokenizer.encode_all(lines),
        "decode": lambda: lambda: [tokenizer.decode(own) for own in ids],
        "pieces": lambda: lambda: [tokenizer.pieces(line) for line in lines],
        **{f"sample, dropout {dropout}": lambda dropout=dropout: sampling(dropout) for dropout in DROPOUTS},
    }
    return {name: len(lines) / statistics.median(seconds(make()) for _ in range(runs)) for name, make in works.items()}


def hostile(tokenizer: BpeTokenizer, lines: list[str]) -> dict[str, dict[str, list[float]]]:
    """Return for each kind of hostile line and each kind of work the seconds at 250 kB and at 1 MB."""
    generator = random.Random(1)
    prose = "".join(filter(str.isalpha, "".join(lines)))
    texts = {
        "one letter": "a" * MEGABYTE,
        "prose without spaces": prose[:MEGABYTE],
        "random letters": "".join(generator.choices("abcdefghijklmnopqrstuvwxyz", k=MEGABYTE)),
        "combining marks": "a" + "\u0301\u0323" * (MEGABYTE // 2),
        "unknown characters": "\U0001f600" * MEGABYTE,
        "opening braces": "{" * MEGABYTE,
        "broken tags": "<a b='" * (MEGABYTE // 6),
        "broken addresses": "a@" * (MEGABYTE // 2),
    }
    works: dict[str, Callable[[str], Any]] = {
        "normalize": normalize,
        "protect": protect,
        "encode": tokenizer.encode,
        "pieces": tokenizer.pieces,
        "sample 0.1": lambda text: tokenizer.sample(text, dropout=0.1, key=(1, 1, 1)),
    }

    def measure(work: Callable[[str], Any], text: str) -> list[float]:
        return [seconds(partial(work, text[:length])) for length in (MEGABYTE // 4, MEGABYTE)]

    return {kind: {name: measure(work, text) for name, work in works.items()} for kind, text in texts.items()}


def written(result: dict[str, Any]) -> str:
    """Return the result as a page."""
    works = next(iter(result["hostile"].values()))
    rows = [
        f"| {kind} | "
        + " | ".join(f"{whole:.2f} ({whole / max(part, 1e-3):.1f})" for part, whole in own.values())
        + " |"
        for kind, own in result["hostile"].items()
    ]
    setting = (
        f"Multi30k, {result['sentences']:,} sentences, mean {result['words']:.1f} words, vocabulary {VOCABULARY:,}; "
        f"median of {result['runs']} runs, {result['date']}, Python {result['python']}, one core, load average "
        f"{result['load_average']}: where it is above 1 others were at work, and processor time is what counts."
    )
    page = [
        "# Cutting text into pieces",
        setting,
        "| work | sentences per second and core |\n|---|---|\n"
        + "\n".join(f"| {name} | {rate:,.0f} |" for name, rate in result["rates"].items()),
        "A hostile line of 1 MB without a space: seconds, and in brackets how many times those of a quarter of it.",
        f"| line | {' | '.join(works)} |\n|---{'|---' * len(works)}|\n" + "\n".join(rows),
        "Made by `python benchmarks/segmenting.py`.",
    ]
    return "\n\n".join(page) + "\n"


def main() -> None:
    """Measure and write the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "data" / "multi30k")
    options = parser.parse_args()
    if not options.data.is_dir():
        parser.error(f"{options.data} is not there; give --data a folder with train.en.gz and train.de.gz")
    lines = []
    for language in ("en", "de"):
        with gzip.open(options.data / f"train.{language}.gz", "rt", encoding="utf-8", newline="\n") as file:
            lines += file.read().removesuffix("\n").split("\n")
    tokenizer = BpeTokenizer.learn(lines, vocabulary_size=VOCABULARY)
    result = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "python": platform.python_version(),
        "load_average": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
        "runs": options.runs,
        "sentences": len(lines),
        "words": statistics.mean(len(line.split()) for line in lines),
        "rates": rates(tokenizer, lines, runs=options.runs),
        "hostile": hostile(tokenizer, lines),
    }
    (HERE / "results").mkdir(exist_ok=True)
    (HERE / "results" / "segmenting.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    (HERE / "results" / "segmenting.md").write_text(written(result), encoding="utf-8")
    print(written(result))


if __name__ == "__main__":
    main()
