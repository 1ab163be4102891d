"""PO catalogues: msgstr filled in, and the entry marked fuzzy, so that gettext does not use it before a review.

polib says what the catalogue holds; where it stands is found by its lines, so that no other line is wrapped anew.
Plurals are filled where the language has one or two forms. With more, only a speaker knows which form goes where.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import polib

from transduce.data.formats.languages import matches
from transduce.data.formats.po import parse_po, plural_forms, refuse_keys
from transduce.documents.source import EXISTING, DoesNotFitError, Gap, Source, Splice
from transduce.errors import DataError

MANY_FORMS = "its language has more than two plural forms"
ODD = "its msgstr stands there twice, or a comment amid the entry"
MISSING_FORM = "it lacks a msgstr for one of the plural forms"
_WIDEST = 77
_KEYWORD = re.compile(rb"\s*(?:(msgctxt|msgid_plural|msgid|msgstr)\s*(?:\[\s*(\d{1,4})\s*\])?)?\s*(?=\")")
# Without a number in it (%1$s) or a name (%(n)s), a specifier means the argument in its place.
_IN_ORDER = re.compile(r"%(?!\d+\$|\(|%)[-+#0]*\d*(?:\.\d+)?(?:hh?|ll?|[zjtLq])?[sdiufFeEgGxXoc]")


@dataclass
class _Entry:
    """Where an entry's parts stand."""

    line: int
    flags: int | None
    """After the `#,` of its line of flags, if it has one."""
    flags_place: int
    """Where such a line would stand."""
    msgid: str = ""
    forms: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Each msgstr, from its keyword to the end of its last line."""
    is_odd: bool = False
    """A msgstr stands there twice, or something stands amid the entry."""


def po_gaps(source: Source) -> Iterator[Gap]:
    """Yield the entries without a translation."""
    catalogue = parse_po(source.content, path=source.path, encoding="utf-8")
    refuse_keys(catalogue, path=source.path)
    _require_language(catalogue, source)
    known = [entry for entry in catalogue if not entry.obsolete]
    found = _entries(source.content)
    header = next((entry for entry in found if not entry.msgid), None)
    found = [entry for entry in found if entry is not header]
    if [entry.msgid for entry in known] != [entry.msgid for entry in found]:
        raise DataError(
            f"{source.path} is laid out in a way that cannot be filled in safely. Run it through `msgcat` first."
        )
    forms = plural_forms(catalogue)
    newline = "\r\n" if b"\r\n" in source.content[:1000] else "\n"
    for entry, place in zip(known, found, strict=True):
        yield _gap(entry, place, forms=forms, source=source, newline=newline)


def _gap(entry: polib.POEntry, place: _Entry, *, forms: Sequence[bool], source: Source, newline: str) -> Gap:
    where = f"{source.path}:{place.line}"
    is_plural = bool(entry.msgid_plural)
    if not source.overwrites and any(entry.msgstr_plural.values() if is_plural else [entry.msgstr]):
        return Gap(where, left=EXISTING)
    if place.is_odd:
        return Gap(where, left=ODD)
    if is_plural and len(forms) > 2:
        return Gap(where, left=MANY_FORMS)
    wanted = range(len(forms)) if is_plural else range(1)
    if any(form not in place.forms for form in wanted):
        return Gap(where, left=MISSING_FORM)
    texts = tuple(entry.msgid_plural if is_plural and not forms[form] else entry.msgid for form in wanted)

    def fill(translations: Sequence[str]) -> list[Splice]:
        splices = []
        for form, text, translation in zip(wanted, texts, translations, strict=True):
            if _IN_ORDER.findall(text) != _IN_ORDER.findall(translation):
                raise DoesNotFitError("format specifiers without numbers changed places")
            source.require_encodable(translation)
            keyword = f"msgstr[{form}]" if is_plural else "msgstr"
            splices.append(Splice(*place.forms[form], _written(keyword, translation, newline=newline)))
        if not entry.fuzzy:
            splices.append(
                Splice(place.flags_place, place.flags_place, f"#, fuzzy{newline}")
                if place.flags is None
                else Splice(place.flags, place.flags, " fuzzy,")
            )
        return splices

    return Gap(where, texts, fill)


def _entries(content: bytes) -> list[_Entry]:
    """Return where the entries that are not obsolete stand, the header's among them."""
    entries: list[_Entry] = []
    flags: int | None = None
    previous: int | None = None  # of the first line that keeps an older msgid
    last: tuple[str, int] = "", 0
    is_complete = True
    start = last_line = 0
    for number, line in enumerate(content.split(b"\n"), start=1):
        stripped, end = line.strip(), start + len(line.rstrip())
        if stripped.startswith(b"#~"):
            flags, previous, is_complete = None, None, True
        elif stripped.startswith(b"#"):
            is_complete = is_complete or bool(entries[-1].forms)
            if not is_complete:
                entries[-1].is_odd = True  # a comment amid an entry
            elif stripped.startswith(b"#,"):
                flags = start + line.index(b"#,") + 2
            elif stripped.startswith(b"#|") and previous is None:
                previous = start
        elif match := _KEYWORD.match(line):
            keyword = (match[1] or b"").decode()
            if keyword in ("msgctxt", "msgid") and (is_complete or entries[-1].forms):
                entries.append(_Entry(number, flags, start if previous is None else previous))
                flags, previous, is_complete = None, None, False
            if keyword:
                last = keyword, int(match[2] or 0)
            if entries and last[0] == "msgstr":
                entries[-1].is_odd |= last[1] in entries[-1].forms if keyword else number != last_line + 1
            last_line = number
            if entries and last[0] == "msgid":
                entries[-1].msgid += polib.unescape(line[match.end() :].decode().strip()[1:-1])
            elif entries and last[0] == "msgstr":
                entries[-1].forms[last[1]] = entries[-1].forms.get(last[1], (start, end))[0], end
        start += len(line) + 1
    return entries


def _written(keyword: str, text: str, *, newline: str) -> str:
    """Return a msgstr as gettext's tools lay it out: on one line if it fits, else a line for each of its lines."""
    escaped = polib.escape(text)
    if "\\n" not in escaped[:-2] and len(keyword) + len(escaped) + 3 <= _WIDEST + 2:
        return f'{keyword} "{escaped}"'
    lines = [f'{keyword} ""']
    for part in re.split(r"(?<=\n)", text):
        words = re.findall(r"\S*\s*", part)
        row = ""
        for word in map(polib.escape, words):
            if row and len(row) + len(word) > _WIDEST:
                lines.append(f'"{row}"')
                row = ""
            row += word
        if row:
            lines.append(f'"{row}"')
    return newline.join(lines)


def _require_language(catalogue: polib.POFile, source: Source) -> None:
    language, wanted = catalogue.metadata.get("Language") or None, source.selection.target_language
    if language and wanted and not matches(language, wanted):
        raise DataError(
            f"{source.path} is a catalogue for {language}, and this would fill it in with {wanted}. Take another "
            "model, or correct its header's Language."
        )
