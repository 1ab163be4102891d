"""Text in, `Translation` out."""

from transduce.translator.translation import Alternative, Likelihood, Translation
from transduce.translator.translator import Translator

__all__ = ["Alternative", "Likelihood", "Translation", "Translator"]
