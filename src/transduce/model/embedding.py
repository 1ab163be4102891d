"""Embeddings and the pre-softmax matrix, section 3.4 of "Attention Is All You Need".

One V x d_model matrix serves as source embedding, target embedding and, transposed, as the linear map before
the softmax. "In the embedding layers, we multiply those weights by √d_model."

The matrix is drawn with standard deviation d_model^-0.5, which suits its use before the softmax; the factor √d_model
brings the embeddings to the scale of the positional encodings.

Departures by name: two or three separate matrices (`ModelConfig.tied`), of which the source's may have a vocabulary of
its own (`source_vocabulary_size`); another factor (`embedding_scale`); zeros in place of the start token's embedding
(`start_from_zeros`); a bias on the logits (`output_bias`).
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from transduce.model.config import ModelConfig
from transduce.model.parameters import TIES
from transduce.networks.initialization import normal_rows
from transduce.special_tokens import OWN_SPECIAL_TOKENS, SpecialTokens


class Embeddings(nn.Module):
    """The source, target and output matrices, which are one matrix in the paper."""

    def __init__(self, config: ModelConfig, tokens: SpecialTokens = OWN_SPECIAL_TOKENS) -> None:
        super().__init__()
        self.scale, self.start_as_zeros = config.embedding_factor, tokens.start if config.start_from_zeros else None
        shape = (config.vocabulary_size, config.d_model)
        inputs_are_one, decoder_is_one = TIES[config.tied]
        self.source_VD = normal_rows(config.source_vocabulary_size or config.vocabulary_size, config.d_model)
        self.target_VD = self.source_VD if inputs_are_one else normal_rows(*shape)
        self.output_VD = self.target_VD if decoder_is_one else normal_rows(*shape)
        self.output_bias_V = nn.Parameter(torch.zeros(config.vocabulary_size)) if config.output_bias else None

    def embed_source(self, tokens_BS: Tensor) -> Tensor:
        """Return the scaled embeddings of source tokens, shape (B, S, D)."""
        return functional.embedding(tokens_BS, self.source_VD) * self.scale

    def embed_target(self, tokens_BT: Tensor) -> Tensor:
        """Return the scaled embeddings of target tokens, shape (B, T, D)."""
        embedded_BTD = functional.embedding(tokens_BT, self.target_VD) * self.scale
        if self.start_as_zeros is None:
            return embedded_BTD
        return embedded_BTD.masked_fill((tokens_BT == self.start_as_zeros)[..., None], 0.0)
