"""transduce: the system of "Attention Is All You Need" as software that people use.

    import transduce
    transduce.train("corpus.tsv", output="runs/en-de")
    translator = transduce.load("runs/en-de")
    translator.translate("A dog runs.").text

Importing this package is cheap: torch is loaded only when a model is.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from transduce.version import __version__

if TYPE_CHECKING:
    from transduce.loaded_encoder import LoadedEncoder
    from transduce.pipeline.command import CorpusNames
    from transduce.pipeline.run import TrainingResult
    from transduce.progress import Progress
    from transduce.translator import Translator

__all__ = ["__version__", "load", "load_encoder", "train"]


def load(
    *models: str | Path,
    precision: Literal["auto", "int8", "bf16", "float32"] = "auto",
    threads: int | None = None,
) -> "Translator":
    """Load a model directory, a run, or a bundled model by name, ready to translate; several become an ensemble."""
    from transduce.translator import Translator

    return Translator.load(*models, precision=precision, threads=threads)


def load_encoder(model: str | Path, *, threads: int | None = None) -> "LoadedEncoder":
    """Load a text encoder, such as an imported BERT, which fills masks, embeds texts and shows its attention."""
    from transduce.extras import require_torch

    require_torch("A text encoder")
    from transduce.loaded_encoder import LoadedEncoder

    return LoadedEncoder.load(model, threads=threads)


def train(
    text: "CorpusNames | None" = None,
    *,
    output: str | Path,
    text_file: "CorpusNames | None" = None,
    valid: "CorpusNames | None" = None,
    test: "CorpusNames | None" = None,
    source_language: str | None = None,
    target_language: str | None = None,
    preset: str | None = None,
    experiment: str | Path | None = None,
    settings: Mapping[str, object] | None = None,
    start_from: str | Path | None = None,
    steps: int | None = None,
    time: str | None = None,
    threads: int | None = None,
    progress: "Progress | None" = None,
    stop_requested: Callable[[], bool] | None = None,
) -> "TrainingResult":
    """Learn to translate from parallel text, as `transduce train` does; called again, go on where training stopped.

    With `text_file`, plain text, it trains a language model.

    `text`, `valid` and `test` name a corpus or several, in any format that the command reads. `settings` sets any key
    of an experiment, such as {"training.seed": 2}; `steps` and `time` ("2h") are the budgets among them.
    `stop_requested` is asked after every step, and a True ends training with everything saved. Without a `progress`
    nothing is printed.

    Returns the ending, the paths of the model and the report, and the validation scores.
    """
    from transduce.extras import LEARNING, require

    require(LEARNING, purpose="Training", extra="train")
    from transduce.pipeline import command

    request = command.request_of(
        experiment=Path(experiment) if experiment is not None else None,
        preset=preset,
        settings=settings,
        corpora={"train": text, "text": text_file, "valid": valid, "test": test},
        data={"source_language": source_language, "target_language": target_language},
        training={
            "steps": steps,
            "time": time,
            "threads": threads,
            "start_from": str(start_from) if start_from is not None else None,
        },
    )
    return command.train(request, Path(output), progress=progress, stop_requested=stop_requested or (lambda: False))
