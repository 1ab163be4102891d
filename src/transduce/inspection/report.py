"""The attention report: tokens, weights of every layer and head, candidates; as JSON and as a page.

Weights are rounded to 1/255 and written as base64 of unsigned bytes in the order layer, head, query, key. In the
decoder, the query of row t is the position that predicts target token t: it has read the start token and the tokens
before t, so the keys of its self-attention are named by what was read, and the first is the start token.
"""

import base64
import json
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from transduce.inspection.recording import record
from transduce.model.transformer import Transformer
from transduce.text.tokenizer import EOS, Tokenizer

FORMAT_VERSION = 1
CANDIDATES = 5


@dataclass(frozen=True)
class Token:
    """A token of the source or of the translation; `log_probability` is the model's, for target tokens."""

    id: int
    text: str
    log_probability: float | None = None


@dataclass(frozen=True)
class AttentionReport:
    """What every head did for one pair."""

    source_text: str
    target_text: str
    source: tuple[Token, ...]
    target: tuple[Token, ...]
    encoder_LHSS: Tensor
    decoder_LHTT: Tensor
    cross_LHTS: Tensor
    candidates: tuple[tuple[tuple[str, float], ...], ...]
    """For each target position the most probable tokens with their probabilities."""

    def to_dictionary(self) -> dict[str, Any]:
        """Return the report as plain values for JSON."""
        return {
            "format": "transduce-attention",
            "format_version": FORMAT_VERSION,
            "source": {"text": self.source_text, "tokens": [asdict(token) for token in self.source]},
            "target": {"text": self.target_text, "tokens": [asdict(token) for token in self.target]},
            "candidates": [[{"text": t, "probability": p} for t, p in step] for step in self.candidates],
            "weights": {
                "encoder": _encoded(self.encoder_LHSS),
                "decoder": _encoded(self.decoder_LHTT),
                "cross": _encoded(self.cross_LHTS),
            },
        }

    def to_json(self) -> str:
        """Return the report as JSON."""
        return json.dumps(self.to_dictionary(), ensure_ascii=False)

    def to_html(self) -> str:
        """Return one self-contained page that shows the report."""
        from transduce.inspection.page import attention_page

        return attention_page(self.to_dictionary())

    def _repr_html_(self) -> str:
        """Show the page in a notebook, in a frame of its own."""
        import html

        return f'<iframe srcdoc="{html.escape(self.to_html())}" style="width:100%;height:760px;border:0"></iframe>'


def inspect(
    model: Transformer, tokenizer: Tokenizer, source: list[int], target: list[int], *, texts: tuple[str, str]
) -> AttentionReport:
    """Return what every head did when the model reads `source` and predicts `target`; both end in EOS."""
    recording = record(model, source, target)
    log_TV = recording.log_probabilities_TV
    chosen_T = log_TV.gather(-1, torch.tensor(target)[:, None])[:, 0].tolist()
    best = log_TV.exp().topk(min(CANDIDATES, log_TV.size(-1)), dim=-1)
    candidates = tuple(
        tuple((_name(tokenizer, token), probability) for token, probability in zip(tokens, probabilities, strict=True))
        for tokens, probabilities in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    )
    return AttentionReport(
        source_text=texts[0],
        target_text=texts[1],
        source=tuple(Token(token, _name(tokenizer, token)) for token in source),
        target=tuple(Token(t, _name(tokenizer, t), log) for t, log in zip(target, chosen_T, strict=True)),
        encoder_LHSS=recording.encoder_LHSS,
        decoder_LHTT=recording.decoder_LHTT,
        cross_LHTS=recording.cross_LHTS,
        candidates=candidates,
    )


def _name(tokenizer: Tokenizer, token: int) -> str:
    return "<EOS>" if token == EOS else tokenizer.piece(token)


def _encoded(weights_LHQK: Tensor) -> dict[str, Any]:
    rounded = (weights_LHQK * 255.0).round().to(torch.uint8)
    return {
        "shape": list(weights_LHQK.shape),
        "order": ["layer", "head", "query", "key"],
        "base64_u8": base64.b64encode(rounded.numpy().tobytes()).decode("ascii"),
    }
