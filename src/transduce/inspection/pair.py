"""The pair of sentences in a report: the source as the user wrote it, and the translation found or forced."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from transduce.inspection.tokens import Token, tokens_of_ids, tokens_of_text
from transduce.text.placeholders import Protected, protect, protect_pair
from transduce.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class TokenizedSentence:
    """One side of the pair: its text, its tokens with spans in it, its language where that is known."""

    text: str
    tokens: tuple[Token, ...]
    language: str | None = None

    @property
    def ids(self) -> list[int]:
        """The tokens' ids, the end token's included."""
        return [token.id for token in self.tokens]

    def with_log_probabilities(self, log_probabilities: Sequence[float]) -> "TokenizedSentence":
        """Return the sentence with the log-probability of each token."""
        pairs = zip(self.tokens, log_probabilities, strict=True)
        return replace(self, tokens=tuple(replace(token, log_probability=log) for token, log in pairs))


def forced_pair(tokenizer: Tokenizer, source: str, target: str) -> tuple[TokenizedSentence, TokenizedSentence]:
    """Return a source and a translation that the user gives; placeholders are symbols where both have them."""
    pair = protect_pair(source, target)
    return _given(tokenizer, Protected(pair.source, pair.originals), source), _given(
        tokenizer, Protected(pair.target, pair.originals), target
    )


def found_pair(
    tokenizer: Tokenizer, source: str, *, translate: Callable[[list[int]], Sequence[int]]
) -> tuple[TokenizedSentence, TokenizedSentence]:
    """Return a source and the translation that `translate` finds for its ids."""
    protected = protect(source)
    given = _given(tokenizer, protected, source)
    text, tokens = tokens_of_ids(tokenizer, translate(given.ids), originals=protected.originals)
    return given, TokenizedSentence(text, tokens)


def _given(tokenizer: Tokenizer, protected: Protected, text: str) -> TokenizedSentence:
    return TokenizedSentence(text, tokens_of_text(tokenizer, protected, original=text))
