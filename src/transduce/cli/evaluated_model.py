"""Opens a model for `evaluate` and `likelihood`: its translator, and the facts that an evaluation records."""

from collections.abc import Sequence
from typing import NamedTuple

from transduce.cli.loading import load_translator
from transduce.decoding.config import DecodingOptions
from transduce.evaluation.evaluate import System, SystemOutput
from transduce.evaluation.record import TranslationSettings
from transduce.files import sha256_of_file
from transduce.machine import processor_name
from transduce.model_directory import WEIGHTS, Description
from transduce.translator import Translator
from transduce.translator.parsing import parse_all, writes_trees
from transduce.translator.several_targets import toward
from transduce.translator.translator import WantedPrecision


class EvaluatedModel(NamedTuple):
    """A loaded model as a translator, and as the system to evaluate."""

    translator: Translator
    system: System


def open_model(
    name: str,
    *,
    search: DecodingOptions,
    precision: WantedPrecision = "float32",
    threads: int | None = None,
    target: str | None = None,
) -> EvaluatedModel:
    """Load a model; `search` overrides the model's own search settings."""
    translator = load_translator(name, precision=precision, threads=threads)
    if target is not None:
        translator = toward(translator, target, is_strict=False)
    directory = translator.models[0]
    # Score the output of the search, without repairs of placeholders, punctuation and capitals.
    options: DecodingOptions = {"keep_placeholders": "report", "keep_form": False, **search}
    config = translator.configure(**options)

    def translate(texts: Sequence[str]) -> list[SystemOutput]:
        if writes_trees(translator):
            trees = [parsed.symbols if parsed else () for parsed in parse_all(translator, texts, config)]
            return [SystemOutput(" ".join(symbols), len(symbols) + 1) for symbols in trees]
        return [SystemOutput(found.text, len(found.tokens)) for found in translator.translate_all(texts, config)]

    def log_probabilities(pairs: Sequence[tuple[str, str]]) -> list[list[float]]:
        return [list(found.log_probabilities) for found in translator.likelihood(pairs)]

    system = System(
        name,
        translate=translate,
        log_probabilities=None if writes_trees(translator) else log_probabilities,  # a treebank may have other tags
        training_hashes=directory.training_hashes(),
        settings=TranslationSettings(
            model_sha256=sha256_of_file(directory.folder / WEIGHTS),
            beam=config.beam,
            length_penalty=config.length_penalty,
            shortlist=config.shortlist,
            consensus=config.consensus,
            precision=translator.precision,
            averaging=averaging_of(directory.description),
        ),
        threads=translator.threads,
        processor=processor_name(),
    )
    return EvaluatedModel(translator, system)


def averaging_of(description: Description) -> str | None:
    """Return the steps of the averaged checkpoints as text, or None if the model does not record them."""
    steps = description.training.get("averaged")
    if not isinstance(steps, list) or not steps:
        return None
    listed = ", ".join(f"{step:,}" for step in steps)
    return f"mean of steps {listed}" if len(steps) > 1 else f"none (step {listed})"
