"""How good a recipe's models are: train it with several seeds, score each, and give mean and range.

    python benchmarks/quality.py recipes/multi30k.en-de.toml --data ../shared/data/multi30k --runs ../runs/quality
    python benchmarks/quality.py recipes/tatoeba.en-de.toml --data ../shared/data/tatoeba --seeds 1 \
        --also newstest2013=data/newstest2013.en,data/newstest2013.de

    python benchmarks/quality.py recipes/tatoeba.en-de.toml --data ../shared/data/tatoeba --model en-de

Trainings are long: stop it at any time and run it again to go on. Seeds may also be given one by one, on several days
or machines: results of other seeds that were written for the same settings and tests are kept beside the new ones. With
`--validation-only` the test set stays unseen, as it must while settings are being chosen. Everything goes through the
command line, as a user would do it. Writes results/quality.NAME.json and .md next to this file.
"""

import argparse
import datetime
import json
import platform
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from transduce.data.formats import paths_of
from transduce.experiment import resolve_experiment
from transduce.machine import processor_name
from transduce.model_directory import read_description

HERE = Path(__file__).parent
PROTOCOLS = ("detokenised", "lowercased")

BAR = r"\|"
"""A bar that does not end a cell of a table."""


def transduce(*arguments: str, ranks: int = 1) -> str:
    """Run a command, on several ranks if so asked; its progress goes to the terminal, what it prints is returned."""
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)] if ranks > 1 else []
    command = [sys.executable, *launcher, "-m", "transduce", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, encoding="utf-8").stdout


def at(folder: Path, name: str) -> str:
    """Return a corpus of the recipe as it lies in `folder`."""
    return ",".join(str(folder / path.name) for path in paths_of(name))


def train(recipe: Path, output: Path, *, data: Path, seed: int, ranks: int, more: Sequence[str]) -> None:
    """Train the recipe, or go on with it, unless it is finished."""
    corpora = resolve_experiment(recipe).data
    files = [
        part
        for option, names in (("--train", corpora.train), ("--valid", corpora.valid))
        for name in names
        for part in (option, at(data, name))
    ]
    chosen = ["--set", "data.test=[]", "--set", f"training.seed={seed}"]
    transduce("train", str(recipe), "--output", str(output), *files, *chosen, *more, ranks=ranks)


def minutes_of(run: Path) -> float:
    """Return how long the run took, over all its starts: all its trainings, and what was translated for them."""
    logs = [run / "metrics.jsonl", *run.glob("teachers/*/metrics.jsonl")]
    ends = [json.loads(log.read_text(encoding="utf-8").splitlines()[-1]) for log in logs]
    written = [json.loads(file.read_text(encoding="utf-8")) for file in run.rglob("written/*.json")]
    return sum(float(part["seconds"]) for part in (*ends, *written)) / 60


def score(model: str, test: str, *, languages: tuple[str, str], threads: str | None) -> dict[str, Any]:
    """Translate a test set once, and return its scores under every protocol with their signatures."""
    limits = ["--threads", threads] if threads else []
    names = ["--from", languages[0], "--to", languages[1], "--json"]
    first = json.loads(transduce("evaluate", model, test, *names, *limits))
    hypotheses = str(Path(first["folder"]) / "hypotheses.txt")
    records = {"detokenised": first}
    for protocol in PROTOCOLS[1:]:
        given = transduce("evaluate", test, "--hypotheses", hypotheses, "--protocol", protocol, *names)
        records[protocol] = json.loads(given)
    return {
        protocol: {
            score["name"]: {"score": score["value"], "signature": score["signature"]} for score in record["scores"]
        }
        for protocol, record in records.items()
    }


