"""What a glossary does: how often its terms appear, and BLEU, without it, preferred and enforced.

    python benchmarks/terminology.py MODEL --train train.en.gz,train.de.gz --test valid.en.gz,valid.de.gz

The glossary is read off the training text: words that go together with one word of the other language more than
anything else does (Dice's coefficient). Only sentences count whose reference uses the glossary's translation, so that
following it is right. Nothing is trained for any of this, and words are taken as they stand, not inflected. MODEL is a
model directory, a run or a bundled model's name. Writes results/terminology.json and .md next to this file; processor
time is this process's own, for all sentences together.
"""

import argparse
import datetime
import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sacrebleu

from transduce.data.formats import Corpus, Selection
from transduce.translator import Glossary, Translator
from transduce.translator.terminology import count_terms

HERE = Path(__file__).parent
WORD = re.compile(r"[^\W\d_]{4,}")
LEAST, MOST = 25, 2000  # occurrences of a term in the text that it is read off
DICE = 0.6


def pairs_of(files: str, *, most: int | None = None) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a corpus."""
    for number, pair in enumerate(Corpus(files, Selection()).pairs()):
        if most is not None and number == most:
            return
        if not pair.skipped:
            yield pair.source, pair.target


def learned_terms(files: str, *, most: int) -> dict[str, str]:
    """Return words and the word of the other language that each goes with."""
    sources: Counter[str] = Counter()
    targets: Counter[str] = Counter()
    together: Counter[tuple[str, str]] = Counter()
    for source, target in pairs_of(files, most=most):
        own, other = set(WORD.findall(source.lower())), set(WORD.findall(target))
        sources.update(own)
        targets.update(other)
        together.update((a, b) for a in own for b in other)
    best: dict[str, tuple[float, str]] = {}
    for (a, b), count in together.items():
        if LEAST <= sources[a] <= MOST:
            best[a] = max(best.get(a, (0.0, "")), (2 * count / (sources[a] + targets[b]), b))
    return {term: target for term, (share, target) in best.items() if share >= DICE}


def measure(model: str, *, train: str, test: str, sentences: int, threads: int) -> dict[str, Any]:
    """Return terms that appear and BLEU for each way of using the glossary."""
    terms = tuple(sorted(learned_terms(train, most=200_000).items()))
    finder = Glossary(terms)
    pairs, seen = [], set()
    for source, target in pairs_of(test):
        wanted = finder.wanted(source)
        if source not in seen and wanted and count_terms(wanted, target) == len(wanted):
            pairs.append((source, target))
            seen.add(source)
    pairs = pairs[:sentences]
    texts, references = [source for source, _ in pairs], [target for _, target in pairs]
    translator = Translator.load(model, threads=threads)
    translator.translate(texts[:50])  # so that the first measurement pays for no compilation
    found: dict[str, Any] = {}
    for name in ("without", "preferred", "enforced"):
        glossary = Glossary(()) if name == "without" else Glossary(terms, mode=name)
        began = time.process_time()
        outputs = [own.text for own in translator.translate(texts, glossary=glossary)]
        seconds = time.process_time() - began
        bleu = sacrebleu.metrics.BLEU()
        found[name] = {
            "terms_appearing": sum(
                count_terms(finder.wanted(text), output) for text, output in zip(texts, outputs, strict=True)
            ),
            "processor_seconds": round(seconds, 2),
            "bleu": round(bleu.corpus_score(outputs, [references]).score, 2),
            "signature": str(bleu.get_signature()),
        }
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "model": Path(model).name,
        "precision": translator.precision,
        "glossary_terms": len(terms),
        "sentences": len(texts),
        "terms_wanted": sum(len(finder.wanted(text)) for text in texts),
        **found,
    }


def as_markdown(found: dict[str, Any]) -> str:
    """Return the figures as a page."""
    rows = "\n".join(
        f"| {name} | {found[name]['terms_appearing']} of {found['terms_wanted']} "
        f"({found[name]['terms_appearing'] / found['terms_wanted']:.1%}) | {found[name]['bleu']} "
        f"| {found[name]['processor_seconds']} s |"
        for name in ("without", "preferred", "enforced")
    )
    return (
        f"# Terminology\n\n{found['date']}, model {found['model']} in {found['precision']}, {found['sentences']} "
        f"sentences whose references use the glossary's translations; it has {found['glossary_terms']} terms, read off "
        "the training text.\n\n| glossary | terms that appear | BLEU | processor time |\n|---|---|---|---|\n"
        f"{rows}\n\n{found['without']['signature']}\n"
    )


def main() -> None:
    """Measure and write down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--train", required=True)
    parser.add_argument("--test", required=True)
    parser.add_argument("--sentences", type=int, default=300)
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    found = measure(asked.model, train=asked.train, test=asked.test, sentences=asked.sentences, threads=asked.threads)
    results = HERE / "results"
    (results / "terminology.json").write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    (results / "terminology.md").write_text(as_markdown(found), encoding="utf-8")
    print(as_markdown(found))


if __name__ == "__main__":
    main()
