"""Where a batch stands in the int8 network: its rows, their past, and what was made for its shortlists."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from transduce.engine.backend import AnyProduct
from transduce.engine.calls import Program
from transduce.model.config import ModelConfig


@dataclass
class Rows:
    """R rows of tokens and their positions, and room for what is computed of them: x, the next product's inputs."""

    tokens: Tensor
    positions: Tensor
    x: Tensor
    model: Tensor  # R x D
    heads: Tensor  # R x A
    inner: Tensor  # R x F
    scale: Tensor

    @classmethod
    def make(cls, rows: int, config: ModelConfig) -> "Rows":
        """Return room for so many."""
        widths = (config.d_model, config.heads * config.query_width, config.d_ff)
        model, heads, inner = (torch.empty(rows, width, dtype=torch.uint8) for width in widths)
        tokens, positions = torch.empty(2, rows, dtype=torch.int64)
        return cls(tokens, positions, torch.empty(rows, config.d_model), model, heads, inner, torch.empty(rows))


@dataclass
class Int8State:
    """B sentences with W beams each: where the past of each of the R rows lies, and its source."""

    cross: list[tuple[Tensor, Tensor]]
    starts_B: Tensor
    lengths_B: Tensor
    beams: int = 1
    length: int = 0
    past: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    used: int = 0
    slots_RK: Tensor = field(default_factory=lambda: torch.zeros(0, 0, dtype=torch.int64))
    rows: Rows | None = None
    starts_R: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.int64))
    lengths_R: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.int64))
    places: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.int64))
    where: Tensor = field(default_factory=lambda: torch.zeros(2, dtype=torch.int64))  # used, length
    logits_RV: Tensor = field(default_factory=lambda: torch.zeros(0, 0))
    program: Program | None = None
    outputs: list[AnyProduct] | None = None  # each sentence's own, of its shortlist
    is_padding_BL: Tensor = field(default_factory=lambda: torch.zeros(0, 0, dtype=torch.bool))
