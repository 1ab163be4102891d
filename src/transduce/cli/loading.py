"""Loads the translator of a command. A command owns its process, so it may set threads and allocator."""

from transduce.machine import available_cores, give_back_freed_memory, keep_freed_memory
from transduce.translator import Translator
from transduce.translator.translator import WantedPrecision


def load_translator(*names: str, precision: WantedPrecision, threads: int | None) -> Translator:
    """Load a model directory, a run or a bundled model, or several as an ensemble.

    The process uses `threads` threads, or all cores if None.
    """
    keep_freed_memory()
    translator = Translator.load(*names, precision=precision, threads=threads or available_cores())
    give_back_freed_memory()
    return translator
