"""The form of a sentence that a translation keeps: its final punctuation, and its capitals.

Models trained on whole sentences end everything with a full stop, even the label of a button. A mark is removed if
the source has none, added if only the source has one, and made a colon or an ellipsis if the source ends in that. Other
marks may differ: German has "!" after a request where English has ".".

A vocabulary spells words in capitals letter by letter, and few sentences of a corpus are written so. So a sentence in
capitals is translated in small letters, and its translation is written in capitals. A word alone may be an acronym.
The first letter stays a capital in the words that the vocabulary knows better so: German nouns, names, "I".
"""

import re
from collections.abc import Callable, Sequence

from transduce.text.placeholders import split_at_placeholders

_ENDING = re.compile(r"(?:\.{2,}|[.!?:…。！？：])$")
_CLOSING = "\"'”“’‘)]»›」』）"
_LETTERS = re.compile(r"[^\W\d_]")
_LONG_WORD = re.compile(r"[^\W\d_]{2,}")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_CAPITAL_NOUNS = frozenset({"de", "lb", "nds"})
"""Languages that write nouns with a capital, so that a first capital may belong to the word."""


def keep_form(source: str, translation: str, *, language: str | None) -> str:
    """Return the translation, into `language`, with the final punctuation and the capitals of its source.

    A source without letters, such as "=" or "12", is its own translation.
    """
    if not _LETTERS.search(source):
        return source
    return _keep_capitals(source, _keep_ending(source, translation), language=language)


def in_small_letters(sentence: str, encode: Callable[[str], Sequence[int]]) -> str:
    """Return a sentence in capitals, of at least two words, in small letters; any other as it is.

    A word's first letter stays a capital if `encode` then needs fewer pieces, or as many of smaller ids, which are the
    more frequent ones; so does that of the sentence. Placeholders keep their capitals, and each sign its place.
    """

    def small_or_capitalized(word: re.Match[str]) -> str:
        small = word[0].lower()
        return min(small, small[0].upper() + small[1:], key=lambda way: (len(ids := list(encode(way))), ids))

    parts = split_at_placeholders(sentence)
    if not _is_in_capitals(parts) or len(_LONG_WORD.findall(" ".join(parts[::2]))) < 2:
        return sentence
    first = next(n for n in range(0, len(parts), 2) if _LETTERS.search(parts[n]))
    parts[::2] = [_WORD.sub(small_or_capitalized, part) for part in parts[::2]]
    parts[first] = _LETTERS.sub(lambda letter: letter[0].upper(), parts[first], count=1)
    small = "".join(parts)
    return small if len(small) == len(sentence) else sentence


def _is_in_capitals(parts: list[str]) -> bool:
    """Return whether a text, split at its placeholders, has at least four letters, all capitals; ß counts as one."""
    text = "".join(parts[::2]).replace("ß", "")
    if not text.isupper():  # the usual case, decided without the rest
        return False
    letters = _LETTERS.findall(text)
    return len(letters) > 3 and all(map(str.isupper, letters))


def _keep_ending(source: str, translation: str) -> str:
    wanted, found = (_ENDING.search(text.rstrip()) for text in (source, translation))
    bare = translation.rstrip()[: found.start()] if found else translation.rstrip()
    if not bare:
        return translation
    if wanted is None:
        is_quoted = _ENDING.search(source.rstrip().rstrip(_CLOSING)) is not None  # the mark is inside of quotes
        return bare if found and not is_quoted else translation
    if found is None:
        return bare + wanted[0] if bare[-1].isalnum() else translation
    is_other_kind = wanted[0] in ":：…" or wanted[0].startswith("..")
    return bare.rstrip() + wanted[0] if is_other_kind else translation


def _keep_capitals(source: str, translation: str, *, language: str | None) -> str:
    letters = _LETTERS.findall(source)
    first = _LETTERS.search(translation)
    if not letters or first is None:
        return translation
    if _is_in_capitals(split_at_placeholders(source)):
        parts = split_at_placeholders(translation)
        parts[::2] = [part.upper() for part in parts[::2]]
        return "".join(parts)
    if translation[: first.start()].strip():  # it begins with a placeholder or a number
        return translation
    if letters[0].isupper() and source.lstrip()[0].isalpha():
        return translation[: first.start()] + first[0].upper() + translation[first.end() :]
    has_small_start = letters[0].islower() and (language or "de").partition("-")[0] not in _CAPITAL_NOUNS
    if has_small_start and not translation[first.end() :][:1].isupper():
        return translation[: first.start()] + first[0].lower() + translation[first.end() :]
    return translation
