"""PO catalogues: fill in empty msgstr and mark the entry fuzzy, so that gettext ignores it until a person reviews it.

polib parses the catalogue; we locate each entry's lines ourselves, so that no other line is wrapped again. Plurals are
filled in for languages with one or two forms. With more forms, only a speaker knows which form is which. Accelerators
(`_File`) are taken out and put back.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import polib

from transduce.data.formats.languages import language_matches
from transduce.data.formats.po import parse_po, plural_forms, refuse_keys
from transduce.documents.accelerators import AcceleratedText
from transduce.documents.document import TRANSLATED, Document, DoesNotFitError, Gap, Splice
from transduce.errors import DataError

MANY_FORMS = "its language has more than two plural forms"
IRREGULAR = "it has a msgstr twice, or a comment inside the entry"
CREDITS = "it is for the names of the translators"
MISSING_FORM = "it lacks a msgstr for one of the plural forms"
_LONGEST_ROW = 77
_CREDITS = frozenset(["translator-credits", "translator_credits"])
_KEYWORD = re.compile(rb"\s*+(?:(msgctxt|msgid_plural|msgid|msgstr)\s*+(?:\[\s*+(\d{1,4})\s*+\]\s*+)?)?(?=\")")
# A specifier without a number (%1$s) or a name (%(n)s) takes the next argument, so its position matters.
_POSITIONAL = re.compile(r"%(?!\d+\$|\(|%)[-+#0]*\d*(?:\.\d+)?(?:hh?|ll?|[zjtLq])?[sdiufFeEgGxXoc]")


@dataclass
class _EntryLayout:
    """The byte offsets of an entry's parts."""

    line: int
    after_flags_mark: int | None
    """After the `#,` of the entry's line of flags; None without such a line."""
    new_flags: int
    """Where to insert a line of flags."""
    msgid: str = ""
    forms: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Start and end of each msgstr: from its keyword to the end of its last line."""
    is_irregular: bool = False
    """Whether a msgstr is repeated or interrupted, or a comment is inside the entry."""


def po_gaps(document: Document) -> Iterator[Gap]:
    """Yield a gap for every entry; for an entry that has a translation, a gap to skip."""
    catalogue = parse_po(document.content, path=document.path, encoding="utf-8")
    refuse_keys(catalogue, path=document.path)
    _require_language(catalogue, document)
    entries = [entry for entry in catalogue if not entry.obsolete]
    layouts = _layouts(document.content)
    header = next((layout for layout in layouts if not layout.msgid), None)
    layouts = [layout for layout in layouts if layout is not header]
    if [entry.msgid for entry in entries] != [layout.msgid for layout in layouts]:
        raise DataError(
            f"{document.path} has a layout that cannot be filled in safely. Rewrite it with gettext's `msgcat` first."
        )
    forms = plural_forms(catalogue)
    newline = "\r\n" if b"\r\n" in document.content[:1000] else "\n"
    for entry, layout in zip(entries, layouts, strict=True):
        yield _gap(entry, layout, forms=forms, document=document, newline=newline)


def _gap(entry: polib.POEntry, layout: _EntryLayout, *, forms: Sequence[bool], document: Document, newline: str) -> Gap:
    location = f"{document.path}:{layout.line}"
    is_plural = bool(entry.msgid_plural)
    if not document.overwrites and any(entry.msgstr_plural.values() if is_plural else [entry.msgstr]):
        return Gap(location, skip_reason=TRANSLATED)
    if layout.is_irregular:
        return Gap(location, skip_reason=IRREGULAR)
    if is_plural and len(forms) > 2:
        return Gap(location, skip_reason=MANY_FORMS)
    wanted = range(len(forms)) if is_plural else range(1)
    if any(form not in layout.forms for form in wanted):
        return Gap(location, skip_reason=MISSING_FORM)
    if entry.msgid in _CREDITS:
        return Gap(location, skip_reason=CREDITS)
    sources = [entry.msgid_plural if is_plural and not forms[form] else entry.msgid for form in wanted]
    accelerated = [AcceleratedText.of(text) for text in sources]

    def fill(translations: Sequence[str]) -> list[Splice]:
        splices = []
        for form, source, bare in zip(wanted, accelerated, translations, strict=True):
            translation = source.marked(bare)
            if _POSITIONAL.findall(source.text) != _POSITIONAL.findall(bare):
                raise DoesNotFitError("format specifiers without numbers changed places")
            document.require_encodable(translation)
            keyword = f"msgstr[{form}]" if is_plural else "msgstr"
            splices.append(Splice(*layout.forms[form], _msgstr(keyword, translation, newline=newline)))
        if not entry.fuzzy:
            splices.append(
                Splice(layout.new_flags, layout.new_flags, f"#, fuzzy{newline}")
                if layout.after_flags_mark is None
                else Splice(layout.after_flags_mark, layout.after_flags_mark, " fuzzy,")
            )
        return splices

    return Gap(location, tuple(source.text for source in accelerated), fill)


def _layouts(content: bytes) -> list[_EntryLayout]:
    """Return the layout of every entry that is not obsolete, the header included."""
    layouts: list[_EntryLayout] = []
    flags: int | None = None  # after the `#,` of the next entry
    previous: int | None = None  # where the `#|` lines begin that hold the next entry's former msgid
    keyword, form = "", 0  # the string that a line continues
    is_complete = True  # whether the last entry has ended
    start = last_string = 0
    for number, line in enumerate(content.split(b"\n"), start=1):
        stripped, end = line.strip(), start + len(line.rstrip())
        if stripped.startswith(b"#~"):
            flags, previous, is_complete = None, None, True
        elif stripped.startswith(b"#"):
            is_complete = is_complete or bool(layouts[-1].forms)
            if not is_complete:
                layouts[-1].is_irregular = True
            elif stripped.startswith(b"#,"):
                flags = start + line.index(b"#,") + 2
            elif stripped.startswith(b"#|") and previous is None:
                previous = start
        elif match := _KEYWORD.match(line):
            if match[1]:
                keyword, form = match[1].decode(), int(match[2] or 0)
            if match[1] in (b"msgctxt", b"msgid") and (is_complete or layouts[-1].forms):
                layouts.append(_EntryLayout(number, flags, start if previous is None else previous))
                flags, previous, is_complete = None, None, False
            if layouts and keyword == "msgid":
                layouts[-1].msgid += polib.unescape(line[match.end() :].decode().strip()[1:-1])
            elif layouts and keyword == "msgstr":
                forms = layouts[-1].forms
                layouts[-1].is_irregular |= form in forms if match[1] else number != last_string + 1
                forms[form] = forms.get(form, (start, end))[0], end
            last_string = number
        start += len(line) + 1
    return layouts


def _msgstr(keyword: str, text: str, *, newline: str) -> str:
    """Return a msgstr in the layout of gettext's tools: on one line if it fits, else one row per line of the text."""
    escaped = polib.escape(text)
    if "\\n" not in escaped[:-2] and len(keyword) + len(escaped) + 3 <= _LONGEST_ROW + 2:
        return f'{keyword} "{escaped}"'
    rows = [f'{keyword} ""']
    for part in re.split(r"(?<=\n)", text):
        row = ""
        for word in map(polib.escape, re.findall(r"\S*\s*", part)):
            if row and len(row) + len(word) > _LONGEST_ROW:
                rows.append(f'"{row}"')
                row = ""
            row += word
        if row:
            rows.append(f'"{row}"')
    return newline.join(rows)


def _require_language(catalogue: polib.POFile, document: Document) -> None:
    language, wanted = catalogue.metadata.get("Language") or None, document.selection.target_language
    if language and wanted and not language_matches(language, wanted):
        raise DataError(
            f"{document.path} is a catalogue for {language}, but the translations would be in {wanted}. Choose another "
            "model, or correct the Language in the catalogue's header."
        )
