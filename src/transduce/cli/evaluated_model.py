"""A model opened for `evaluate` and `likelihood`: its translator, and what an evaluation records of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from transduce.compute import processor_name
from transduce.evaluation.evaluate import System, SystemOutput
from transduce.evaluation.likelihood import encode_pairs, log_probabilities_of_pairs
from transduce.evaluation.record import TranslationSettings
from transduce.files import sha256_of_file
from transduce.model_directory import WEIGHTS, Description, Languages, find_model, load_model
from transduce.translator import Translator
from transduce.translator.translator import WantedPrecision


@dataclass(frozen=True)
class EvaluatedModel:
    """A model that was opened to be evaluated."""

    folder: Path
    languages: Languages
    translator: Translator
    system: System


def open_model(
    name: str, *, search: Mapping[str, float], precision: WantedPrecision = "float32", threads: int | None = None
) -> EvaluatedModel:
    """Open a model directory or run; the settings of `search` replace the model's own."""
    folder = find_model(name)
    directory = load_model(folder)
    translator = Translator([directory], precision=precision, threads=threads)
    config = translator.configure(**search)
    network, tokenizers = translator.networks[0], translator.tokenizers

    def translate(texts: Sequence[str]) -> list[SystemOutput]:
        return [SystemOutput(found.text, len(found.tokens)) for found in translator.translate_all(texts, config)]

    def log_probabilities(pairs: Sequence[tuple[str, str]]) -> list[list[float]]:
        return log_probabilities_of_pairs(network, encode_pairs(tokenizers, pairs))

    system = System(
        name,
        translate=translate,
        log_probabilities=log_probabilities,
        training_hashes=directory.training_hashes(),
        settings=TranslationSettings(
            model_sha256=sha256_of_file(folder / WEIGHTS),
            beam=config.beam,
            length_penalty=config.length_penalty,
            shortlist=config.shortlist,
            consensus=config.consensus,
            precision=translator.precision,
            averaging=averaging_of(directory.description),
        ),
        threads=translator.compute.threads,
        processor=processor_name(),
    )
    return EvaluatedModel(folder, languages=translator.languages, translator=translator, system=system)


def averaging_of(description: Description) -> str | None:
    """Return the checkpoints that the weights are the mean of as text, or None if the model does not record them."""
    steps = description.training.get("averaged")
    if not isinstance(steps, list) or not steps:
        return None
    listed = ", ".join(f"{step:,}" for step in steps)
    return f"mean of steps {listed}" if len(steps) > 1 else f"none (step {listed})"
