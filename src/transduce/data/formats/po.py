"""PO, gettext's message catalogues: the msgid is the source and the msgstr its translation.

Fuzzy, obsolete and untranslated entries are skipped and counted. An entry with a plural gives one pair for each form.
If the msgids are keys (`menu.file.open`), the source text is in the catalogue of the source language: give the two
together, `en.po,de.po`, and they are joined by key. polib parses a catalogue in memory; catalogues are small.
"""

import codecs
import gettext
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import polib

from transduce.data.formats.charsets import require_charset
from transduce.data.formats.corpus_file import CorpusFile
from transduce.data.formats.languages import language_matches, no_such_pair
from transduce.data.formats.pair import Pair, Selection
from transduce.errors import DataError

FUZZY, OBSOLETE, UNTRANSLATED, NO_PARTNER = "fuzzy", "obsolete", "untranslated", "not in the other catalogue"
_CHARSET = re.compile(rb"charset=([\w.:-]{1,40})")
_KEYWORD = re.compile(
    r'[ \t\r\f\v]*+(?:#~\s*+)?(?:(msgctxt|msgid_plural|msgid|msgstr)\s*+(?:\[\s*+\d*+\s*+\]\s*+)?)?(?=(")?)'
)
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+("?)\s*+')
# polib joins the lines of a string or a comment in quadratic time, so longer ones are refused. A licence is shorter.
_MOST_LINES = 2000
_MOST_BYTES = 64 << 20
_LINE_NUMBER = re.compile(r"\(line (\d+)\)(?:: (.*))?")
_KEY = re.compile(r"[A-Za-z0-9]+(?:[._:/-]+[A-Za-z0-9]+)+|[a-z]+(?:[A-Z][a-z0-9]*)+")
_FEWEST_KEYS, _SHARE_OF_KEYS = 5, 0.8
_MOST_FORMS = 6  # no language has more


def read_po(file: CorpusFile, selection: Selection) -> Iterator[Pair]:
    """Yield the pairs of a catalogue whose msgids are text, in the direction of the chosen languages."""
    catalogue = parse_po(_read_bytes(file), path=file.path)
    refuse_keys(catalogue, path=file.path)
    language = catalogue.metadata.get("Language") or None
    is_reversed = _is_reversed(language, catalogue.metadata.get("X-Source-Language") or None, selection, file.path)
    forms = plural_forms(catalogue)
    for entry in catalogue:
        skipped = skip_reason(entry)
        for source, target in _pairs_of(entry, forms):
            texts = (target, source) if is_reversed else (source, target)
            yield Pair(*texts, entry.linenum, skipped=skipped or ("" if target else UNTRANSLATED))


def read_po_by_key(source: CorpusFile, target: CorpusFile) -> Iterator[Pair]:
    """Yield the pairs of two catalogues with the same msgids: the msgstr of one and that of the other."""
    of_source, of_target = (parse_po(_read_bytes(file), path=file.path) for file in (source, target))
    source_forms, target_forms = plural_forms(of_source), plural_forms(of_target)
    texts = {(entry.msgctxt, entry.msgid): entry for entry in of_source if not skip_reason(entry)}
    if not any((entry.msgctxt, entry.msgid) in texts for entry in of_target):
        raise DataError(
            f"{target.path} and {source.path} have no translated entry in common. Give two catalogues with the same "
            "msgids, that of the source language first."
        )
    for entry in of_target:
        partner = texts.get((entry.msgctxt, entry.msgid))
        skipped = skip_reason(entry)
        if partner is None:
            yield Pair("", entry.msgstr, entry.linenum, skipped=skipped or NO_PARTNER)
            continue
        source_pairs = _pairs_of(partner, source_forms)
        for number, (_, text) in enumerate(_pairs_of(entry, target_forms)):
            source_text = source_pairs[min(number, len(source_pairs) - 1)][1]
            yield Pair(source_text, text, entry.linenum, skipped=skipped)


def parse_po(content: bytes, *, path: Path, encoding: str | None = None) -> polib.POFile:
    """Parse a catalogue, in the given encoding or the one its header names; DataError if it is not a catalogue."""
    if not content.strip():
        raise DataError(f"{path} is empty. Give a catalogue with at least one entry, or leave it out.")
    text = _CatalogueText(_decode(content, path=path, encoding=encoding))
    lines = text.splitlines()
    _require_closed_strings(lines, path=path)
    try:
        return polib.pofile(text, encoding="utf-8")
    except OSError as fault:
        found = _LINE_NUMBER.search(str(fault))
        line, what = (int(found[1]), found[2] or "an unexpected line") if found else (1, str(fault))
        column = len(lines[line - 1]) - len(lines[line - 1].lstrip()) + 1
        raise DataError(
            f"{path}:{line}:{column}: the file is not a PO catalogue here ({what}). Check it with `msgfmt --check`."
        ) from None
    except (ValueError, IndexError) as fault:
        raise DataError(f"{path} is not a PO catalogue ({fault}). Check it with `msgfmt --check`.") from None


def _require_closed_strings(lines: Sequence[str], *, path: Path) -> None:
    """Raise DataError for a string that lacks its final quote, which polib accepts, or that has too many lines."""
    count = 0
    for number, line in enumerate(lines, start=1):
        keyword = _KEYWORD.match(line)
        if keyword is None or not line.strip() or keyword[1]:
            count = 0
        count += 1
        what, column = "", 1
        if count > _MOST_LINES:
            what = f"a string or comment has more than {_MOST_LINES:,} lines"
        elif keyword is not None and keyword[2]:
            string = _STRING.match(line, keyword.end())
            assert string is not None, "the lookahead saw a quote"
            if not string[1]:
                what, column = "the string is not closed", keyword.end() + 1
            elif string.end() < len(line):
                what, column = "there is text after the string", string.end() + 1
        if what:
            raise DataError(
                f"{path}:{number}:{column}: the file is not a PO catalogue here ({what}). Check it with "
                "`msgfmt --check`."
            )


def _decode(content: bytes, *, path: Path, encoding: str | None) -> str:
    encoding = encoding or encoding_of_po(content, path=path)
    try:
        return content.removeprefix(codecs.BOM_UTF8).decode(encoding)
    except UnicodeDecodeError as fault:
        line = content.count(b"\n", 0, fault.start) + 1
        raise DataError(
            f"{path}:{line}: byte 0x{content[fault.start]:02x} is not {encoding}, the encoding in the header. "
            "Correct the charset in its Content-Type, or convert the file to UTF-8."
        ) from None


def encoding_of_po(content: bytes, *, path: Path) -> str:
    """Return the encoding that a catalogue's header names, UTF-8 by default."""
    found = _CHARSET.search(content[: 1 << 16])
    name = found[1].decode("ascii", "replace") if found else "UTF-8"
    if name == "CHARSET":  # xgettext's placeholder
        return "utf-8"
    return require_charset(name, path=path)


def skip_reason(entry: polib.POEntry) -> str:
    """Return why not to train on an entry; empty if it can be used."""
    if entry.obsolete:
        return OBSOLETE
    if entry.fuzzy:
        return FUZZY
    texts = entry.msgstr_plural.values() if entry.msgid_plural else [entry.msgstr]
    return "" if any(texts) else UNTRANSLATED


def refuse_keys(catalogue: polib.POFile, *, path: Path) -> None:
    """Raise DataError if the msgids are keys instead of text."""
    names = [entry.msgid for entry in catalogue if not entry.obsolete]
    keys = [name for name in names if _KEY.fullmatch(name)]
    if len(keys) >= _FEWEST_KEYS and len(keys) >= _SHARE_OF_KEYS * len(names):
        raise DataError(
            f"{path}: the msgids are keys, such as {keys[0][:60]!r}, not text. Write the source language's "
            f"catalogue and a comma before it: en.po,{path.name}."
        )


def plural_forms(catalogue: polib.POFile) -> list[bool]:
    """Return for each plural form whether it is the one for n = 1."""
    header = catalogue.metadata.get("Plural-Forms", "")
    found = re.search(r"nplurals\s*=\s*(\d{1,2})\s*;\s*plural\s*=\s*([^;]{1,1000})", header)
    if not found:
        return [True, False]
    count = min(max(int(found[1]), 1), _MOST_FORMS)
    try:
        one = gettext.c2py(found[2])(1)
    except (ValueError, ArithmeticError, RecursionError, SyntaxError, MemoryError):
        one = 0
    return [count > 1 and form == one for form in range(count)]


def _pairs_of(entry: polib.POEntry, forms: Sequence[bool]) -> list[tuple[str, str]]:
    """Return the msgid and msgstr of an entry, for each plural form if it has them."""
    if not entry.msgid_plural:
        return [(entry.msgid, entry.msgstr)]
    return [
        (entry.msgid if is_singular else entry.msgid_plural, entry.msgstr_plural.get(form, ""))
        for form, is_singular in enumerate(forms)
    ]


def _is_reversed(language: str | None, source: str | None, selection: Selection, path: Path) -> bool:
    """Return whether the chosen direction is from the msgstr to the msgid; DataError if the languages do not match."""
    wanted = selection.source_language, selection.target_language
    if language is None or wanted == (None, None):
        return False
    if wanted[1] is None or language_matches(language, wanted[1]):
        if wanted[0] is None or source is None or language_matches(source, wanted[0]):
            return False
    elif language_matches(language, wanted[0]) and (source is None or language_matches(source, wanted[1])):
        return True
    raise no_such_pair(
        path, Selection(str(wanted[0]), str(wanted[1])), Counter({f"{source or 'msgids'} to {language}": 1})
    )


class _CatalogueText(str):
    """A catalogue's text that polib splits at line feeds alone, like gettext, and not at U+2028 inside a string."""

    __slots__ = ()

    def splitlines(self, keepends: bool = False) -> list[str]:
        return self.split("\n")


def _read_bytes(file: CorpusFile) -> bytes:
    with file.opened() as stream:
        content = stream.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise DataError(
            f"{file.path} has more than {_MOST_BYTES >> 20} MiB, decompressed. A catalogue is read whole; split it."
        )
    return content
