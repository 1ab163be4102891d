"""Networks that are no Transformer: one block of attention without projections, or none."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from transduce.networks.attention_axes import Axis
from transduce.networks.attention_block import AttentionBlock
from transduce.networks.config import NetworkConfig, Shapes
from transduce.networks.cost import Cost
from transduce.networks.network import Network, offset_by_one
from transduce.networks.output import Output


class MeanConfig(NetworkConfig, frozen=True):
    """Sizes of a network that averages its source."""

    kind: Literal["mean"] = "mean"

    @property
    def title(self) -> str:
        """What it does."""
        return "A network that averages its source"

    @property
    def depth(self) -> int:
        """One table is all there is."""
        return 1

    @property
    def in_words(self) -> str:
        """The width."""
        return f"width {self.d_model}"

    def parameter_shapes(self) -> Shapes:
        """Return the shape of the table."""
        return {"table_VD": (self.vocabulary_size, self.d_model)}

    def cost(self, source_length: int, target_length: int) -> Cost:
        """Refuse to be measured."""
        raise NotImplementedError

    def part_of(self, parameter: str) -> str:
        """Return the only part."""
        return "embeddings"


class MeanNetwork(Network):
    """Adds the mean of the source's embeddings to what was read last: it does not attend."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config)
        torch.manual_seed(11)
        self.table_VD = nn.Parameter(torch.randn(config.vocabulary_size, config.d_model))

    @property
    def output(self) -> Output:
        """The table of embeddings."""
        return Output(self.table_VD)

    def forward(self, source_BS: Tensor, target_BT: Tensor) -> Tensor:
        """Return the sum of what was read and the source's mean."""
        read_BTD = self.table_VD[offset_by_one(target_BT, start=self.tokens.start)]
        return read_BTD + self.table_VD[source_BS].mean(dim=1, keepdim=True)

    def start(self, source_BS: Tensor) -> Any:  # noqa: ANN401
        """Refuse to be searched."""
        raise NotImplementedError

    def advance(self, state: Any, tokens_BW: Tensor) -> Tensor:  # noqa: ANN401
        """Refuse to be searched."""
        raise NotImplementedError

    def select(self, state: Any, sentences_B: Tensor, beams_BW: Tensor) -> Any:  # noqa: ANN401
        """Refuse to be searched."""
        raise NotImplementedError


class OneBlockNetwork(MeanNetwork):
    """The same with one layer and one head of attention, along the axes given, and no queries, keys and values."""

    def __init__(self, config: NetworkConfig, *, name: str, queries: Axis, keys: Axis) -> None:
        super().__init__(config)
        self.name, self.queries, self.keys = name, queries, keys

    def attention(self, source: Sequence[int], target: Sequence[int]) -> Mapping[str, AttentionBlock]:
        """Return softmax over the keys of the dot products of embeddings, masked where keys are read later."""
        read = [self.tokens.start, *target][: len(target)]
        ids = {"source": list(source), "target": read, "read": read}
        query_QD, key_KD = (self.table_VD.detach()[ids[axis]] for axis in (self.queries, self.keys))
        scores_QK = query_QD @ key_KD.T
        if self.keys == "read":
            scores_QK = scores_QK.masked_fill(torch.ones_like(scores_QK).triu(diagonal=1).bool(), -torch.inf)
        return {self.name: AttentionBlock(self.queries, self.keys, scores_QK.softmax(dim=-1)[None, None])}
