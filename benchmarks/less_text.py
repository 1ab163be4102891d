"""Measure distillation and back-translation on Tatoeba, and Ray beside two processes; days on one core, so in parts.

    python benchmarks/less_text.py student --data ../shared/data --work /tmp/student --time 75m
    python benchmarks/less_text.py back-translation --data ../shared/data --work /tmp/back --time 20m --seed 1   # 2, 3
    python benchmarks/less_text.py ray --data ../shared/data --work /tmp/ray

Each writes results/less_text.PART.json next to this file; back-translation adds its seed to it. All resume.

student: `en-de` translates the English side of Tatoeba; a student learns that and the real pairs; both on `valid`.
back-translation: 20,000 pairs, and the German side of 100,000 others, as one command makes of them.
ray: wall clock of two shards at once, one thread each, and of `--runner ray --workers 2` (without Ray's start).
"""

import argparse
import gzip
import json
import random
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
REAL, OTHERS, RAY_LINES = 20_000, 100_000, 40_000


def lines(path: Path) -> list[str]:
    """Return the lines of a compressed file."""
    return gzip.decompress(path.read_bytes()).decode("utf-8").splitlines()


def transduce(*arguments: object) -> list[str]:
    """Return a command line."""
    return [sys.executable, "-m", "transduce", *map(str, arguments)]


def output_of(command: list[str]) -> str:
    """Run a command to its end and return its standard output."""
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def record(part: str, found: object) -> None:
    """Write the results of a part."""
    (HERE / "results" / f"less_text.{part}.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def pair(data: Path, split: str) -> str:
    """Return the two files of a split of Tatoeba."""
    return f"{data / f'tatoeba/{split}.en.gz'},{data / f'tatoeba/{split}.de.gz'}"


def student(given: argparse.Namespace) -> None:
    """Distil the bundled model."""
    text = ("--text-file", given.data / "tatoeba/train.en.gz", "--train", pair(given.data, "train"))
    test = ("--valid", pair(given.data, "valid"), "--test", pair(given.data, "valid"))
    sizes = ("--student", "tiny", "--decoder", "ssru", "--set", "model.dropout=0.1", "--set", "decoding.beam=1")
    budget = ("--set", f"training.time={given.time}", "--threads", 1, "--output", given.work, "--json")
    record("student", json.loads(output_of(transduce("distill", "en-de", *text, *test, *sizes, *budget))))


def back_translation(given: argparse.Namespace) -> None:
    """Learn from 20,000 pairs and the German side of 100,000 others."""
    pairs = list(zip(*(lines(given.data / f"tatoeba/train.{side}.gz") for side in ("en", "de")), strict=True))
    random.Random(given.seed).shuffle(pairs)
    given.work.mkdir(parents=True, exist_ok=True)
    mine, others = given.work / f"mine-{given.seed}.tsv", given.work / f"others-{given.seed}.de"
    mine.write_text("".join(f"{english}\t{german}\n" for english, german in pairs[:REAL]), encoding="utf-8")
    german = (german for _, german in pairs[REAL : REAL + OTHERS])
    others.write_text("".join(f"{line}\n" for line in german), encoding="utf-8")
    text = ("--text-file", others, "--train", mine, "--valid", pair(given.data, "valid"))
    test = ("--test", pair(given.data, "valid"), "--from", "en", "--to", "de", "--preset", "tiny", "--threads", 1)
    budget = ("--set", f"training.time={given.time}", "--set", f"training.seed={given.seed}")
    output = ("--output", given.work / f"better-{given.seed}", "--json")
    found = json.loads(output_of(transduce("back-translate", *text, *test, *budget, *output)))
    record(f"back-translation.{given.seed}", found)


def ray(given: argparse.Namespace) -> None:
    """Translate the same lines with two processes and with two workers."""
    given.work.mkdir(parents=True, exist_ok=True)
    text = given.work / "text.en"
    text.write_text("".join(f"{line}\n" for line in lines(given.data / "tatoeba/train.en.gz")[:RAY_LINES]))
    common = ("translate", "en-de", text, "--part-lines", 1000, "--threads", 1, "--output")
    began = time.monotonic()
    shards = [subprocess.Popen(transduce(*common, given.work / "shards", "--shard", f"{n}/2")) for n in (1, 2)]
    assert [shard.wait() for shard in shards] == [0, 0]
    processes = time.monotonic() - began
    nothing = given.work / "one.en"
    nothing.write_text("Hello.\n")
    times = []
    for name, file in (("start", nothing), ("ray", text)):
        began = time.monotonic()
        arguments = (*common[:2], file, *common[3:], given.work / name, "--runner", "ray", "--workers", 2)
        output_of(transduce(*arguments))
        times.append(time.monotonic() - began)
    for name in ("shards", "ray"):
        output_of(transduce("merge", given.work / name, "--output", given.work / f"{name}.de", "--force"))
    assert (given.work / "shards.de").read_bytes() == (given.work / "ray.de").read_bytes()
    seconds = {"two processes": processes, "ray": times[1], "ray's start, with one line": times[0]}
    record("ray", {"lines": RAY_LINES, "seconds": seconds, "share": processes / (times[1] - times[0])})


def main() -> None:
    """Read the arguments and measure one part."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parts = {"student": student, "back-translation": back_translation, "ray": ray}
    parser.add_argument("part", choices=parts)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True, help="a folder for runs and texts")
    parser.add_argument("--time", default="60m", help="the time of each training")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    parts[given.part](given)


if __name__ == "__main__":
    main()
