"""Accelerators of menus: the mark before the letter of a key, `_File` (GTK) or `&File` (Qt, Windows).

To a model a mark is noise. It leaves the text, and in the translation it goes before the same letter, a word's first if
possible, else before the first letter.
"""

import re
from dataclasses import dataclass

from transduce.text.placeholders import protect

# At the beginning of a word, or inside one that begins with a capital ("Cu_t", "E&xit"), and the only one in the text:
# not in snake_case, R&D or &amp;.
_MARK = re.compile(r"(?:(?<!\w)|(?<![\w'’])([A-Z][a-z]{0,20}+)(?=.[a-z]))([_&])(?=[^\W\d_])(?!\w{1,31};)")


@dataclass(frozen=True)
class AcceleratedText:
    """A text without its mark."""

    text: str
    mark: str = ""
    letter: str = ""
    """The letter after the mark."""

    @classmethod
    def of(cls, text: str) -> "AcceleratedText":
        """Take the mark out of a text, if it has one."""
        found = _MARK.search(text)
        if found is None or text.count(found[2]) > 1:
            return cls(text)
        return cls(text[: found.start(2)] + text[found.end() :], found[2], text[found.end()])

    def marked(self, translation: str) -> str:
        """Return a translation with the mark in it."""
        if not self.mark:
            return translation
        protected = protect(translation)
        places = [
            re.search(rf"(?<!\w){self.letter}", protected.text, re.IGNORECASE),
            re.search(self.letter, protected.text, re.IGNORECASE),
            re.search(r"[^\W\d_]", protected.text),
        ]
        found = next((place for place in places if place), None)
        if found is None:
            return translation
        start = protected.boundaries()[found.start()]
        return translation[:start] + self.mark + translation[start:]
