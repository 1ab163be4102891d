"""Measure claims of the paper for the package, and write them to src/transduce/paper/measured.json.

    python benchmarks/paper_results.py growth recall --seeds 1 --output runs/paper [--train a.en,a.de --valid b.en,b.de]

What is finished in the output folder is not measured again. Measurements of other claims stay as they are in the file.
"""

import argparse
import json
import subprocess
from dataclasses import asdict, replace
from pathlib import Path

from transduce.cli.terminal import terminal_progress
from transduce.paper import ClaimRunner, claims

ROOT = Path(__file__).parents[1]
MEASURED = ROOT / "src" / "transduce" / "paper" / "measured.json"


def main() -> None:
    """Measure the named claims and merge them into the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+", choices=[claim.name for claim in claims()])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--output", type=Path, default=Path("runs/paper"))
    parser.add_argument("--train", default="")
    parser.add_argument("--valid", default="")
    given = parser.parse_args()
    commit = subprocess.run(
        ["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
    )
    with terminal_progress() as progress:
        runner = ClaimRunner(
            given.output,
            corpora={"train": given.train, "valid": given.valid},
            seeds=given.seeds,
            budget=given.minutes * 60,
            progress=progress,
        )
        for claim in claims():
            if claim.name in given.names:
                found = runner.run(claim, stop_requested=lambda: False)
                content = json.loads(MEASURED.read_text(encoding="utf-8"))
                for name, measured in found.items():
                    where = f"{measured.conditions}, one core, commit {commit.stdout.strip()}"
                    content[name] = asdict(replace(measured, conditions=where))
                MEASURED.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
