"""The attention report: tokens, weights of every layer and head, candidates, alignment; as JSON and as a page.

Row t of a block with target queries belongs to the position that predicts target token t, which has read the start
token and the target tokens before t. Keys of the decoder's self-attention are the tokens read, so the first is the
start token. `contract.py` explains each field of the JSON.
"""

import base64
import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from transduce.inspection.alignment import align, mean_entropy
from transduce.inspection.contract import (
    AlignmentEntry,
    BlockEntry,
    CandidateEntry,
    RemovedHeadEntry,
    ReportEntry,
    SentenceEntry,
    TokenEntry,
    TranslatedEntry,
)
from transduce.inspection.head_numbers import numbers_entry
from transduce.inspection.page import attention_page
from transduce.inspection.pair import TokenizedSentence
from transduce.inspection.recording import record
from transduce.inspection.tokens import Token, name_of
from transduce.networks.attention_block import AttentionBlock
from transduce.networks.network import Network
from transduce.text.tokenizer import Tokenizer

CANDIDATES = 8
_FIT_FRAME = """addEventListener("message", ({ source, data }) => {
  for (const frame of document.querySelectorAll("iframe.transduce-attention"))
    if (frame.contentWindow === source && Number.isFinite(data?.attentionHeight))
      frame.style.height = `${Math.min(Math.max(data.attentionHeight, 300), 5000)}px`;
});"""
"""Runs in the notebook: gives a frame the height that its page reports (`web/start.js`)."""


@dataclass(frozen=True)
class TranslationSource:
    """The origin of a translation: precision, number of models, and the log-probability of each target token.

    The model that translated computes it token by token, as in the search, so `largest_difference` is known for every
    model that search works with: bfloat16, int8, or an ensemble.
    """

    precision: str
    models: int
    is_forced: bool
    log_probabilities: tuple[float, ...]


