"""Which languages are served, by which model, what they are called, and which of them a text is in.

Detection is py3langid's, over all languages it knows. What is reported is how probable it finds each language that is
served, not made to sum to one: a French text at a server that reads only English is English with confidence 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from transduce.serving.refusal import Refusal
from transduce.text.language_names import language_name

UNKNOWN = "und"


@dataclass(frozen=True)
class Detection:
    """A language that a text may be in."""

    language: str
    confidence: float
    """From 0 to 100."""


class Languages:
    """The pairs of languages that a set of models serves; of two models for one pair the first."""

    def __init__(self, models: Mapping[str, Mapping[str, Any]]) -> None:
        self.pairs: dict[tuple[str, str], str] = {}
        for name, model in models.items():
            self.pairs.setdefault((model["source"] or UNKNOWN, model["target"] or UNKNOWN), name)

    @property
    def sources(self) -> list[str]:
        """What can be translated from, in the models' order."""
        return list(dict.fromkeys(source for source, _ in self.pairs))

    @property
    def all(self) -> list[str]:
        """Every language, sources first."""
        return list(dict.fromkeys([*self.sources, *(target for _, target in self.pairs)]))

    def targets(self, source: str) -> list[str]:
        """Return what `source` can be translated to."""
        return [target for own, target in self.pairs if own == source]

    def model(self, source: str, target: str) -> str:
        """Return the model for a pair, or refuse in LibreTranslate's words."""
        for code in (source, target):
            if code not in self.all:
                raise Refusal(400, f"{code} is not supported")
        if (source, target) not in self.pairs:
            raise Refusal(
                400,
                f"{language_name(target)} ({target}) is not available as a target language from "
                f"{language_name(source)} ({source})",
            )
        return self.pairs[source, target]

    def detect(self, text: str) -> list[Detection]:
        """Return the languages served, the most probable for `text` first."""
        ranked = dict(_ranked(text))
        found = [Detection(code, round(100.0 * ranked.get(code.partition("-")[0], 0.0), 1)) for code in self.all]
        return sorted(found, key=lambda detection: -detection.confidence)

    def detect_source(self, texts: Sequence[str], target: str) -> list[Detection]:
        """Return, for each text, the likeliest language to translate from; the target itself where it is in that."""
        if target not in self.all:
            raise Refusal(400, f"{target} is not supported")
        allowed = {target, *(source for source in self.sources if target in self.targets(source))}
        overall = "\n".join(texts)
        # Short texts tell little: what stands around them decides, as it does at LibreTranslate.
        detected = [self.detect(text if len(text) > 40 else overall) for text in texts]
        return [next(found for found in ranked if found.language in allowed) for ranked in detected]


def load_detector() -> None:
    """Read the detector's tables now rather than at the first request."""
    _identifier()


def _ranked(text: str) -> list[tuple[str, float]]:
    if not text.strip():
        return []
    return [(str(code), float(value)) for code, value in _identifier().rank(text)]


@cache
def _identifier() -> Any:  # noqa: ANN401 - the library has no types
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
