"""A text encoder: the encoder of "Attention Is All You Need" without a decoder, as in BERT (Devlin et al. 2019).

    x = LayerNorm(E_word + E_position + E_type)         z = Encoder(x)
    p(token | text with a mask) = softmax(LayerNorm(act(z W + b)) Eᵀ + c)

A text is [CLS] A [SEP], or [CLS] A [SEP] B [SEP] with another token type for B. Each position sees all others. It is no
`Network`, since it predicts no target from the left to the right.

Departures by name, all in `TextEncoderConfig`: what BERT changed. Not here: BERT's guess whether B follows A.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from transduce.model.embedding import Embeddings
from transduce.model.feed_forward import ACTIVATIONS
from transduce.model.masks import as_keys, visible_tokens
from transduce.model.normalization import layer_norm
from transduce.model.text_encoder_config import TextEncoderConfig
from transduce.model.transformer import Encoder
from transduce.networks.attention_block import AttentionBlock
from transduce.networks.attention_sublayer import record_attention
from transduce.networks.initialization import glorot_linear, normal_rows
from transduce.networks.output import Output
from transduce.special_tokens import OWN_SPECIAL_TOKENS, SpecialTokens


class MaskedHead(nn.Module):
    """The layer between the encoder and the pre-softmax matrix."""

    def __init__(self, config: TextEncoderConfig) -> None:
        super().__init__()
        self.W = glorot_linear(config.d_model, config.d_model)
        self.activation = ACTIVATIONS[config.activation]
        self.norm = layer_norm(config.of_layers)

    def forward(self, hidden_BSD: Tensor) -> Tensor:
        """Return the vectors before the pre-softmax matrix, shape (B, S, D)."""
        vectors_BSD: Tensor = self.norm(self.activation(self.W(hidden_BSD)))
        return vectors_BSD


class TextEncoder(nn.Module):
    """The encoder alone: token ids in, a vector for each token out."""

    def __init__(self, config: TextEncoderConfig, tokens: SpecialTokens = OWN_SPECIAL_TOKENS) -> None:
        super().__init__()
        self.config, self.tokens = config, tokens
        self.embeddings = Embeddings(config.of_layers, tokens)
        self.types_AD = normal_rows(config.token_types, config.d_model)  # A counts token types
        self.encoder = Encoder(config.of_layers)
        self.masked_head = MaskedHead(config) if config.masked_head else None

    def forward(self, tokens_BS: Tensor, types_BS: Tensor) -> Tensor:
        """Return the hidden vectors of padded texts, shape (B, S, D)."""
        embedded_BSD = self.embeddings.embed_source(tokens_BS) + self.types_AD[types_BS]
        present_BS = visible_tokens(tokens_BS, padding=self.tokens.padding)
        hidden_BSD: Tensor = self.encoder(embedded_BSD, visible_BHSS=as_keys(present_BS), present_BS=present_BS)
        return hidden_BSD

    def logits(self, hidden: Tensor) -> Tensor:
        """Return the logits of the token at each hidden vector, shape (…, V)."""
        assert self.masked_head is not None, "the caller asks `config.masked_head`"
        return Output(self.embeddings.output_VD, self.embeddings.output_bias_V).logits(self.masked_head(hidden))

    def types_of(self, ids: Sequence[int]) -> list[int]:
        """Return the token type of each token: 0 as far as the first end token, then 1 if there are two types."""
        first = ids.index(self.tokens.end) + 1 if self.tokens.end in ids else len(ids)
        return [int(place >= first and self.config.token_types > 1) for place in range(len(ids))]

    @torch.no_grad()
    def attention(self, source: Sequence[int], target: Sequence[int] = ()) -> Mapping[str, AttentionBlock]:
        """Return the attention of a text, as `Network.attention` does; there is no target."""
        assert not target, "a text encoder has no target"
        return record_attention(self, source, self.types_of(source))
