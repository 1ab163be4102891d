"""What comes out of a translator."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Alternative:
    """One output for a text: the text, its tokens, and how good the model finds it."""

    text: str
    score: float
    """log-probability over length penalty, summed over sentences: what search ranks by."""
    log_probability: float
    tokens: tuple[str, ...]
    is_finished: bool
    """False where the limit on length cut the output off."""


@dataclass(frozen=True)
class Translation:
    """A text and what became of it; the best output first among `alternatives`."""

    source: str
    alternatives: tuple[Alternative, ...]
    missing: tuple[str, ...] = ()
    """Placeholders of the source that the best output has lost, and enforced terms that it lacks."""
    surplus: tuple[str, ...] = ()
    """Placeholders that the best output repeats more often than the source."""
    refusal: str = ""
    """Why the text was not translated at all; its output is then empty."""

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
        """The best output's pieces."""
        return self.alternatives[0].tokens


@dataclass(frozen=True)
class Likelihood:
    """log p(target | source), token by token, the end token last."""

    tokens: tuple[str, ...]
    log_probabilities: tuple[float, ...]

    @property
    def log_probability(self) -> float:
        """The sum over tokens."""
        return sum(self.log_probabilities)
