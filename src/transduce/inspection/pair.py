"""The pair of sentences in a report: the source as the user wrote it, and the translation found or forced."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from transduce.inspection.tokens import Token, name_of, tokens_of_ids, tokens_of_text
from transduce.text.placeholders import Protected
from transduce.text.tokenizer import Tokenizer
from transduce.text.tokenizer_pair import TokenizerPair


@dataclass(frozen=True)
class TokenizedSentence:
    """One side of the pair: its text, its tokens with spans in it, its language where that is known."""

    text: str
    tokens: tuple[Token, ...]
    language: str | None = None

    @property
    def ids(self) -> list[int]:
        """The tokens' ids, with that of the end token if there is one."""
        return [token.id for token in self.tokens]

    def with_log_probabilities(self, log_probabilities: Sequence[float]) -> "TokenizedSentence":
        """Return the sentence with the log-probability of each token."""
        pairs = zip(self.tokens, log_probabilities, strict=True)
        return replace(self, tokens=tuple(replace(token, log_probability=log) for token, log in pairs))


def forced_pair(tokenizers: TokenizerPair, source: str, target: str) -> tuple[TokenizedSentence, TokenizedSentence]:
    """Return a source and a translation that the user gives; placeholders are symbols where both have them."""
    pair = tokenizers.protect_pair(source, target)
    shown = Protected(pair.target, pair.originals)
    tokens = tokens_of_text(tokenizers.target, shown, original=target, has_end=True)
    return _source(tokenizers, Protected(pair.source, pair.originals), source), TokenizedSentence(target, tokens)


def found_pair(
    tokenizers: TokenizerPair, source: str, *, translate: Callable[[list[int]], Sequence[int]]
) -> tuple[TokenizedSentence, TokenizedSentence]:
    """Return a source and the translation that `translate` finds for its ids."""
    protected = tokenizers.protect(source)
    given = _source(tokenizers, protected, source)
    text, tokens = tokens_of_ids(tokenizers.target, translate(given.ids), originals=protected.originals)
    return given, TokenizedSentence(text, tokens)


def text_alone(tokenizer: Tokenizer, text: str) -> tuple[TokenizedSentence, TokenizedSentence]:
    """Return the text of a language model as a target, after a source that is the start token alone."""
    start = tokenizer.special.start
    before = TokenizedSentence("", (Token(start, name_of(tokenizer, start), 0, 0, None),))
    return before, TokenizedSentence(text, tokens_of_text(tokenizer, Protected(text, ()), original=text))


def _source(tokenizers: TokenizerPair, protected: Protected, text: str) -> TokenizedSentence:
    tokens = tokens_of_text(tokenizers.source, protected, original=text, has_end=tokenizers.source_end)
    return TokenizedSentence(text, tokens)
