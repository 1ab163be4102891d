"""Which of the languages that a file holds are the pair, and what to say when they are not there."""

from collections import Counter
from pathlib import Path

from transduce.data.formats.columns import find_name
from transduce.data.formats.pair import Selection
from transduce.errors import DataError


def matches(found: str | None, wanted: str | None) -> bool:
    """Return whether a language of a file is the wanted one; `en` matches `en-US` and the other way round."""
    return bool(found and wanted) and find_name([found or ""], [wanted]) is not None


def no_such_pair(path: Path, selection: Selection, offered: Counter[str]) -> DataError:
    """Return the error for a file that does not hold the pair asked for, or holds several where none was."""
    holds = ", ".join(f"{language} ({count:,})" for language, count in sorted(offered.items())) or "no language"
    if selection.source_language is None or selection.target_language is None:
        missing = " and ".join(
            name
            for name, value in (
                ("source_language", selection.source_language),
                ("target_language", selection.target_language),
            )
            if value is None
        )
        return DataError(f"{path} holds {holds}. Choose the pair: set data.{missing.replace(' and ', ' and data.')}.")
    return DataError(
        f"{path} holds {holds}, but no unit from {selection.source_language} to {selection.target_language}. "
        "Set data.source_language and data.target_language to languages that it holds together."
    )
