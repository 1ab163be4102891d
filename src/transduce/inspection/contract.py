"""The JSON contract of an attention report, version 1; `docs/attention_report.schema.json` is made from this file.

A reader refuses a `format_version` that it does not know. Fields are added without raising it; what a field means, or
that it exists, changes only with it. Every index counts from 0. Spans count Unicode code points, not UTF-16 units.
"""

from typing import Any, Literal

from pydantic import BaseModel

FORMAT: Literal["transduce-attention"] = "transduce-attention"
FORMAT_VERSION: Literal[1] = 1


class _Entry(BaseModel, frozen=True, extra="forbid", use_attribute_docstrings=True):
    """Something with named fields."""


class TokenEntry(_Entry):
    """One token of a sentence."""

    id: int
    """The token's number in the vocabulary."""
    text: str
    """Its printable form: `▁` marks the beginning of a word, a placeholder shows what it stands for."""
    start: int
    """Where its share of the sentence's text begins. [code points]"""
    end: int
    """Where its share ends; pieces of one character share a span. [code points]"""
    word: int | None
    """Which word of the sentence it belongs to; null for a special token."""
    log_probability: float | None
    """What the model thought of it given all before it, natural logarithm; null in the source."""


class SentenceEntry(_Entry):
    """One side of the pair."""

    text: str
    """As the user wrote it or the model translated it."""
    language: str | None
    """BCP 47 name, where it is known."""
    tokens: list[TokenEntry]
    """In order; the last is the end token, unless the search was cut short."""


class WeightBlock(_Entry):
    """Attention weights of every layer and head: in `decoder` and `cross`, query t is what predicts target token t."""

    shape: tuple[int, int, int, int]
    """Layers, heads, queries, keys."""
    order: tuple[Literal["layer"], Literal["head"], Literal["query"], Literal["key"]] = (
        "layer",
        "head",
        "query",
        "key",
    )
    """The axes of `shape`, slowest first."""
    base64_u8: str
    """round(255 · weight) as unsigned bytes, base64."""


class WeightsEntry(_Entry):
    """The three kinds of attention (section 3.2.3)."""

    encoder: WeightBlock
    """Source to source."""
    decoder: WeightBlock
    """Target to what was read of it: key 0 is the start token, key t the target token t - 1."""
    cross: WeightBlock
    """Target to source."""


class CandidateEntry(_Entry):
    """A token that might have come next."""

    id: int
    """The token's number in the vocabulary."""
    text: str
    """Its printable form."""
    probability: float
    """What the float32 network gives it, given the source and all target tokens before."""


class EntropyEntry(_Entry):
    """Mean entropy of each head's rows, by layer and head: 0 where each query looks at one key alone."""

    encoder: list[list[float]]
    """Of the encoder's self-attention. [bits]"""
    decoder: list[list[float]]
    """Of the decoder's self-attention."""
    cross: list[list[float]]
    """Of the attention from the decoder to the source."""


class AlignmentEntry(_Entry):
    """Which source words a target word leans on, read off cross-attention."""

    layer: int
    """The decoder layer whose heads were averaged: the last but one, or the last of one or two."""
    soft: list[list[float]]
    """By target word and source word: attention summed over the source word's tokens, averaged over the target
    word's. What a row lacks to 1 went to the source's end token.
    """
    hard: list[int | None]
    """By target word: the source word with the most; null where the source has no word."""


class TranslatedEntry(_Entry):
    """What made the translation, and how far the float32 pass that is shown here is from it."""

    precision: str
    """What the translation was computed in."""
    models: int
    """How many models translated; attention is shown of the first."""
    is_forced: bool
    """Whether the user gave the translation."""
    log_probabilities: list[float]
    """Of each target token, as the translating precision (or the ensemble) gives them."""
    largest_difference: float
    """The largest distance between these and the tokens' own `log_probability`."""


class FloatBlock(_Entry):
    """A tensor of float32."""

    shape: list[int]
    """Its sizes, slowest axis first."""
    base64_f32: str
    """Little-endian IEEE 754 single precision, base64."""


class StackNumbersEntry(_Entry):
    """Queries, keys and values of every head of a stack."""

    query: FloatBlock
    """Layer, head, query, d_k."""
    key: FloatBlock
    """Layer, head, key, d_k."""
    value: FloatBlock
    """Layer, head, key, d_v."""
    additive: FloatBlock | None
    """Layer, head, d_k: v of v · tanh(q + k), where scores are additive."""


class NumbersEntry(_Entry):
    """The numbers behind the weights, in a page made with `--numbers`."""

    scores: Literal["scaled", "unscaled", "additive"]
    """How a query and a key make a score (3.2.1)."""
    scale: float
    """What the dot product is multiplied by."""
    encoder: StackNumbersEntry
    """Of the encoder's self-attention."""
    decoder: StackNumbersEntry
    """Of the decoder's self-attention."""
    cross: StackNumbersEntry
    """Of the attention from the decoder to the source."""


class HeadNumbersEntry(_Entry):
    """The numbers behind one head, as a server gives them on demand."""

    stack: Literal["encoder", "decoder", "cross"]
    """Which kind of attention."""
    layer: int
    """Counted from 0."""
    head: int
    """Counted from 0."""
    scores: Literal["scaled", "unscaled", "additive"]
    """How a query and a key make a score (3.2.1)."""
    scale: float
    """What the dot product is multiplied by."""
    query: FloatBlock
    """Query, d_k."""
    key: FloatBlock
    """Key, d_k."""
    value: FloatBlock
    """Key, d_v."""
    additive: FloatBlock | None
    """d_k: v of v · tanh(q + k), where scores are additive."""


class ReportEntry(_Entry):
    """What every attention head did for one sentence and its translation."""

    format: Literal["transduce-attention"] = FORMAT
    """Says what this is."""
    format_version: Literal[1] = FORMAT_VERSION
    """Raised when a field changes its meaning or goes."""
    source: SentenceEntry
    """What was translated."""
    target: SentenceEntry
    """What it was translated into."""
    candidates: list[list[CandidateEntry]]
    """For each target token, the most probable ones for its place, best first."""
    alignment: AlignmentEntry
    """Word alignment."""
    entropy: EntropyEntry
    """How spread out each head's attention is."""
    translated: TranslatedEntry
    """What made the translation."""
    weights: WeightsEntry
    """The attention weights."""
    numbers: NumbersEntry | None = None
    """The queries, keys and values behind them, if asked for."""


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of the contract, of which `docs/attention_report.schema.json` is a copy."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **ReportEntry.model_json_schema()}
