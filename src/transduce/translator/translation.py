"""The results of a translator: translations with their alternatives, and likelihoods."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SentenceOutput:
    """The output for one sentence of a text, as the search found it."""

    start: int
    """Where the sentence begins in the source text. [code points]"""
    end: int
    """Where it ends."""
    tokens: tuple[int, ...]
    """The ids of the output's tokens; the end token is the last, unless the length limit cut the output off."""


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
