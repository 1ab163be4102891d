"""Detection of the language of a text, among the 140 that py3langid knows; offline."""

from functools import cache
from typing import Any


def language_probabilities(text: str) -> dict[str, float]:
    """Return the probability of each known language, by its code; nothing for an empty text."""
    return {code: float(value) for code, value in _identifier().rank(text)} if text.strip() else {}


def load_detector() -> None:
    """Load the detector now, so that the first detection need not wait for it."""
    _identifier()


@cache
def _identifier() -> Any:  # noqa: ANN401 - the library has no types
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
