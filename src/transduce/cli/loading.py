"""Loads the translator of a command, and sets torch's threads and the allocator for it: the process is its own."""

from transduce.compute import give_back_freed_memory, settle
from transduce.translator import Translator
from transduce.translator.translator import WantedPrecision


def load_translator(name: str, *, precision: WantedPrecision, threads: int | None) -> Translator:
    """Load a model directory, a run or a bundled model into a process that computes with `threads`, or all cores."""
    settle(threads=threads, precision="float32", device="cpu")
    translator = Translator.load(name, precision=precision, threads=threads)
    give_back_freed_memory()
    return translator
