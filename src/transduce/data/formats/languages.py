"""Comparing the languages of a file with the chosen pair."""

from collections import Counter
from pathlib import Path

from transduce.data.formats.columns import find_name
from transduce.data.formats.pair import Selection
from transduce.errors import DataError


def language_matches(found: str | None, wanted: str | None) -> bool:
    """Return whether a file's language is the wanted one; `en` matches `en-US` and the other way round."""
    return bool(found and wanted) and find_name([found or ""], [wanted]) is not None


def no_such_pair(path: Path, selection: Selection, offered: Counter[str]) -> DataError:
    """Return the error for a file without the chosen pair; `offered` counts the units per language or pair in it."""
    holds = ", ".join(f"{language} ({count:,})" for language, count in sorted(offered.items())) or "no language"
    if selection.source_language is None or selection.target_language is None:
        unset = ["data.source_language"] * (selection.source_language is None)
        unset += ["data.target_language"] * (selection.target_language is None)
        return DataError(f"{path} holds {holds}. Choose the pair: set {' and '.join(unset)}.")
    return DataError(
        f"{path} holds {holds}, but no unit from {selection.source_language} to {selection.target_language}. "
        "Set data.source_language and data.target_language to a pair that it holds."
    )
