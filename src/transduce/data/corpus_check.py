"""A look at the first pairs of a corpus before a run begins: samples, languages as detected, and likely mistakes.

Only mistakes that the text proves are refused: columns of both languages in the wrong order, a column that counts its
rows, two equal columns for two languages, bytes that are no text, a language name in place of its code. Everything
else is a warning, because a detector may err and unusual tasks exist.
"""

import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from transduce.data.config import DataConfig
from transduce.data.formats import Corpus, Pair, Selection
from transduce.errors import ConfigError, DataError
from transduce.progress import Progress
from transduce.text.language_detection import language_probabilities
from transduce.text.language_names import code_of_language, language_name
from transduce.text.normalization import normalize

_PAIRS, _SAMPLES, _SHOWN_CHARACTERS = 500, 3, 72
_FEWEST = 5
"""The fewest pairs from which a mistake can be inferred."""
_FEW, _FEW_TO_ADAPT = _PAIRS, 100
_CHUNKS, _LEAST_CHARACTERS = 10, 200
_MOST = 0.9
_ALIKE = ({"no", "nb", "nn"}, {"hr", "bs", "sr", "sh"}, {"id", "ms"}, {"zh", "yue", "wuu"}, {"tl", "fil"})
"""Languages that the detector often confuses, or that have several codes."""
_DIGITS = re.compile(r"\d{1,15}")


@dataclass(frozen=True)
class DetectedLanguage:
    """The language that most parts of a text are in."""

    code: str
    is_certain: bool
    others: frozenset[str]
    """All languages that some part seems to be in."""
    known: frozenset[str]
    """All languages that can be detected."""


def check_corpora(data: DataConfig, *, adapts: bool, progress: Progress) -> None:
    """Report samples and languages of the training text, warn of likely mistakes, and refuse certain ones.

    `adapts` says whether the run starts from a model, which needs fewer pairs.
    """
    _check_codes(data, progress)
    selection = Selection.of(data)
    for place, name in enumerate(data.names("train")):
        pairs = list(itertools.islice(_usable(Corpus(name, selection)), _PAIRS))
        if not pairs:
            continue  # preparation refuses it, and says what was dropped
        _refuse_other_than_text(pairs, name)
        _refuse_counting_column(pairs, name)
        _check_copies(pairs, name, data, progress)
        languages = [detect_language([getattr(pair, side) for pair in pairs]) for side in ("source", "target")]
        if place == 0:
            _show(pairs, languages, progress)
        _check_languages(languages, name, data, progress)
        if len(pairs) < (_FEW_TO_ADAPT if adapts else _FEW) and len(data.names("train")) == 1:
            progress.warn(
                f"{len(pairs):,} pairs are too few to learn a language from: the model will repeat them, and fail on "
                "other sentences. Some 10,000 pairs make a first model, and some hundreds adapt a trained one "
                "(--start-from en-de)."
            )


def detect_language(texts: Sequence[str]) -> DetectedLanguage | None:
    """Return the language of most parts of these texts, or None if they are too short to tell."""
    if sum(map(len, texts)) < _LEAST_CHARACTERS:
        return None
    parts = [" ".join(texts[first::_CHUNKS]) for first in range(_CHUNKS)]
    ranked = [found for found in map(language_probabilities, parts) if found]
    votes = Counter(max(found, key=found.__getitem__) for found in ranked)
    if not votes:
        return None
    code, most = votes.most_common(1)[0]
    return DetectedLanguage(code, most >= _MOST * _CHUNKS, others=frozenset(votes), known=frozenset(ranked[0]))


def _usable(corpus: Corpus) -> Iterator[Pair]:
    return (pair for pair in corpus.pairs() if not pair.skipped and pair.source.strip() and pair.target.strip())


def _check_codes(data: DataConfig, progress: Progress) -> None:
    for option, code in (("--from", data.source_language), ("--to", data.target_language)):
        if code is not None and len(code.partition("-")[0]) > 3:
            known = code_of_language(code)
            offer = f"The code of {language_name(known)} is {known}." if known else "Codes have two or three letters."
            raise ConfigError(f"{option} {code}: that is no language code. {offer}")
    if data.source_language is not None and data.source_language == data.target_language:
        progress.warn(
            f"Source and target are both {language_name(data.source_language)} ({data.source_language}). That is right "
            "only if the model is to rewrite text, not to translate it."
        )


