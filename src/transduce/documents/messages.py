"""Software texts in JSON locales and .properties: find the code in a text, and the texts that cannot be translated."""

import re

from transduce.documents.marked_text import Part, tagged_parts

HAS_FORMS = "it has forms for numbers or cases, which a person must write"
HALF_A_PAIR = "it holds half of a surrogate pair, which is not a character"
_FORMS = re.compile(r"\{\s{0,8}+[\w.-]{1,60}+\s{0,8}+,\s{0,8}+(?:plural|select|selectordinal|choice)\b")
# i18next's $t(key), vue-i18n's @:key, the numbered tags of react-i18next and HTML tags; `protect` finds {{x}}, {0}, %s.
_CODE = re.compile(r"\$t\([^()]{1,200}+\)|@:[\w.-]{1,100}+|</?[A-Za-z\d][^<>]{0,500}+>")


def untranslatable(text: str) -> str:
    """Return why a text cannot be translated: it has forms, or is not valid Unicode; empty if it can."""
    if _FORMS.search(text):
        return HAS_FORMS
    return HALF_A_PAIR if any("\ud800" <= character <= "\udfff" for character in text) else ""


def joined_surrogates(text: str) -> str:
    """Return a text with each pair of surrogates, written as two escapes, as the character that it stands for."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def message_parts(text: str) -> list[Part]:
    """Return a text cut at its references and tags."""
    return tagged_parts(text, _CODE)
