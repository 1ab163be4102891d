"""Translate 300 untidy inputs and 1,000 sentences with placeholders, and list what came out.

    python benchmarks/robustness.py de-en
    python benchmarks/robustness.py en-de --before runs/old/model --data ../shared/data/tatoeba

The inputs are sentences, names and strings of an interface of our own (robustness.tsv), as they are and in capitals,
without final punctuation, with a typing error, in quotes, with an emoji. `kept` counts the outputs that have what the
input has: capitals, no full stop, quotes, the emoji, the name. chrF2 compares with our translation, changed alike. An
earlier model (`--before`) reads capitals as they are, as the program of its time did. The placeholders, URLs, tags and
numbers stand in sentences of Tatoeba's validation set, and the search does not insist on them: a sentence is right if
each comes back as often as it went in. Writes results/robustness.SOURCE-TARGET.md.
"""

import argparse
import datetime
import gzip
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import sacrebleu

import transduce
from transduce.text.sentence_form import keep_form
from transduce.translator import Translator

HERE = Path(__file__).parent
NAMES = ("Tom", "Dr. Müller", "Aisha Rahman", "Nguyễn Văn An", "Björk", "O'Brien", "Xiomara", "Jean-Pierre")
QUOTES = "\"“”„'‘’«»"
THINGS = (
    "{user_name}", "{0}", "%s", "%1$s", "%(count)d", "${HOME}", "{{ title }}", "https://example.org/a?b=1",
    "http://test.example/index.html", "info@example.org", "<b>42</b>", "<br>", "2,500", "17", "1984", "3.5", "#12",
)  # fmt: skip


@dataclass(frozen=True)
class Input:
    """An input, our translation of it, and a check of the output."""

    kind: str
    source: str
    target: str
    is_kept: Callable[[str], bool]


def typed_wrong(text: str) -> str:
    """Swap two letters inside the longest word."""
    word = max(text.split(), key=len).strip(".,?!")
    return text.replace(word, word[:1] + word[2] + word[1] + word[3:], 1)


def inputs(reverse: bool) -> list[Input]:
    """Return the 300 inputs."""
    rows = [line.split("\t") for line in (HERE / "robustness.tsv").read_text(encoding="utf-8").splitlines()]
    sides = [(kind, *((target, source) if reverse else (source, target))) for kind, source, target in rows]
    made = []
    for _, source, target in (row for row in sides if row[0] == "sentence"):
        made += [
            Input("as it is", source, target, lambda text: text[-1:] in (".", "?", "!")),
            Input("capitals", source.upper(), target.upper(), str.isupper),
            Input("no final punctuation", source[:-1], target[:-1], lambda text: text[-1:] not in (".", "?", "!")),
            Input("typing error", typed_wrong(source), target, lambda text: text[-1:] in (".", "?", "!")),
            Input("quotes", f'"{source}"', f'"{target}"', lambda text: text[:1] in QUOTES and text[-1:] in QUOTES),
            Input("emoji", f"{source} 🎉", f"{target} 🎉", lambda text: "🎉" in text),
        ]
    for _, source, target in (row for row in sides if row[0] == "named"):
        for name in NAMES:
            made.append(Input("name", source.format(name), target.format(name), lambda text, name=name: name in text))  # type: ignore[misc]
    made += [
        Input("interface", source, target, lambda text: text[-1:] not in (".", "?", "!"))
        for kind, source, target in sides
        if kind == "interface"
    ]
    return made


def with_things(sentences: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return the sentences with one to three things that must come back, and these things."""
    chance, made = random.Random(3), []
    for sentence in sentences:
        things = chance.sample(THINGS, chance.randint(1, 3))
        words = sentence.split()
        for thing in things:
            words.insert(chance.randint(0, len(words) - 1), thing)
        made.append((" ".join(words), things))
    return made


def all_back(translation: str, source: str, things: Sequence[str]) -> bool:
    """Return whether each thing is as often in the translation as in the source."""
    wanted = Counter({thing: source.count(thing) for thing in things})
    return all(translation.count(thing) == times for thing, times in wanted.items())


def translated(model: Translator, sources: Sequence[str], label: str) -> list[str]:
    """Return the translation of each source; the model `before` reads capitals as they are."""
    if label != "before":
        return [found.text for found in model.translate(sources)]
    spelled = model.translate(sources, keep_form=False)
    return [keep_form(own.source, own.text, language=model.languages.target) for own in spelled]


def table(models: dict[str, Translator], made: Sequence[Input]) -> list[str]:
    """Return the summary of each kind and the list of all outputs, as Markdown."""
    outputs = {name: translated(model, [one.source for one in made], name) for name, model in models.items()}
    columns = [f"{name}: {what}" for name in models for what in ("kept", "chrF2")]
    lines = [f"| input | {' | '.join(columns)} |", "|---" * (1 + len(columns)) + "|"]
    for kind in dict.fromkeys(one.kind for one in made):
        rows = [n for n, one in enumerate(made) if one.kind == kind]
        cells = []
        for texts in outputs.values():
            kept = sum(made[n].is_kept(texts[n]) for n in rows)
            chrf = sacrebleu.corpus_chrf([texts[n] for n in rows], [[made[n].target for n in rows]]).score
            cells += [f"{kept} of {len(rows)}", f"{chrf:.1f}"]
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    lines += ["", "## All outputs", "", f"| input | {' | '.join(models)} |", "|---" * (1 + len(models)) + "|"]
    for n, one in enumerate(made):
        cells = [text.replace("|", r"\|") for text in (one.source, *(texts[n] for texts in outputs.values()))]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def main() -> None:
    """Translate with one model, or with two, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", help="a bundled name, run or model directory")
    parser.add_argument("--before", help="an earlier model to show beside it")
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "data" / "tatoeba")
    options = parser.parse_args()
    names = {"before": options.before, "now": options.model} if options.before else {"now": options.model}
    models = {label: transduce.load(name, threads=1) for label, name in names.items()}
    languages = models["now"].languages
    sentences = (
        gzip.decompress((options.data / f"valid.{languages.source}.gz").read_bytes()).decode().splitlines()[:1000]
    )
    lines = [
        f"# Untidy inputs, {languages.source} to {languages.target}",
        "",
        f"`benchmarks/robustness.py`, {datetime.datetime.now(datetime.UTC):%Y-%m-%d}, the search of `translate`.",
        "Without constraint, this many of 1,000 sentences bring back all their placeholders, URLs, tags and numbers",
        "(one to three each):",
        "",
    ]
    things = with_things(sentences)
    for label, model in models.items():
        found = model.translate([text for text, _ in things], keep_placeholders="off", keep_form=False)
        right = sum(all_back(one.text, text, each) for one, (text, each) in zip(found, things, strict=True))
        lines.append(f"- {label}: {right:,} of {len(things):,}")
    lines += ["", *table(models, inputs(languages.source == "de"))]
    page = HERE / "results" / f"robustness.{languages.source}-{languages.target}.md"
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines[:18]), f"\nin {page}")


if __name__ == "__main__":
    main()
