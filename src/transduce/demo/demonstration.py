"""The demonstration: train a Transformer on the bundled corpus, score it, translate with it, show its attention.

It calls the pipeline that `transduce train` calls. An interrupted demonstration continues where it stopped.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import sacrebleu

from transduce.demo.corpus import TextPair, corpus, write_corpus
from transduce.files import make_folder, write_atomically
from transduce.pipeline.estimate import announcement, seconds_per_step
from transduce.pipeline.planning import Choice, TrainRequest, choose_experiment, has_learned
from transduce.pipeline.run import TrainingResult, opened_run
from transduce.progress import Progress
from transduce.training.trainer import Ending
from transduce.translator import Translator

SPLITS = {"held_out": "test", "combinations": "test_combinations", "long": "test_long"}
MEANINGS = {
    "held_out": "new sentences of the same kind",
    "combinations": "words that never met in training",
    "long": "longer than any sentence of training",
}
_EXAMPLES = 5


@dataclass(frozen=True)
class DemoSize:
    """The size of the corpus and the length of the training."""

    pairs: int
    held_out: int
    training_seconds: float
    """Time for the training steps; validations and checkpoints take time on top."""
    fewest_steps: int = 60
    """The minimum, even if it takes longer: fewer steps do not give a model worth showing."""

    def steps(self, seconds_per_step: float) -> int:
        """Return the number of steps that fit the time, given the time of one step."""
        return max(self.fewest_steps, min(_MOST_STEPS, int(self.training_seconds / seconds_per_step)))


FULL = DemoSize(pairs=60_000, held_out=500, training_seconds=120.0, fewest_steps=800)
QUICK = DemoSize(pairs=6_000, held_out=100, training_seconds=12.0)
_MOST_STEPS = 8_000
_VALIDATIONS = 8


@dataclass
class Demonstration:
    """The results of a demonstration: scores by split, some translations, seconds by stage, the folder."""

    folder: Path
    scores: dict[str, dict[str, float]] = field(default_factory=dict)
    examples: list[tuple[str, str, str]] = field(default_factory=list)
    """Sentences of the test split: English, the model's German, the grammar's German."""
    seconds: dict[str, float] = field(default_factory=dict)
    was_stopped: bool = False
    bits_per_character: float | None = None
    """Of a language model."""
    written: list[tuple[str, str]] = field(default_factory=list)
    """Beginnings of sentences, and how a language model went on."""

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Add the time that the block takes to the seconds of `stage`."""
        started = time.monotonic()
        try:
            yield
        finally:
            self.seconds[stage] = round(self.seconds.get(stage, 0.0) + time.monotonic() - started, 2)

    def to_json(self) -> str:
        """Return scores and times for scripts."""
        written = {} if self.bits_per_character is None else {"bits_per_character": self.bits_per_character}
        content: dict[str, Any] = {
            **self.scores,
            **written,
            "seconds": {**self.seconds, "total": sum(self.seconds.values())},
        }
        return json.dumps(content, indent=2) + "\n"


def demonstrate(
    folder: Path,
    size: DemoSize,
    *,
    seed: int,
    threads: int | None,
    progress: Progress,
    stop_requested: Callable[[], bool],
) -> Demonstration:
    """Run the demonstration in `folder`, or continue one that was interrupted; `seed` is the seed of the training."""
    shown = Demonstration(folder)
    with shown.timed("corpus"):
        write_corpus(folder / "corpus", pairs=size.pairs, held_out=size.held_out)
        tests = corpus(pairs=0, held_out=size.held_out)
    files = folder / "corpus"
    data = {"train": [str(files / "train.tsv")], "valid": [str(files / "valid.tsv")]}
    languages = {"source_language": "en", "target_language": "de"}
    request = _request("demo", {**data, **languages}, seed=seed, threads=threads)
    _train(shown, size, request, progress=progress, stop_requested=stop_requested)
    if shown.was_stopped:
        return shown
    translator = Translator.load(folder, threads=threads)
    with shown.timed("evaluation"):
        for name, split in SPLITS.items():
            shown.scores[name] = _score(translator, getattr(tests, split), name, progress=progress)
    with shown.timed("translation"):
        for english, german in tests.test[:_EXAMPLES]:
            shown.examples.append((english, translator.translate(english).text, german))
    with shown.timed("attention"):
        page = translator.attention(shown.examples[0][0]).to_html()
        write_atomically(folder / "attention.html", page)
    return shown


