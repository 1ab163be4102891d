"""A text encoder, such as BERT, that was loaded: it fills masks, gives vectors, and shows its attention."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transduce.compute import torch_threads
from transduce.errors import DataError, ModelError
from transduce.inspection.head_numbers import head_numbers
from transduce.inspection.pair import TokenizedSentence
from transduce.inspection.recording import attention_of
from transduce.inspection.report import AttentionReport, TranslationSource
from transduce.inspection.tokens import Token, words_of
from transduce.model_directory import Languages, ModelDirectory, find_model, load_model
from transduce.text.tokenizer import TextPiece
from transduce.text.tokenizer_pair import TokenizerPair
from transduce.text.word_piece_tokenizer import MASK, WordPieceTokenizer

if TYPE_CHECKING:
    from transduce.inspection.contract import HeadNumbersEntry

Pooling = Literal["mean", "first"]
_TEXTS_AT_ONCE = 16


@dataclass(frozen=True)
class Filling:
    """A token that may stand where a text has [MASK]."""

    token: str
    """Its piece; one that continues a word begins with ##."""
    probability: float


@dataclass
class LoadedEncoder:
    """A text encoder with its tokenizer."""

    model: ModelDirectory
    threads: int | None = None
    """The threads that compute: torch's own setting unless given."""
    languages: Languages = field(init=False)

    def __post_init__(self) -> None:
        """Build the network."""
        self.network, self.languages = self.model.text_encoder(), self.model.description.languages

    @classmethod
    def load(cls, name: str | Path, *, threads: int | None = None) -> Self:
        """Load a text encoder from its model directory; raise ModelError if the model is another network."""
        return cls(load_model(find_model(str(name))), threads)

    @property
    def tokenizers(self) -> TokenizerPair:
        """The tokenizer."""
        return self.model.tokenizers

    @property
    def longest_sentence(self) -> int:
        """The most tokens that the model reads."""
        return self.network.config.learned_positions

    def fill(self, text: str, *, second: str | None = None, alternatives: int = 5) -> list[list[Filling]]:
        """Return the most probable tokens for each [MASK] of a text, the best first; each as if it were alone."""
        if self.network.masked_head is None:
            raise ModelError(f"{self.model.folder} has no layer that predicts masked tokens. It can embed texts.")
        ids = [token.id for token in self.sentence(text, second).tokens]
        places = [place for place, token in enumerate(ids) if token == self._tokenizer.mask]
        if not places:
            raise DataError(f"The text has no {MASK}. Write it in place of a word.")
        with torch_threads(self.threads), torch.no_grad():
            probabilities_NV = self.network.logits(self._hidden([ids])[0][places]).softmax(dim=-1)
        best = probabilities_NV.topk(min(alternatives, probabilities_NV.size(-1)))
        return [
            [Filling(self._tokenizer.piece(token), value) for token, value in zip(tokens, values, strict=True)]
            for tokens, values in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        ]

    def embed(self, texts: Sequence[str], *, pooling: Pooling = "mean") -> NDArray[np.float32]:
        """Return a vector for each text: the mean of its tokens' vectors, [CLS] and [SEP] among them, or the first."""
        vectors: list[Tensor] = []
        with torch_threads(self.threads), torch.no_grad():
            for first in range(0, len(texts), _TEXTS_AT_ONCE):
                some = [self.sentence(text).ids for text in texts[first : first + _TEXTS_AT_ONCE]]
                for ids, hidden_SD in zip(some, self._hidden(some), strict=True):
                    vectors.append(hidden_SD[0] if pooling == "first" else hidden_SD[: len(ids)].mean(dim=0))
        return torch.stack(vectors).numpy() if vectors else np.zeros((0, self.network.config.d_model), np.float32)

    def vectors(self, text: str, *, second: str | None = None) -> NDArray[np.float32]:
        """Return the vector of each token of a text or of two, those that begin and end it among them."""
        with torch_threads(self.threads), torch.no_grad():
            return self._hidden([self.sentence(text, second).ids])[0].numpy()

    def attention(self, text: str, *, second: str | None = None, numbers: bool = False) -> AttentionReport:
        """Return the attention weights of every head for a text, or for two that are read together.

        `numbers` adds the queries, keys and values of each head.
        """
        sentence = self.sentence(text, second)
        with torch_threads(self.threads):
            blocks = attention_of(self.network, sentence.ids, ())
        return AttentionReport(
            source=sentence,
            target=TokenizedSentence("", ()),
            blocks=blocks,
            candidates=[],
            alignment=None,
            translated=TranslationSource("float32", models=1, is_forced=True, log_probabilities=()),
            has_numbers=numbers,
            second=None if second is None else sentence.ids.index(self.network.tokens.end) + 1,
        )

    def head_numbers(
        self, *, source: Sequence[int], target: Sequence[int], stack: str, layer: int, head: int
    ) -> "HeadNumbersEntry":
        """Return q, k and v of one head of the block named `stack`, for the token ids of a report."""
        with torch_threads(self.threads):
            return head_numbers(self.network, source, target, stack, layer, head)

    def sentence(self, text: str, second: str | None = None) -> TokenizedSentence:
        """Return the tokens that are read for a text, or for two: [CLS] first [SEP] second [SEP]."""
        special, shown = self.network.tokens, text if second is None else f"{text}\n{second}"
        found = [TextPiece(special.start, "", 0, 0)]
        for begin, part in ((0, text), (len(text) + 1, second)):
            if part is not None:
                end = begin + len(part)
                own = self._tokenizer.pieces(part)
                found += [piece._replace(start=begin + piece.start, end=begin + piece.end) for piece in own]
                found.append(TextPiece(special.end, "", end, end))
        if len(found) > self.longest_sentence:
            raise DataError(f"The text has {len(found):,} tokens; this model reads {self.longest_sentence:,}. Cut it.")
        words = words_of(self._tokenizer, [piece.id for piece in found])
        tokens = tuple(
            Token(piece.id, self._name(piece.id), piece.start, piece.end, word)
            for piece, word in zip(found, words, strict=True)
        )
        return TokenizedSentence(shown, tokens, self.languages.source)

    def _name(self, token: int) -> str:
        return self._tokenizer.written(token).decode() or self._tokenizer.piece(token)

    @property
    def _tokenizer(self) -> WordPieceTokenizer:
        tokenizer = self.tokenizers.target
        assert isinstance(tokenizer, WordPieceTokenizer), "every text encoder is imported with one"
        return tokenizer

    def _hidden(self, texts: Sequence[Sequence[int]]) -> Tensor:
        """Return the vectors of padded texts, shape (B, S, D)."""
        types = [self.network.types_of(ids) for ids in texts]
        padding, longest = self.network.tokens.padding, max(map(len, texts))
        tokens_BS = torch.tensor([[*ids, *[padding] * (longest - len(ids))] for ids in texts])
        types_BS = torch.tensor([[*row, *[0] * (longest - len(row))] for row in types])
        hidden_BSD: Tensor = self.network(tokens_BS, types_BS)
        if not hidden_BSD.isfinite().all():
            raise ModelError(f"{self.model.folder} computes values that are not numbers. Get the model again.")
        return hidden_BSD
