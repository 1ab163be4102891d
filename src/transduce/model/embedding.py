"""Embeddings and the pre-softmax matrix, section 3.4 of "Attention Is All You Need".

One V x d_model matrix serves as source embedding, target embedding and, transposed, as the linear map before
the softmax. "In the embedding layers, we multiply those weights by √d_model."

The matrix is drawn with standard deviation d_model^-0.5, as its use before the softmax wants; the factor brings
the inputs back to unit scale beside the positions.

Departure by name (`ModelConfig.tied`): two or three separate matrices.
"""

import math

from torch import Tensor, nn
from torch.nn import functional

from transduce.model.config import ModelConfig
from transduce.model.initialization import normal_rows

# Whether source and target share a matrix, and whether target and output do.
_TIES = {"all": (True, True), "decoder": (False, True), "inputs": (True, False), "none": (False, False)}


class Embeddings(nn.Module):
    """The source, target and output matrices, of which the paper makes one."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.scale = math.sqrt(config.d_model)
        shape = (config.vocabulary_size, config.d_model)
        inputs_are_one, decoder_is_one = _TIES[config.tied]
        self.source_VD = normal_rows(*shape)
        self.target_VD = self.source_VD if inputs_are_one else normal_rows(*shape)
        self.output_VD = self.target_VD if decoder_is_one else normal_rows(*shape)

    def embed_source(self, tokens_BS: Tensor) -> Tensor:
        """Return the scaled embeddings of source tokens, shape (B, S, D)."""
        return functional.embedding(tokens_BS, self.source_VD) * self.scale

    def embed_target(self, tokens_BT: Tensor) -> Tensor:
        """Return the scaled embeddings of target tokens, shape (B, T, D)."""
        return functional.embedding(tokens_BT, self.target_VD) * self.scale
