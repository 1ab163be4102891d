"""A batch: some pairs of a token store, each side padded to its longest row.

    source_BS   x_1 … x_n end padding …      without the end token if the model's sources have none
    target_BT   y_1 … y_m end padding …      the labels; the model shifts them right itself

BPE-dropout (Provilkov et al., 2020; not in the paper) segments the text of every pair again in each epoch. The pieces
of sentence n in epoch e depend on (seed, e, n) alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from transduce.data.batching import Sentences
from transduce.data.padding import pad_ids
from transduce.data.token_store import TokenStore
from transduce.errors import ConfigError
from transduce.special_tokens import OWN_SPECIAL_TOKENS
from transduce.text.tokenizer import SamplingTokenizer, Tokenizer
from transduce.text.tokenizer_pair import TokenizerPair

IdSequence = Sequence[int] | NDArray[Any]
"""The token ids of one side of a pair."""


@dataclass(frozen=True)
class Batch:
    """The token ids of some pairs as int64, and the indices of these pairs in the store."""

    source_BS: Tensor
    target_BT: Tensor
    sentences: Sentences
    padding: int = OWN_SPECIAL_TOKENS.padding
    """The id that fills rows up to the longest."""

    def to(self, device: torch.device) -> "Batch":
        """Return the same batch on a device."""
        return replace(
            self,
            source_BS=self.source_BS.to(device, non_blocking=True),
            target_BT=self.target_BT.to(device, non_blocking=True),
        )


@dataclass(frozen=True)
class Resegmentation:
    """The settings of BPE-dropout for one epoch."""

    tokenizers: TokenizerPair
    dropout: float
    seed: int
    epoch: int
    max_length: int
    """The usual segmentation replaces a sample longer than this; nothing is cut off. [tokens]"""


def require_sampling(tokenizer: Tokenizer) -> SamplingTokenizer:
    """Return the tokenizer, or raise ConfigError if it cannot segment text at random."""
    if not isinstance(tokenizer, SamplingTokenizer):
        raise ConfigError(
            f"training.bpe_dropout cuts words at random, and a tokenizer of the kind {tokenizer.kind!r} cuts a text in "
            "one way only. Set training.bpe_dropout = 0."
        )
    return tokenizer


def collate(
    store: TokenStore,
    sentences: Sentences,
    *,
    padding: int = OWN_SPECIAL_TOKENS.padding,
    resegmentation: Resegmentation | None = None,
) -> Batch:
    """Return the batch of these sentences of the store, in this order."""
    sources: list[IdSequence] = []
    targets: list[IdSequence] = []
    for sentence in sentences.tolist():
        source: IdSequence = store.source(sentence)
        target: IdSequence = store.target(sentence)
        if resegmentation is not None:
            source, target = _resegmented((source, target), store.text(sentence), sentence, resegmentation)
        sources.append(source)
        targets.append(target)
    return Batch(pad_rows(sources, padding=padding), pad_rows(targets, padding=padding), sentences, padding)


def pad_rows(rows: Sequence[IdSequence], *, padding: int = OWN_SPECIAL_TOKENS.padding) -> Tensor:
    """Return rows of ids as one int64 tensor, padded at the end to the longest."""
    return torch.from_numpy(pad_ids(rows, padding=padding))


def _resegmented(
    usual: tuple[IdSequence, IdSequence], texts: tuple[str, str], sentence: int, how: Resegmentation
) -> list[IdSequence]:
    pair = how.tokenizers
    sides = ((pair.source, pair.end_source), (pair.target, pair.end_target))
    result: list[IdSequence] = []
    for side, (tokenizer, end) in enumerate(sides):
        if tokenizer.kind == "words":  # a bracket is one token
            result.append(usual[side])
            continue
        key = (how.seed, how.epoch, 2 * sentence + side)
        sampled = end(require_sampling(tokenizer).sample(texts[side], dropout=how.dropout, key=key))
        result.append(sampled if len(sampled) <= max(how.max_length, len(usual[side])) else usual[side])
    return result
