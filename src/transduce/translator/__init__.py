"""Translation of text with a trained model: `Translator` takes text and returns `Translation`s."""

from transduce.translator.terminology import Glossary, read_glossary
from transduce.translator.translation import Alternative, Likelihood, SentenceOutput, Translation
from transduce.translator.translator import Translator

__all__ = ["Alternative", "Glossary", "Likelihood", "SentenceOutput", "Translation", "Translator", "read_glossary"]
