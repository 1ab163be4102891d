"""F1 of parsers on a treebank: right-branching, a grammar read off the treebank, and networks, with EVALB's counts.

    python benchmarks/parsing.py baselines TRAIN DEV
    python benchmarks/parsing.py network NAME MODEL DEV [--note "…"]

Each call adds its rows to results/parsing.json and writes results/parsing.md next to this file. A network is measured
twice: with the search for trees, and with plain beam search, whose outputs need not be trees. Seconds are of processor
time, one thread.
"""

import argparse
import datetime
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from treebank_grammar import TreebankGrammar, right_branching

from transduce.data.formats import Corpus, CorpusFile, Selection
from transduce.evaluation.parsing import MEASURES, bracket_metrics, statistics_of
from transduce.files import write_atomically
from transduce.machine import processor_name
from transduce.text.placeholders import Protected
from transduce.text.trees import linear_form, prepared_tree, read_trees, words_of
from transduce.translator import Translator
from transduce.translator.parsing import parse_all
from transduce.translator.searching import Searcher, Sentence

RESULTS = Path(__file__).parent / "results" / "parsing.json"


def dev_set(path: str) -> tuple[list[str], list[str]]:
    """Return the words and the symbols, with tags, of each tree."""
    pairs = list(Corpus(path, Selection(tree_keeps=("tags",))).pairs())
    return [pair.source for pair in pairs], [pair.target for pair in pairs]


def measured(
    parse: Callable[[Sequence[str]], list[str]], sources: Sequence[str], references: Sequence[str]
) -> dict[str, Any]:
    """Return every measure in percent, and the seconds."""
    began = time.process_time()
    outputs = parse(sources)
    seconds = time.process_time() - began
    scores = {name: metric.corpus_score(outputs, [references]).score for name, metric in bracket_metrics().items()}
    rounded = {name: None if value != value else round(value, 2) for name, value in scores.items()}
    return {**rounded, "seconds": round(seconds, 1), "sentences": len(references), "outputs": outputs}


def baselines(train: str, dev: str) -> dict[str, dict[str, Any]]:
    """Measure the two parsers without a network."""
    found = read_trees(CorpusFile(Path(train)).lines(), name=train)
    grammar = TreebankGrammar(tree for _, own in found if (tree := prepared_tree(own)) is not None)

    def symbols(line: str, parse: Callable[[list[str]], Any]) -> str:
        tree = parse(words_of(line))
        return "" if tree is None else " ".join(linear_form(tree, keeps_tags=True)[1])

    test = dev_set(dev)
    return {
        "right-branching": measured(lambda lines: [symbols(line, right_branching) for line in lines], *test),
        "unlexicalised grammar": measured(lambda lines: [symbols(line, grammar.parse) for line in lines], *test),
    }


def network(name: str, model: str, dev: str) -> dict[str, dict[str, Any]]:
    """Measure a model with both searches."""
    translator = Translator.load(model, precision="float32", threads=1)
    config, tokenizers = translator.decoding, translator.tokenizers

    def trees(lines: Sequence[str]) -> list[str]:
        return [" ".join(parsed.symbols) if parsed else "" for parsed in parse_all(translator, lines, config)]

    def anything(lines: Sequence[str]) -> list[str]:
        encoded = tokenizers.encode_sources(lines)
        sentences = [Sentence(n, 0, Protected("", ()), tuple(ids), key=n) for n, ids in enumerate(encoded)]
        found = Searcher(translator.stepper, tokenizers.target.decode).search(sentences, config)
        return [tokenizers.target.decode(own[0].tokens) for own in found]

    test = dev_set(dev)
    rows = {
        f"{name}, search for trees": measured(trees, *test),
        f"{name}, plain beam search": measured(anything, *test),
    }
    bound, free = (row.pop("outputs") for row in rows.values())
    kept = [
        place for place, (own, gold) in enumerate(zip(free, test[1], strict=True)) if not statistics_of(own, gold)[-1]
    ]
    scores = []
    for outputs in (bound, free):
        chosen = [outputs[place] for place in kept], [[test[1][place] for place in kept]]
        scores.append(bracket_metrics()["F1"].corpus_score(*chosen).score)
    same = sum(bound[place] == free[place] for place in kept)
    note = (
        f"the plain search found {len(kept):,} trees; the search for trees found the same {same:,} times, and has F1 "
    )
    rows[f"{name}, plain beam search"]["note"] = note + f"{scores[0]:.1f} on these sentences against {scores[1]:.1f}"
    return rows


def table(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the results as a page."""
    columns = (*MEASURES, "seconds")
    lines = [
        "# Parsing",
        "",
        (
            "Labelled brackets on GUM's dev set as EVALB counts them (COLLINS.prm, departures in `docs/parsing.md`) in "
            "percent. Learned from its 10,224 training trees. Written by `benchmarks/parsing.py`; processor seconds of "
            "one thread for the whole set."
        ),
        "",
        f"| parser | {' | '.join(columns)} |",
        f"|---|{'---|' * len(columns)}",
    ]
    for name, row in rows.items():
        values = ["–" if row[column] is None else f"{row[column]:.1f}" for column in columns]
        lines.append(f"| {name} | {' | '.join(values)} |")
    lines += ["", *(f"- {name}: {row['conditions']}" for name, row in rows.items())]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, and add the rows to the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for command, names in (("baselines", ["train", "dev"]), ("network", ["name", "model", "dev"])):
        own = commands.add_parser(command)
        for name in names:
            own.add_argument(name)
        own.add_argument("--note", default="")
    given = parser.parse_args()
    if given.command == "baselines":
        rows = baselines(given.train, given.dev)
        for row in rows.values():
            del row["outputs"]
    else:
        rows = network(given.name, given.model, given.dev)
    conditions = f"{datetime.datetime.now(datetime.UTC).date()}, {processor_name()}"
    conditions += f"; {given.note}" if given.note else ""
    kept = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for name, row in rows.items():
        own = f"; {row.pop('note')}" if "note" in row else ""
        kept[name] = {**row, "conditions": conditions + own}
    write_atomically(RESULTS, json.dumps(kept, indent=2) + "\n")
    write_atomically(RESULTS.with_suffix(".md"), table(kept))
    print(table(kept))


if __name__ == "__main__":
    main()
