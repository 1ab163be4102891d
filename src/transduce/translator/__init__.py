"""Text in, `Translation` out."""

from transduce.translator.terminology import Glossary, read_glossary
from transduce.translator.translation import Alternative, Likelihood, Translation
from transduce.translator.translator import Translator

__all__ = ["Alternative", "Glossary", "Likelihood", "Translation", "Translator", "read_glossary"]
