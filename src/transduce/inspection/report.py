"""The attention report: tokens, weights of every layer and head, candidates, alignment; as JSON and as a page.

In the decoder, the query of row t is the position that predicts target token t: it has read the start token and the
tokens before t, so the keys of its self-attention are named by what was read, and the first is the start token.
`contract.py` says what each field of the JSON means.
"""

import base64
import html
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from transduce.inspection.alignment import Alignment, align, mean_entropy
from transduce.inspection.contract import (
    AlignmentEntry,
    CandidateEntry,
    EntropyEntry,
    NumbersEntry,
    ReportEntry,
    SentenceEntry,
    TokenEntry,
    TranslatedEntry,
    WeightBlock,
    WeightsEntry,
)
from transduce.inspection.head_numbers import all_numbers
from transduce.inspection.page import attention_page
from transduce.inspection.pair import Sentence
from transduce.inspection.precision import Translated
from transduce.inspection.recording import STACKS, Recording, record
from transduce.inspection.tokens import Token, name_of
from transduce.model.transformer import Transformer
from transduce.text.tokenizer import Tokenizer

CANDIDATES = 8


@dataclass(frozen=True)
class Candidate:
    """A token that might have come next, and how probable it was."""

    id: int
    text: str
    probability: float


@dataclass(frozen=True)
class AttentionReport:
    """What every head did for one pair."""

    source: Sentence
    target: Sentence
    recording: Recording
    candidates: tuple[tuple[Candidate, ...], ...]
    """For each target position the most probable tokens, best first."""
    alignment: Alignment
    translated: Translated
    numbers: NumbersEntry | None = None
    """Queries, keys and values of every head, if asked for."""

    @property
    def target_text(self) -> str:
        """The translation."""
        return self.target.text

    @property
    def largest_difference(self) -> float:
        """How far what translated is from the float32 pass shown: in the log-probability of a token, at most."""
        own = [token.log_probability or 0.0 for token in self.target.tokens]
        return max((abs(a - b) for a, b in zip(own, self.translated.log_probabilities, strict=True)), default=0.0)

    def to_entry(self) -> ReportEntry:
        """Return the report as the contract writes it."""
        weights = {stack: self.recording.stack(stack).weights_LHQK for stack in STACKS}
        return ReportEntry(
            source=_sentence_entry(self.source),
            target=_sentence_entry(self.target),
            candidates=[[CandidateEntry(**asdict(candidate)) for candidate in step] for step in self.candidates],
            alignment=AlignmentEntry(
                layer=self.alignment.layer,
                soft=[[round(value, 4) for value in row] for row in self.alignment.soft],
                hard=list(self.alignment.hard),
            ),
            entropy=EntropyEntry(**{stack: _rounded(mean_entropy(block)) for stack, block in weights.items()}),
            translated=TranslatedEntry(
                precision=self.translated.precision,
                models=self.translated.models,
                is_forced=self.translated.is_forced,
                log_probabilities=list(self.translated.log_probabilities),
                largest_difference=self.largest_difference,
            ),
            weights=WeightsEntry(**{stack: _encoded(block) for stack, block in weights.items()}),
            numbers=self.numbers,
        )

    def to_dictionary(self) -> dict[str, Any]:
        """Return the report as plain values for JSON."""
        return self.to_entry().model_dump(mode="json")

    def to_json(self) -> str:
        """Return the report as JSON."""
        return json.dumps(self.to_dictionary(), ensure_ascii=False, allow_nan=False)

    def to_html(self) -> str:
        """Return one self-contained page that shows the report."""
        return attention_page(self.to_dictionary())

    def _repr_html_(self) -> str:
        """Show the page in a notebook, in a frame of its own that can reach neither the notebook nor a network."""
        page = html.escape(self.to_html())
        return (
            f'<iframe title="Attention" srcdoc="{page}" sandbox="allow-scripts allow-downloads allow-popups" '
            'style="width:100%;height:820px;border:0"></iframe>'
        )


def inspect(
    model: Transformer,
    tokenizer: Tokenizer,
    source: Sentence,
    target: Sentence,
    *,
    translated: Translated,
    with_numbers: bool = False,
) -> AttentionReport:
    """Return what every head did when the float32 `model` reads `source` and predicts `target`.

    `tokenizer` is that of the targets.
    """
    recording = record(model, source.ids, target.ids)
    log_TV, symbols = recording.log_probabilities_TV, tokenizer.symbols
    chosen_T = log_TV.gather(-1, torch.tensor(target.ids)[:, None])[:, 0].tolist()
    return AttentionReport(
        source=source,
        target=target.with_log_probabilities(chosen_T),
        recording=recording,
        candidates=_candidates(
            log_TV, tokenizer, named=[*(token for token in source.tokens if token.id in symbols), *target.tokens]
        ),
        alignment=align(
            recording.cross.weights_LHQK,
            source_words=[token.word for token in source.tokens],
            target_words=[token.word for token in target.tokens],
        ),
        translated=translated,
        numbers=all_numbers(model, recording) if with_numbers else None,
    )


def _candidates(log_TV: Tensor, tokenizer: Tokenizer, *, named: Sequence[Token]) -> tuple[tuple[Candidate, ...], ...]:
    """Return the best tokens of every position; those of the pair go by the names they have there."""
    names = {token.id: token.text for token in named}
    best = log_TV.exp().topk(min(CANDIDATES, log_TV.size(-1)), dim=-1)
    return tuple(
        tuple(
            Candidate(token, names.get(token) or name_of(tokenizer, token), probability)
            for token, probability in zip(tokens, probabilities, strict=True)
        )
        for tokens, probabilities in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    )


def _sentence_entry(sentence: Sentence) -> SentenceEntry:
    tokens = [TokenEntry(**asdict(token)) for token in sentence.tokens]
    return SentenceEntry(text=sentence.text, language=sentence.language, tokens=tokens)


def _rounded(values_LH: Tensor) -> list[list[float]]:
    return [[round(value, 4) for value in row] for row in values_LH.tolist()]


def _encoded(weights_LHQK: Tensor) -> WeightBlock:
    layers, heads, queries, keys = weights_LHQK.shape
    rounded = (weights_LHQK * 255.0).round().to(torch.uint8)
    return WeightBlock(
        shape=(layers, heads, queries, keys), base64_u8=base64.b64encode(rounded.numpy().tobytes()).decode("ascii")
    )