def demonstrate_writing(
    folder: Path,
    size: DemoSize,
    *,
    seed: int,
    threads: int | None,
    progress: Progress,
    stop_requested: Callable[[], bool],
) -> Demonstration:
    """Train a language model on the English side of the corpus, or go on, and write with it."""
    shown = Demonstration(folder)
    with shown.timed("corpus"):
        splits = corpus(pairs=size.pairs, held_out=size.held_out)
        make_folder(folder / "corpus")
        for name, pairs in (("train", splits.train), ("valid", splits.valid)):
            lines = "".join(f"{english}\n" for english, _ in pairs)
            write_atomically(folder / "corpus" / f"{name}.txt", lines)
    data = {"text": [str(folder / "corpus" / "train.txt")], "valid": [str(folder / "corpus" / "valid.txt")]}
    request = _request("gpt-tiny", data, seed=seed, threads=threads)
    result = _train(shown, size, request, progress=progress, stop_requested=stop_requested)
    if shown.was_stopped:
        return shown
    shown.bits_per_character = result.validation.bits_per_character if result.validation else None
    with shown.timed("writing"):
        translator = Translator.load(folder, threads=threads)
        for number, (english, _) in enumerate(splits.test[:_EXAMPLES]):
            begun = " ".join(english.split()[:2])
            shown.written.append((begun, translator.generate(begun, temperature=0.5, seed=number, stop=("\n",))))
    with shown.timed("attention"):
        begun, rest = shown.written[0]
        page = translator.attention(f"{begun}{rest}"[: translator.longest_sentence - 1]).to_html()
        write_atomically(folder / "attention.html", page)
    return shown


def _request(preset: str, data: dict[str, Any], *, seed: int, threads: int | None) -> TrainRequest:
    training = {"seed": seed, **({"threads": threads} if threads else {})}
    return TrainRequest(preset=preset, sections={"data": data, "training": training})


def _train(
    shown: Demonstration,
    size: DemoSize,
    request: TrainRequest,
    *,
    progress: Progress,
    stop_requested: Callable[[], bool],
) -> TrainingResult:
    request = TrainRequest() if has_learned(shown.folder) else request
    choice = choose_experiment(request, shown.folder, progress=progress)
    with shown.timed("vocabulary and token store"):
        if not choice.resumes:
            choice = _fitted(choice, shown.folder, size, progress=progress)
    with shown.timed("training"), opened_run(choice, shown.folder, progress=progress) as run:
        if not choice.resumes:
            for line in announcement(run):
                progress.note(line)
        result = run.train(stop_requested=stop_requested)
    shown.was_stopped = result.ending is Ending.STOPPED
    return result


def _fitted(choice: Choice, folder: Path, size: DemoSize, *, progress: Progress) -> Choice:
    """Prepare the corpus, measure a training step, and return the experiment with the steps that fit the time."""
    with opened_run(choice, folder, progress=progress) as run:
        trainer = run.training.opened().trainer()
        seconds = seconds_per_step(trainer, during=max(1.0, size.training_seconds / 30.0))
    steps = size.steps(seconds)
    if steps * seconds > 1.5 * size.training_seconds:
        progress.note(
            f"A step takes {seconds:.1f} s: is the machine busy? Training takes the minimum of {steps:,} steps."
        )
    changes = {
        "decay_steps": steps,
        "warmup_steps": min(choice.experiment.training.warmup_steps, steps // 8),
        "validate_every": steps // _VALIDATIONS,
        "checkpoint_every": max(1, steps // 25),
    }
    if choice.experiment.training.steps is not None:
        changes["steps"] = steps
    training = choice.experiment.training.model_copy(update=changes)
    return replace(choice, experiment=choice.experiment.model_copy(update={"training": training}))


def _score(translator: Translator, pairs: list[TextPair], name: str, *, progress: Progress) -> dict[str, float]:
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