@dataclass(frozen=True)
class AttentionReport:
    """The attention of every head for one pair, with candidates and alignment."""

    source: TokenizedSentence
    target: TokenizedSentence
    blocks: Mapping[str, AttentionBlock]
    """The attention by kind; a Transformer has `encoder`, `decoder` and `cross`."""
    candidates: list[list[CandidateEntry]]
    """For each target position the most probable tokens, best first."""
    alignment: AlignmentEntry | None
    """None where no block goes from target to source."""
    translated: TranslationSource
    has_numbers: bool = False
    """Whether JSON and page carry the queries, keys and values of every head."""
    second: int | None = None
    """Which source token begins the second of two texts that are read together; None if there is one."""
    without: dict[str, list[list[RemovedHeadEntry]]] | None = None
    """By block, layer and head: what would be predicted without that head (`inspection/ablation.py`)."""

    @property
    def target_text(self) -> str:
        """The translation."""
        return self.target.text

    @property
    def largest_difference(self) -> float:
        """The largest difference, over tokens, in log-probability between the translation and the float32 pass."""
        own = [token.log_probability or 0.0 for token in self.target.tokens]
        return max((abs(a - b) for a, b in zip(own, self.translated.log_probabilities, strict=True)), default=0.0)

    def to_entry(self) -> ReportEntry:
        """Return the report in the form of the JSON contract."""
        return ReportEntry(
            source=_sentence_entry(self.source),
            target=_sentence_entry(self.target),
            candidates=self.candidates,
            alignment=self.alignment,
            translated=TranslatedEntry(**asdict(self.translated), largest_difference=self.largest_difference),
            blocks={name: block_entry(block, has_numbers=self.has_numbers) for name, block in self.blocks.items()},
            second=self.second,
            without=self.without,
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

    def __repr__(self) -> str:
        """Describe the report in one line; a dataclass would print every weight."""
        blocks = ", ".join(f"{name} {tuple(block.weights_LHQK.shape)}" for name, block in self.blocks.items())
        return f"AttentionReport({self.source.text!r} → {self.target.text!r}; layers, heads, queries, keys: {blocks})"

    def _repr_html_(self) -> str:
        """Show the page in a notebook, in a frame that can reach neither the notebook nor a network.

        A notebook that is not trusted shows only the sentence before the frame.
        """
        page = html.escape(self.to_html())
        return (
            f"<p>Attention of “{html.escape(self.source.text)}”. If no page appears below, trust this notebook (in "
            "Jupyter: File, Trust Notebook), or write the page with <code>report.to_html()</code>.</p>"
            f'<iframe class="transduce-attention" title="Attention" srcdoc="{page}" '
            'sandbox="allow-scripts allow-downloads allow-popups" style="width:100%;height:820px;border:0"></iframe>'
            f"<script>{_FIT_FRAME}</script>"
        )


def inspect(
    network: Network,
    tokenizer: Tokenizer,
    source: TokenizedSentence,
    target: TokenizedSentence,
    *,
    translated: TranslationSource,
    with_numbers: bool = False,
) -> AttentionReport:
    """Return the report on a pass in which the float32 `network` reads `source` and predicts `target`.

    `tokenizer` is that of the targets.
    """
    recording = record(network, source.ids, target.ids)
    log_TV, symbols = recording.log_probabilities_TV, tokenizer.symbols
    chosen_T = log_TV.gather(-1, torch.tensor(target.ids, dtype=torch.long)[:, None])[:, 0].tolist()
    named = [*(token for token in source.tokens if token.id in symbols), *target.tokens]
    return AttentionReport(
        source=source,
        target=target.with_log_probabilities(chosen_T),
        blocks=recording.blocks,
        candidates=most_probable(log_TV, tokenizer, named=named),
        alignment=_alignment(recording.blocks, source, target),
        translated=translated,
        has_numbers=with_numbers,
    )


def _alignment(
    blocks: Mapping[str, AttentionBlock], source: TokenizedSentence, target: TokenizedSentence
) -> AlignmentEntry | None:
    for name, block in blocks.items():
        if (block.queries, block.keys) == ("target", "source"):
            return align(
                block.weights_LHQK.numpy(),
                block=name,
                source_words=[token.word for token in source.tokens],
                target_words=[token.word for token in target.tokens],
            )
    return None


def most_probable(
    log_TV: Tensor, tokenizer: Tokenizer, *, named: Sequence[Token], count: int = CANDIDATES
) -> list[list[CandidateEntry]]:
    """Return the most probable tokens of every position; tokens of the pair keep the names they have there."""
    names = {token.id: token.text for token in named}
    best = log_TV.exp().topk(min(count, log_TV.size(-1)), dim=-1)
    return [
        [
            CandidateEntry(id=token, text=names.get(token) or name_of(tokenizer, token), probability=probability)
            for token, probability in zip(tokens, probabilities, strict=True)
        ]
        for tokens, probabilities in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    ]


def _sentence_entry(sentence: TokenizedSentence) -> SentenceEntry:
    tokens = [TokenEntry(**asdict(token)) for token in sentence.tokens]
    return SentenceEntry(text=sentence.text, language=sentence.language, tokens=tokens)


def block_entry(block: AttentionBlock, *, has_numbers: bool) -> BlockEntry:
    """Return a block in the form of the JSON contract, with its queries, keys and values if `has_numbers`."""
    layers, heads, queries, keys = block.weights_LHQK.shape
    halves = block.weights_LHQK.detach().half().numpy().astype("<f2").tobytes()
    return BlockEntry(
        queries=block.queries,
        keys=block.keys,
        shape=(layers, heads, queries, keys),
        base64_f16=base64.b64encode(halves).decode("ascii"),
        entropy=[[round(value, 4) for value in row] for row in mean_entropy(block.weights_LHQK.numpy()).tolist()],
        has_projections=block.projections is not None,
        numbers=numbers_entry(block.projections) if has_numbers and block.projections is not None else None,
    )
