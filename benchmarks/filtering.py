"""Plant faults of six kinds into a part of Tatoeba, filter it, and count what was found and what was lost.

    python benchmarks/filtering.py --data ../shared/data

Writes results/filtering.json next to this file. The faults: targets that are French captions, targets of the next pair,
half of one side missing, the source as target, another number, a placeholder on one side only.
"""

import argparse
import gzip
import itertools
import json
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

HERE = Path(__file__).parent
GOOD, PLANTED = 40_000, 1_700
PLACEHOLDERS = ("{name}", "%s", "https://example.org/x", "<b>", "%(count)d")
Row = tuple[str, str, str]


def lines(path: Path) -> list[str]:
    """Return the lines of a compressed file."""
    return gzip.decompress(path.read_bytes()).decode("utf-8").splitlines()


def planted(data: Path, chance: random.Random) -> list[Row]:
    """Return kind, source and target of good and of faulty pairs, mixed."""
    pairs = list(zip(*(lines(data / f"tatoeba/train.{side}.gz") for side in ("en", "de")), strict=True))
    french = lines(data / "multi30k/train.fr.gz")
    chance.shuffle(pairs)
    rows = [("good", *pair) for pair in pairs[:GOOD]]
    rest = iter(pairs[GOOD:])
    shifted = list(itertools.islice(rest, PLANTED + 1))
    rows += [("shifted", source, other) for (source, _), (_, other) in itertools.pairwise(shifted)]
    for source, target in itertools.islice(rest, PLANTED):
        rows.append(("wrong language", source, chance.choice(french)[: len(target) + 20]))
    long = (pair for pair in rest if all(len(side.split()) >= 4 for side in pair))
    for pair in itertools.islice(long, PLANTED):
        cut = chance.randrange(2)
        rows.append(("half missing", *(half(side) if place == cut else side for place, side in enumerate(pair))))
    rows += [("copied", source, source) for source, _ in itertools.islice(rest, PLANTED)]
    for source, target in itertools.islice(rest, PLANTED):
        rows.append(("placeholder", f"{source[:-1]} {chance.choice(PLACEHOLDERS)}{source[-1]}", target))
    for source, target in rest:
        numbers = [re.findall(r"\d+", side) for side in (source, target)]
        if numbers[0] and numbers[0] == numbers[1]:
            other = str(int(numbers[1][0]) + chance.choice([1, 2, 7, 10]))
            rows.append(("number", source, target.replace(numbers[1][0], other, 1)))
    chance.shuffle(rows)
    return rows


def half(text: str) -> str:
    """Return the first half of a text's words."""
    words = text.split()
    return " ".join(words[: len(words) // 2])


def main() -> None:
    """Plant, filter, count."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds tatoeba/ and multi30k/")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rows = planted(options.data, random.Random(options.seed))
    with tempfile.TemporaryDirectory() as folder:
        corpus, dropped = Path(folder, "corpus.tsv"), Path(folder, "dropped.tsv")
        corpus.write_text("".join(f"{source}\t{target}\n" for _, source, target in rows), encoding="utf-8")
        command = [sys.executable, "-m", "transduce", "filter", str(corpus), "--from", "en", "--to", "de"]
        files = ["--output", f"{folder}/clean.tsv", "--dropped", str(dropped)]
        subprocess.run([*command, *files, "--model", "en-de", "--threads", "1"], check=True)
        reasons = dict(line.split("\t")[1::-1] for line in dropped.read_text(encoding="utf-8").splitlines())
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for number, (kind, *_) in enumerate(rows, start=1):
        found[kind][reasons.get(str(number), "kept")] += 1
    results = {
        kind: {
            "pairs": counts.total(),
            "dropped": 1 - (counts["kept"] + (counts["duplicates"] if kind == "good" else 0)) / counts.total(),
            "reasons": dict(counts),
        }
        for kind, counts in sorted(found.items())
    }
    (HERE / "results/filtering.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    for kind, result in results.items():
        print(f"{kind:>15} {result['pairs']:>7,} pairs, {result['dropped']:.1%} dropped")


if __name__ == "__main__":
    main()
