"""Loads the model of a command. A command owns its process, so it may set threads and allocator."""

from typing import TYPE_CHECKING

from transduce.extras import require_torch
from transduce.machine import available_cores, give_back_freed_memory, keep_freed_memory
from transduce.translator import Translator
from transduce.translator.translator import WantedPrecision

if TYPE_CHECKING:
    from transduce.loaded_encoder import LoadedEncoder


def load_translator(*names: str, precision: WantedPrecision, threads: int | None) -> Translator:
    """Load a model directory, a run or a bundled model, or several as an ensemble.

    The process uses `threads` threads, or all cores if None.
    """
    keep_freed_memory()
    translator = Translator.load(*names, precision=precision, threads=threads or available_cores())
    give_back_freed_memory()
    return translator


def load_encoder(name: str, *, threads: int | None) -> "LoadedEncoder":
    """Load a text encoder such as BERT; the process uses `threads` threads, or all cores if None."""
    require_torch("A text encoder")
    from transduce.loaded_encoder import LoadedEncoder

    return LoadedEncoder.load(name, threads=threads or available_cores())
