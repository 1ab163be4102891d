"""The results of a translator: translations with their alternatives, and likelihoods."""

from dataclasses import dataclass

from transduce.translator.checks import Doubt


@dataclass(frozen=True)
class SentenceOutput:
    """The output for one sentence of a text, as the search found it."""

    start: int
    """Where the sentence begins in the source text. [code points]"""
    end: int
    """Where it ends."""
    tokens: tuple[int, ...]
    """The ids of the output's tokens; the end token is the last, unless the length limit cut the output off."""
    log_probability: float
    source_tokens: int
    """The number of tokens of the sentence itself."""


@dataclass(frozen=True)
class Alternative:
    """One output for a text, with its tokens, score and log-probability."""

    text: str
    score: float
    """Log-probability over length penalty, summed over sentences; search ranks by it."""
    log_probability: float
    tokens: tuple[str, ...]
    is_finished: bool
    """False if the length limit cut the output off."""
    sentences: tuple[SentenceOutput, ...] = ()
    """The sentences that the text was cut into, in order."""


@dataclass(frozen=True)
class Translation:
    """A text and its translations, best first."""

    source: str
    alternatives: tuple[Alternative, ...]
    missing: tuple[str, ...] = ()
    """Placeholders of the source and enforced terms that the best output lacks."""
    surplus: tuple[str, ...] = ()
    """Placeholders that the best output has more often than the source."""
    missing_numbers: tuple[str, ...] = ()
    """Numbers of the source, in digits, that the best output lacks; it may have them as words."""
    doubts: tuple[Doubt, ...] = ()
    """The checks that the best output fails: it stutters, its length is odd, or it lacks numbers."""
    confidence: float | None = None
    """The estimated probability that its chrF would be at least 60; None if the model is not calibrated."""
    refusal: str = ""
    """The reason why the text was not translated; its output is then empty."""

    @classmethod
    def refused(cls, source: str, reason: str) -> "Translation":
        """Return the empty translation of a text that cannot be translated."""
        nothing = Alternative(text="", score=0.0, log_probability=0.0, tokens=(), is_finished=False)
        return cls(source=source, alternatives=(nothing,), refusal=reason)

    @property
    def text(self) -> str:
        """The best output."""
        return self.alternatives[0].text

    @property
    def score(self) -> float:
        """The best output's score."""
        return self.alternatives[0].score

    @property
    def log_probability(self) -> float:
        """The best output's log-probability."""
        return self.alternatives[0].log_probability

    @property
    def tokens(self) -> tuple[str, ...]:
        """The best output's tokens."""
        return self.alternatives[0].tokens


@dataclass(frozen=True)
class Likelihood:
    """log p of each target token given the source and the tokens before it; the end token is the last."""

    tokens: tuple[str, ...]
    log_probabilities: tuple[float, ...]

    @property
    def log_probability(self) -> float:
        """The sum over tokens."""
        return sum(self.log_probabilities)
