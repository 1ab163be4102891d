"""The JSON contract of an attention report, version 2; `docs/attention_report.schema.json` is made from this file.

A reader refuses an unknown `format_version`. Adding a field does not raise the version; removing a field or changing
its meaning does. Every index counts from 0. Spans count Unicode code points, not UTF-16 units.

Version 1 had three fixed kinds of attention, `weights`, `entropy` and `numbers` with the keys `encoder`, `decoder` and
`cross`, and weights in steps of 1/255. The page reads both versions.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, StringConstraints

from transduce.networks.attention_axes import Axis, Scores

FORMAT: Literal["transduce-attention"] = "transduce-attention"
FORMAT_VERSION: Literal[2] = 2

BlockName = Annotated[str, StringConstraints(pattern="^[a-z][a-z_]*$")]


class ContractEntry(BaseModel, frozen=True, extra="forbid", use_attribute_docstrings=True):
    """An object of the JSON."""


class TokenEntry(ContractEntry):
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
    """Its log-probability given all tokens before it, natural logarithm; null in the source."""


class SentenceEntry(ContractEntry):
    """One side of the pair."""

    text: str
    """As the user wrote it or the model translated it."""
    language: str | None
    """BCP 47 name, where it is known."""
    tokens: list[TokenEntry]
    """In order; the last is the end token, unless the search was cut short."""


class CandidateEntry(ContractEntry):
    """A token that might have come next."""

    id: int
    """The token's number in the vocabulary."""
    text: str
    """Its printable form."""
    probability: float
    """What the float32 network gives it, given the source and all target tokens before."""


class RemovedHeadEntry(ContractEntry):
    """What the network would predict without one head; the tokens before each position stay as they are."""

    log_probabilities: list[float]
    """Of each target token, natural logarithm."""
    candidates: list[list[CandidateEntry]]
    """For each target token, the most probable ones for its place, best first."""


class AlignmentEntry(ContractEntry):
    """Which source words a target word aligns with, read off a block from target to source."""

    block: BlockName
    """The name of that block."""
    layer: int
    """The layer whose heads were averaged: the last but one, or the last of one or two."""
    soft: list[list[float]]
    """By target word and source word: attention summed over the source word's tokens, averaged over the target
    word's. What a row lacks to 1 went to the source's end token.
    """
    hard: list[int | None]
    """By target word: the source word with the most attention; null where the source has no word."""


class TranslatedEntry(ContractEntry):
    """What made the translation, and how far the float32 pass that is shown here is from it."""

    precision: str
    """The precision of the computation that translated."""
    models: int
    """How many models translated; attention is shown of the first."""
    is_forced: bool
    """Whether the user gave the translation."""
    log_probabilities: list[float]
    """Of each target token, as the translating precision (or the ensemble) gives them."""
    largest_difference: float
    """The largest distance between these and the tokens' own `log_probability`."""


class FloatBlock(ContractEntry):
    """A tensor of float32."""

    shape: list[int]
    """Its sizes, slowest axis first."""
    base64_f32: str
    """Little-endian IEEE 754 single precision, base64."""


class NumbersEntry(ContractEntry):
    """Queries, keys and values of every head of a block, in a report made with `--numbers`."""

    scores: Scores
    """How a query and a key make a score (3.2.1)."""
    scale: float
    """What a score is multiplied by."""
    query: FloatBlock
    """Layer, head, query, d_k."""
    key: FloatBlock
    """Layer, head, key, d_k."""
    value: FloatBlock
    """Layer, head, key, d_v."""
    additive: FloatBlock | None
    """Layer, head, d_k: v of v · tanh(q + k), where scores are additive."""


class BlockEntry(ContractEntry):
    """One kind of attention: the weights of every layer and head.

    An axis is `source` (the source tokens), `target` (the target tokens, each for the position that predicts it),
    `read` (what the network has read at those positions: the start token, then every target token but the last) or
    `source+read` (both, one after the other). A query sees no `read` position after its own.
    """

    queries: Axis
    """What the queries are, the rows of a matrix of weights."""
    keys: Axis
    """What the keys are, its columns."""
    shape: tuple[int, int, int, int]
    """Layers, heads, queries, keys."""
    order: tuple[Literal["layer"], Literal["head"], Literal["query"], Literal["key"]] = (
        "layer",
        "head",
        "query",
        "key",
    )
    """The axes of `shape`, slowest first."""
    base64_f16: str
    """The weights as little-endian IEEE 754 half precision, base64. A row sums to 1 within 0.001, or is 0."""
    entropy: list[list[float]]
    """Mean entropy of the rows by layer and head: 0 where each query attends to one key alone. [bits]"""
    has_projections: bool
    """Whether the network has queries, keys and values to show for this block."""
    numbers: NumbersEntry | None = None
    """These queries, keys and values, if asked for."""


class HeadNumbersEntry(ContractEntry):
    """The numbers behind one head, as a server gives them on demand."""

    stack: BlockName
    """The name of the block."""
    layer: int
    """Counted from 0."""
    head: int
    """Counted from 0."""
    scores: Scores
    """How a query and a key make a score (3.2.1)."""
    scale: float
    """What a score is multiplied by."""
    query: FloatBlock
    """Query, d_k."""
    key: FloatBlock
    """Key, d_k."""
    value: FloatBlock
    """Key, d_v."""
    additive: FloatBlock | None
    """d_k: v of v · tanh(q + k), where scores are additive."""


class ReportEntry(ContractEntry):
    """What every attention head did for one sentence and its translation."""

    format: Literal["transduce-attention"] = FORMAT
    """The name of this format."""
    format_version: Literal[2] = FORMAT_VERSION
    """Raised when a field is removed or changes its meaning."""
    source: SentenceEntry
    """What was translated; without tokens for a network that has no source."""
    target: SentenceEntry
    """What it was translated into; without tokens for a network that has no target."""
    candidates: list[list[CandidateEntry]]
    """For each target token, the most probable ones for its place, best first."""
    alignment: AlignmentEntry | None
    """Word alignment; null where no block goes from target to source."""
    translated: TranslatedEntry
    """What made the translation."""
    blocks: dict[BlockName, BlockEntry] = Field(json_schema_extra={"additionalProperties": False})
    """The attention by kind, in the network's order; a Transformer has `encoder`, `decoder` and `cross` (3.2.3)."""
    second: int | None = None
    """For a network that reads two texts together: the source token at which the second begins; null for one text."""
    without: dict[BlockName, list[list[RemovedHeadEntry]]] | None = None
    """By block, layer and head: the prediction without that head, in a report made with `--ablation`."""


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of the contract, of which `docs/attention_report.schema.json` is a copy."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **ReportEntry.model_json_schema()}
