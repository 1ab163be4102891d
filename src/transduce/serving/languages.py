"""The languages that the models serve, directly or with a language between, and detection of a text's language.

py3langid detects among all languages that it knows. The confidences of the served languages are its probabilities, not
scaled to sum to one: on a server that translates only from English, a French text is English with confidence 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from transduce.serving.refusal import Refusal
from transduce.text.language_detection import language_probabilities
from transduce.text.language_names import language_name

UNKNOWN = "und"  # ISO 639: undetermined
_PREFERRED_PIVOT = "en"


@dataclass(frozen=True)
class Detection:
    """A language, and the confidence that a text is in it."""

    confidence: float
    """From 0 to 100."""
    language: str


def with_pivots(models: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the models, and for pairs of languages without one two models in turn, by the name FIRST+SECOND.

    The language between is English if it can be, else that of the first models.
    """
    found = {name: {**model, "through": None, "pivot": None} for name, model in models.items()}
    pairs = {pair: name for pair, name in ServedLanguages(models).pairs.items() if UNKNOWN not in pair}
    for first, second in sorted(product(pairs, pairs), key=lambda both: both[0][1] != _PREFERRED_PIVOT):
        (source, pivot), (other, target) = first, second
        if pivot == other and source != target and (source, target) not in pairs:
            through = [pairs[first], pairs[second]]
            own = [models[name] for name in through]
            pairs[source, target] = "+".join(through)
            described = {
                "kind": "translation",
                "source": source,
                "target": target,
                "pivot": pivot,
                "through": through,
                "longest_sentence": min(model["longest_sentence"] for model in own),
                "parameters": sum(model["parameters"] for model in own),
                "beam": own[1]["beam"],
                "is_calibrated": False,
                "aligns_tags": all(model["aligns_tags"] for model in own),
            }
            found.setdefault(pairs[source, target], described)
    return found


class ServedLanguages:
    """The pairs of languages that a set of models serves, each with its first model."""

    def __init__(self, models: Mapping[str, Mapping[str, Any]]) -> None:
        self.pairs: dict[tuple[str, str], str] = {}
        for name, model in models.items():
            if model["kind"] != "translation":
                continue
            self.pairs.setdefault((model["source"] or UNKNOWN, model["target"] or UNKNOWN), name)

    @property
    def sources(self) -> list[str]:
        """Languages to translate from, in the order of the models."""
        return list(dict.fromkeys(source for source, _ in self.pairs))

    @property
    def codes(self) -> list[str]:
        """All languages, sources first."""
        return list(dict.fromkeys([*self.sources, *(target for _, target in self.pairs)]))

    def targets(self, source: str) -> list[str]:
        """Return the languages that `source` can be translated to."""
        return [target for own, target in self.pairs if own == source]

    def model(self, source: str, target: str) -> str:
        """Return the name of the model for a pair; if there is none, refuse with LibreTranslate's error message."""
        for code in (source, target):
            if code not in self.codes:
                raise Refusal(400, f"{code} is not supported")
        if (source, target) not in self.pairs:
            raise Refusal(
                400,
                f"{language_name(target)} ({target}) is not available as a target language from "
                f"{language_name(source)} ({source})",
            )
        return self.pairs[source, target]

    def detect(self, text: str) -> list[Detection]:
        """Return the served languages, the most probable language of `text` first."""
        probabilities = language_probabilities(text)
        found = [
            Detection(confidence=round(100.0 * probabilities.get(code.partition("-")[0], 0.0), 1), language=code)
            for code in self.codes
        ]
        return sorted(found, key=lambda detection: -detection.confidence)

    def likeliest_source(self, text: str, *, target: str | None) -> str | None:
        """Return the most probable language of `text` among those with a model to `target`, or None without a model."""
        sources = self._sources_of(target)
        if len(sources) < 2:
            return sources[0] if sources else None
        return self._detect_among(sources, text).language

    def detect_source(self, texts: Sequence[str], target: str) -> list[Detection]:
        """Return the most probable language of each text among `target` and the languages with a model to it."""
        if target not in self.codes:
            raise Refusal(400, f"{target} is not supported")
        allowed = [target, *self._sources_of(target)]
        overall = "\n".join(texts)
        # A short text is hard to detect: all texts together decide, as in LibreTranslate.
        return [self._detect_among(allowed, text if len(text) > 40 else overall) for text in texts]

    def _sources_of(self, target: str | None) -> list[str]:
        return [source for source in self.sources if target is None or target in self.targets(source)]

    def _detect_among(self, allowed: Sequence[str], text: str) -> Detection:
        return next(detection for detection in self.detect(text) if detection.language in allowed)