def summary(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return mean and range over the seeds of every score on every test set."""
    result: dict[str, Any] = {}
    for name, protocols in runs[0]["scores"].items():
        for protocol, scores in protocols.items():
            for metric in scores:
                values = [run["scores"][name][protocol][metric]["score"] for run in runs]
                result.setdefault(name, {}).setdefault(protocol, {})[metric] = {
                    "mean": statistics.fmean(values),
                    "lowest": min(values),
                    "highest": max(values),
                    "signature": scores[metric]["signature"],
                }
    return result


def means_of(run: dict[str, Any]) -> str:
    """Return what a run was trained with."""
    ranks = f"{run['ranks']} ranks, " if run.get("ranks", 1) > 1 else ""
    return f"{ranks}threads: {run['threads'] or 'all cores'}"


def as_markdown(result: dict[str, Any]) -> str:
    """Return the result as a page."""
    runs = "; ".join(
        f"seed {run['seed']}, {run['minutes']:.0f} minutes of training, {means_of(run)}"
        if "seed" in run
        else f"model {run['model']}"
        for run in result["runs"]
    )
    searches = {json.dumps(run["decoding"]) for run in result["runs"] if "decoding" in run}
    lines = [
        f"# Quality of {result['recipe']}",
        "",
        f"{result['date']}, {result['machine']}: {runs}.",
        "",
        *(f"Search: `{search}`.\n" for search in sorted(searches)),
        "| test set | protocol | metric | mean | range | signature |",
        "|---|---|---|---|---|---|",
    ]
    for name, protocols in result["summary"].items():
        for protocol, metrics in protocols.items():
            lines += [
                f"| {name} | {protocol} | {metric} | {found['mean']:.2f} "
                f"| {found['lowest']:.2f} to {found['highest']:.2f} | `{found['signature'].replace('|', BAR)}` |"
                for metric, found in metrics.items()
            ]
    return "\n".join([*lines, "", f"Made by `python benchmarks/quality.py {result['recipe']}`.", ""])


def earlier_runs(target: Path, settings: dict[str, Any], *, beside: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the runs of other seeds that an earlier result has for these settings and tests."""
    if not target.is_file():
        return []
    earlier = json.loads(target.read_text(encoding="utf-8"))
    if earlier.get("settings") != settings:
        return []
    seeds, tests = {run.get("seed") for run in beside}, beside[0]["scores"].keys()
    return [run for run in earlier["runs"] if run.get("seed") not in seeds and run["scores"].keys() == tests]


def trained_runs(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Train the recipe with every seed, and tell of each run."""
    for seed in options.seeds:
        output = options.runs / f"{options.recipe.stem}.seed{seed}"
        limits = ["--threads", options.threads] if options.threads else []
        train(options.recipe, output, data=options.data, seed=seed, ranks=options.ranks, more=limits)
        yield {
            "model": str(output),
            "seed": seed,
            "threads": resolve_experiment(output / "experiment.toml").training.threads,
            "ranks": options.ranks,
            "minutes": minutes_of(output),
            "training": read_description(output / "model").training,
            "decoding": read_description(output / "model").decoding,
        }


def main() -> None:
    """Train, score and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("recipe", type=Path)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the recipe's files")
    parser.add_argument("--runs", type=Path, default=Path("runs") / "quality", help="where runs are kept")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument(
        "--threads", help="threads of training, of each of its ranks, and of translation; all cores unless given"
    )
    parser.add_argument("--ranks", type=int, default=1, help="processes that train one model together")
    parser.add_argument("--validation-only", action="store_true", help="leave the test set unseen")
    parser.add_argument(
        "--model", help="score this one, trained already, instead of training: a folder or bundled name"
    )
    parser.add_argument("--also", action="append", default=[], metavar="NAME=A,B", help="one more test set")
    options = parser.parse_args()
    corpora = resolve_experiment(options.recipe).data
    names = [*corpora.valid, *([] if options.validation_only else corpora.test)]
    tests = {paths_of(name)[0].name.partition(".")[0]: at(options.data, name) for name in names}
    tests |= dict(extra.split("=", 1) for extra in options.also)
    languages = corpora.source_language or "en", corpora.target_language or "de"
    runs = list(trained_runs(options)) if options.model is None else [{"model": options.model}]
    for run in runs:
        run["scores"] = {
            name: score(run["model"], test, languages=languages, threads=options.threads)
            for name, test in tests.items()
        }
    target = HERE / "results" / f"quality.{options.recipe.stem}.json"
    settings = resolve_experiment(options.recipe).model_dump(mode="json")
    if options.model is None:
        runs = sorted([*earlier_runs(target, settings, beside=runs), *runs], key=lambda run: int(run["seed"]))
    result = {
        "recipe": options.recipe.as_posix(),
        "settings": settings,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": f"{processor_name()}, Python {platform.python_version()}",
        "summary": summary(runs),
        "runs": runs,
    }
    target.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    target.with_suffix(".md").write_text(as_markdown(result), encoding="utf-8")
    sys.stdout.write(as_markdown(result))


if __name__ == "__main__":
    main()
