"""transduce: the system of "Attention Is All You Need" as software that people use.

    import transduce
    translator = transduce.load("runs/en-de/model")
    translator.translate("A dog runs.").text

Importing this package is cheap: torch is loaded only when a model is.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from transduce.version import __version__

if TYPE_CHECKING:
    from transduce.translator import Translator

__all__ = ["__version__", "load"]


def load(
    *models: str | Path,
    precision: Literal["auto", "int8", "bf16", "float32"] = "auto",
    threads: int | None = None,
) -> "Translator":
    """Load a model directory, a run, or a bundled model by name, ready to translate; several become an ensemble."""
    from transduce.translator import Translator

    return Translator.load(*models, precision=precision, threads=threads)
