"""Kinds of files by ending and first bytes: the formats that can be filled in, and the kinds that are refused.

A file of no known kind is plain text, translated line by line. A PDF, an image or an archive read that way would become
garbage, and so would the structure of a YAML or XML file, so both are refused. This module imports nothing of the
package except errors, because the server process imports it too.
"""

import codecs
from collections.abc import Mapping, Sequence
from pathlib import PurePath

from transduce.errors import DataError

FORMAT_OF_ENDING: Mapping[str, str] = {
    ".po": "po",
    ".tmx": "tmx",
    ".xlf": "xliff",
    ".xliff": "xliff",
    ".tsv": "tsv",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".json": "json",
    ".properties": "properties",
    ".srt": "srt",
    ".vtt": "vtt",
    ".md": "markdown",
    ".markdown": "markdown",
    ".docx": "docx",
    ".html": "html",
    ".htm": "html",
}
BYTES_TO_LOOK_AT = 4096
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_ZIP = b"PK\x03\x04"
_BINARY_ENDINGS: Mapping[str, str] = {
    ".pdf": "a PDF",
    ".doc": "a Word document of the old binary format",
    ".rtf": "a Rich Text document",
    **dict.fromkeys((".odt", ".ods", ".odp"), "an OpenDocument file"),
    **dict.fromkeys((".xls", ".xlsx", ".xlsm"), "a spreadsheet"),
    **dict.fromkeys((".ppt", ".pptx"), "a presentation"),
    **dict.fromkeys((".epub", ".mobi"), "an e-book"),
    **dict.fromkeys((".png", ".jpg", ".jpeg", ".gif", ".webp", ".tif", ".tiff", ".bmp", ".ico"), "an image"),
    **dict.fromkeys((".zip", ".tar", ".tgz", ".7z", ".rar", ".jar", ".whl"), "an archive"),
    **dict.fromkeys((".gz", ".xz", ".bz2", ".zst"), "compressed"),
    **dict.fromkeys((".mp3", ".mp4", ".mkv", ".avi", ".mov", ".wav", ".ogg", ".flac", ".webm"), "sound or video"),
    **dict.fromkeys((".mo", ".gmo"), "a compiled catalogue (use its .po file)"),
}
_STRUCTURED_ENDINGS: Mapping[str, str] = {
    **dict.fromkeys((".xml", ".resx", ".svg", ".dita", ".ts", ".sgm", ".plist"), "XML or SGML"),
    **dict.fromkeys((".yaml", ".yml"), "YAML"),
    **dict.fromkeys((".toml", ".ini", ".cfg", ".conf"), "a configuration file"),
    **dict.fromkeys((".rst", ".adoc", ".tex"), "marked-up text of another kind"),
    **dict.fromkeys((".ass", ".ssa", ".sub"), "subtitles of another kind"),
    **dict.fromkeys((".strings", ".stringsdict", ".ftl"), "a file of software texts of another kind"),
    **dict.fromkeys((".py", ".js", ".java", ".c", ".cpp", ".h", ".css", ".php", ".sh", ".ipynb"), "a program"),
}
_SIGNATURES: Mapping[bytes, str] = {
    b"%PDF-": "a PDF",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "an Office document of the old binary format",
    b"{\\rtf": "a Rich Text document",
    _ZIP: "a ZIP archive, or an office document under another name",
    **dict.fromkeys((b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"II*\0", b"MM\0*"), "an image"),
    **dict.fromkeys((b"7z\xbc\xaf\x27\x1c", b"Rar!\x1a\x07"), "an archive"),
    **dict.fromkeys((b"\x1f\x8b", b"BZh9", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd"), "compressed"),
    **dict.fromkeys((b"OggS\0", b"ID3\3", b"ID3\4", b"fLaC", b"\x1aE\xdf\xa3"), "sound or video"),
    **dict.fromkeys((b"\xde\x12\x04\x95", b"\x95\x04\x12\xde"), "a compiled catalogue (use its .po file)"),
}


def format_of(path: PurePath) -> str | None:
    """Return the name of the format that a file's ending stands for; None if it stands for none."""
    return FORMAT_OF_ENDING.get(path.suffix.lower())


def refuse_other_kinds(path: PurePath, start: bytes, *, format_name: str | None) -> None:
    """Raise DataError for a file that is neither text nor in the given format; `start` is its first bytes.

    Without a format the file is read as plain text, and endings of structured text are refused too.
    """
    is_package = format_name == "docx"
    what = next((what for mark, what in _SIGNATURES.items() if start.startswith(mark) and mark != _ZIP), "")
    if not is_package and start.startswith(_ZIP):
        what = _BINARY_ENDINGS.get(path.suffix.lower(), _SIGNATURES[_ZIP])
    if not what and format_name is None:
        what = _BINARY_ENDINGS.get(path.suffix.lower(), "")
    if not what and not is_package and b"\0" in start and not start.startswith(_UTF16_MARKS):
        what = "a binary file"
    if what:
        remedy = "Decompress it first." if what == "compressed" else "Convert it first."
        raise DataError(f"{path} is {what}; transduce reads plain text and {_endings()}. {remedy}")
    if format_name is None and (what := _STRUCTURED_ENDINGS.get(path.suffix.lower(), "")):
        raise DataError(
            f"{path} is {what}; transduce reads plain text and {_endings()}. Convert it first, or give --format text "
            "to translate every line as it is."
        )


def _endings() -> str:
    return ", ".join(FORMAT_OF_ENDING)


def are_mostly_whole(tried: Sequence[tuple[Sequence[str], Sequence[str]]]) -> bool:
    """Return whether at least half of the translations, given by their missing and surplus tags, have all tags."""
    return 2 * sum(not missing and not surplus for missing, surplus in tried) >= len(tried)
