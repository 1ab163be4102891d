"""Loads the translator of a command. A command owns its process, so it may set threads and allocator."""

from transduce.compute import configure_compute, give_back_freed_memory
from transduce.translator import Translator
from transduce.translator.translator import WantedPrecision


def load_translator(name: str, *, precision: WantedPrecision, threads: int | None) -> Translator:
    """Load a model directory, a run or a bundled model; the process uses `threads` threads, or all cores if None."""
    configure_compute(threads=threads, precision="float32", device="cpu")
    translator = Translator.load(name, precision=precision, threads=threads)
    give_back_freed_memory()
    return translator