def _refuse_other_than_text(pairs: Sequence[Pair], name: str) -> None:
    characters = "".join(pair.source + pair.target for pair in pairs)
    strange = sum(unicodedata.category(character) in ("Cc", "Cn", "Co", "Cs") for character in characters)
    strange -= characters.count("\t")
    if strange > 0.1 * len(characters):
        raise DataError(
            f"{name} is not text: {strange / len(characters):.0%} of its characters are control characters or "
            "unassigned. Give a text file in UTF-8."
        )


def _refuse_counting_column(pairs: Sequence[Pair], name: str) -> None:
    """Refuse a column whose cells have no space and one number each, which rises by one from row to row."""
    for side in ("source", "target"):
        cells = [getattr(pair, side).strip() for pair in pairs]
        numbers = [_DIGITS.findall(cell) for cell in cells]
        are_single = (len(found) == 1 and " " not in cell for found, cell in zip(numbers, cells, strict=True))
        if len(pairs) < _FEWEST or not all(are_single):
            continue
        counted = [int(found[0]) for found in numbers]
        if all(after == before + 1 for before, after in itertools.pairwise(counted)):
            raise DataError(
                f"{name}: the {side} column counts its rows ({cells[0]}, {cells[1]}, {cells[2]} …). Name the columns "
                "with the sentences, such as --set data.source_column=2 --set data.target_column=3."
            )


def _check_copies(pairs: Sequence[Pair], name: str, data: DataConfig, progress: Progress) -> None:
    copies = sum(normalize(pair.source) == normalize(pair.target) for pair in pairs)
    if len(pairs) < _FEWEST or copies < 0.2 * len(pairs):
        return
    has_two_languages = None not in (data.source_language, data.target_language) and (
        data.source_language != data.target_language
    )
    if copies >= _MOST * len(pairs) and has_two_languages:
        raise DataError(
            f"{name}: source and target are the same text in {copies:,} of the first {len(pairs):,} pairs, so there is "
            f"no translation to {data.target_language} to learn. Look at the two files or columns."
        )
    progress.warn(
        f"{name}: source and target are the same text in {copies:,} of the first {len(pairs):,} pairs. "
        "--set data.drop_copies=true drops such pairs."
    )


def _check_languages(
    languages: Sequence[DetectedLanguage | None], name: str, data: DataConfig, progress: Progress
) -> None:
    wanted = [data.source_language, data.target_language]
    if all(
        found is not None and found.is_certain and _is_same(found.code, other) and not _is_same(found.code, own)
        for found, own, other in zip(languages, wanted, reversed(wanted), strict=True)
    ):
        raise DataError(
            f"{name}: the sources are {wanted[1]} and the targets {wanted[0]}, so the columns are in the other order. "
            f"Give --from {wanted[1]} --to {wanted[0]}, or swap the files, or set data.source_column = 2 and "
            "data.target_column = 1."
        )
    for side, found, own in zip(("sources", "targets"), languages, wanted, strict=True):
        if found is None or own is None or not any(_is_same(code, own) for code in found.known):
            continue
        if not any(_is_same(code, own) for code in found.others):
            like = (
                f"look like {language_name(found.code)} ({found.code})"
                if found.is_certain
                else "are of no known language"
            )
            progress.warn(
                f"{name}: the {side} {like}, not {language_name(own)} ({own}), as far as a detector can tell. Look at "
                "the sample pairs."
            )


def _is_same(found: str, wanted: str | None) -> bool:
    primary = (wanted or "").partition("-")[0].lower()
    return found == primary or any({found, primary} <= alike for alike in _ALIKE)


def _show(pairs: Sequence[Pair], languages: Sequence[DetectedLanguage | None], progress: Progress) -> None:
    names = ["unknown" if found is None else f"{language_name(found.code)} ({found.code})" for found in languages]
    progress.note(f"sample pairs; languages as detected: {names[0]} to {names[1]}")
    for place in range(min(_SAMPLES, len(pairs))):
        pair = pairs[place * (len(pairs) - 1) // max(1, min(_SAMPLES, len(pairs)) - 1)]
        progress.note(f"  {_shortened(pair.source)}")
        progress.note(f"    → {_shortened(pair.target)}")


def _shortened(text: str) -> str:
    plain = " ".join(normalize(text).split())
    return plain if len(plain) <= _SHOWN_CHARACTERS else plain[: _SHOWN_CHARACTERS - 1] + "…"
