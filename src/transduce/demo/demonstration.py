"""The demonstration: a corpus of our own, a Transformer trained on it, its scores, its translations, its attention.

Everything is what a user's own corpus would go through: the demonstration calls the same pipeline. Interrupted, it goes
on where it stopped.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import sacrebleu

from transduce.demo.corpus import Pair, corpus, write_corpus
from transduce.files import write_atomically
from transduce.pipeline.estimate import announcement, seconds_per_step
from transduce.pipeline.planning import Choice, Request, choose_experiment, has_learned
from transduce.pipeline.run import opened_run
from transduce.progress import Progress
from transduce.training.trainer import Ending
from transduce.translator import Translator

SPLITS = {"held_out": "test", "combinations": "test_combinations", "long": "test_long"}
MEANINGS = {
    "held_out": "new sentences of the same kind",
    "combinations": "words that never met in training",
    "long": "longer than any sentence of training",
}
_SHOWN = 5


@dataclass(frozen=True)
class Size:
    """How large a demonstration is."""

    pairs: int
    held_out: int
    training_seconds: float
    """How long the steps alone should take; validations and checkpoints come on top."""
    fewest_steps: int = 60
    """Taken even where they do not fit the time: a model that has learned nothing shows nothing."""

    def steps(self, seconds_per_step: float) -> int:
        """Return how many steps to take where one takes so long."""
        return max(self.fewest_steps, min(_MOST_STEPS, int(self.training_seconds / seconds_per_step)))


FULL = Size(pairs=60_000, held_out=500, training_seconds=120.0, fewest_steps=800)
QUICK = Size(pairs=6_000, held_out=100, training_seconds=12.0)
_MOST_STEPS = 8_000
_LOOKS = 8


@dataclass
class Demonstration:
    """What a demonstration showed: scores by split, some translations, seconds by stage, where things are."""

    folder: Path
    scores: dict[str, dict[str, float]] = field(default_factory=dict)
    examples: list[tuple[str, str, str]] = field(default_factory=list)
    """New sentences: English, our German, the grammar's German."""
    seconds: dict[str, float] = field(default_factory=dict)
    was_stopped: bool = False

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Note how long a stage takes."""
        started = time.monotonic()
        try:
            yield
        finally:
            self.seconds[stage] = round(self.seconds.get(stage, 0.0) + time.monotonic() - started, 2)

    def to_json(self) -> str:
        """Return scores and times for scripts."""
        content: dict[str, Any] = {**self.scores, "seconds": {**self.seconds, "total": sum(self.seconds.values())}}
        return json.dumps(content, indent=2) + "\n"


def demonstrate(
    folder: Path,
    size: Size,
    *,
    seed: int,
    threads: int | None,
    progress: Progress,
    stop_requested: Callable[[], bool],
) -> Demonstration:
    """Run the demonstration in `folder`, or go on with one that was interrupted."""
    shown = Demonstration(folder)
    with shown.timed("corpus"):
        _write_corpus(folder / "corpus", size, seed=seed, progress=progress)
    _train(shown, size, seed=seed, threads=threads, progress=progress, stop_requested=stop_requested)
    if shown.was_stopped:
        return shown
    translator = Translator.load(folder, threads=threads)
    with shown.timed("evaluation"):
        for name, split in SPLITS.items():
            shown.scores[name] = _score(translator, folder / "corpus" / f"{split}.tsv", name, progress=progress)
    with shown.timed("translation"):
        for english, german in corpus(pairs=1, seed=seed + 1, held_out=_SHOWN).test:
            shown.examples.append((english, translator.translate(english).text, german))
    with shown.timed("attention"):
        page = translator.attention(shown.examples[0][0]).to_html()
        write_atomically(folder / "attention.html", page)
    return shown


def _write_corpus(folder: Path, size: Size, *, seed: int, progress: Progress) -> None:
    """Write the corpus unless it stands there already; the last file written vouches for the others."""
    mark = folder / "corpus.json"
    wanted = json.dumps({"pairs": size.pairs, "held_out": size.held_out, "seed": seed})
    if mark.exists() and mark.read_text(encoding="utf-8") == wanted:
        return
    with progress.stage("generating the corpus", total=1):
        write_corpus(folder, pairs=size.pairs, seed=seed, held_out=size.held_out)
        write_atomically(mark, wanted)


def _train(
    shown: Demonstration,
    size: Size,
    *,
    seed: int,
    threads: int | None,
    progress: Progress,
    stop_requested: Callable[[], bool],
) -> None:
    files = shown.folder / "corpus"
    sections: dict[str, dict[str, Any]] = {
        "data": {
            "train": [str(files / "train.tsv")],
            "valid": [str(files / "valid.tsv")],
            "source_language": "en",
            "target_language": "de",
        },
        "training": {"seed": seed, **({"threads": threads} if threads else {})},
    }
    request = Request() if has_learned(shown.folder) else Request(preset="demo", sections=sections)
    choice = choose_experiment(request, shown.folder, progress=progress)
    with shown.timed("vocabulary and token store"):
        if not choice.goes_on:
            choice = _fitted(choice, shown.folder, size, progress=progress)
    with shown.timed("training"), opened_run(choice, shown.folder, progress=progress) as run:
        if not choice.goes_on:
            for line in announcement(run):
                progress.note(line)
        finished = run.train(stop_requested=stop_requested)
    shown.was_stopped = finished.outcome.ending is Ending.STOPPED


def _fitted(choice: Choice, folder: Path, size: Size, *, progress: Progress) -> Choice:
    """Prepare the corpus, measure a step, and return the experiment with as many steps as fit the time here."""
    with opened_run(choice, folder, progress=progress) as run:
        seconds = seconds_per_step(run, during=max(1.0, size.training_seconds / 30.0))
    steps = size.steps(seconds)
    if steps * seconds > 1.5 * size.training_seconds:
        progress.note(f"A step takes {seconds:.1f} s here, now: is the machine busy? {steps:,} steps are the fewest.")
    changes = {
        "decay_steps": steps,
        "warmup_steps": min(choice.experiment.training.warmup_steps, steps // 8),
        "validate_every": steps // _LOOKS,
        "checkpoint_every": max(1, steps // 25),
    }
    training = choice.experiment.training.model_copy(update=changes)
    return replace(choice, experiment=choice.experiment.model_copy(update={"training": training}))


def _score(translator: Translator, file: Path, name: str, *, progress: Progress) -> dict[str, float]:
    pairs = _read(file)
    config = translator.configure()
    outputs: list[str] = []
    with progress.stage(f"scoring: {MEANINGS[name]}", total=len(pairs), unit="sentences") as stage:
        for start in range(0, len(pairs), 100):
            part = [english for english, _ in pairs[start : start + 100]]
            outputs += [translation.text for translation in translator.translate_all(part, config)]
            stage.advance(len(part))
    references = [german for _, german in pairs]
    exact = sum(output == reference for output, reference in zip(outputs, references, strict=True)) / len(pairs)
    return {"bleu": round(sacrebleu.corpus_bleu(outputs, [references]).score, 2), "exact": round(exact, 4)}


def _read(file: Path) -> list[Pair]:
    rows = (line.split("\t") for line in file.read_text(encoding="utf-8").splitlines())
    return [(english, german) for english, german in rows]
