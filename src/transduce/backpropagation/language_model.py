"""A language model over packed tokens, forward and backward: the encoder's stack, where no position sees a later one.

A prompt of one token, which every block of a training text has, gives as many positions as labels. A longer prompt adds
positions that predict nothing.
"""

import torch
from torch import Tensor

from transduce.backpropagation.dropout import KeyedDropout
from transduce.backpropagation.feed_forward import ACTIVATIONS
from transduce.backpropagation.packing import Packing, past_visible
from transduce.backpropagation.stack import ForwardPass, HandwrittenStack
from transduce.model.config import SIZES
from transduce.model.language_model import LanguageModel
from transduce.model.masks import visible_tokens
from transduce.networks.handled import Handled

HANDLED = Handled(
    "language-model",
    {
        **SIZES,
        "norm": ("post", "pre"),
        "norm_epsilon": "any",
        "positions": ("sinusoidal", "learned", "none"),
        "attention_bias": (False, True),
        "activation": ACTIVATIONS,
        "tied": (False, True),
        "embedding_scale": "any",
        "output_bias": (False, True),
    },
)


class HandwrittenLanguageModel:
    """A `LanguageModel` with a handwritten backward pass."""

    def __init__(self, model: LanguageModel, *, dtype: torch.dtype) -> None:
        self.model, self.heads, self.dtype = model, model.config.heads, dtype
        given = model.embeddings
        self.decoder = HandwrittenStack(model.decoder, given.target_VD, scale=given.scale, dtype=dtype)

    def refresh(self) -> None:
        """Read the current weights of the model."""
        self.decoder.refresh()

    @torch.no_grad()
    def forward(self, source_BS: Tensor, target_BT: Tensor, *, dropout: KeyedDropout) -> ForwardPass:
        """Run the network on a padded batch of prompts and labels."""
        is_source_BS, is_target_BT = (
            visible_tokens(each, padding=self.model.tokens.padding) for each in (source_BS, target_BT)
        )
        read_BN, is_read_BN = (
            torch.cat([source_BS, target_BT[:, :-1]], 1),
            torch.cat([is_source_BS, is_target_BT[:, 1:]], 1),
        )
        if source_BS.size(1) > 1:  # move the padding between a prompt and its text to the end
            order_BN = (~is_read_BN).long().argsort(dim=1, stable=True)
            read_BN, is_read_BN = read_BN.gather(1, order_BN), is_read_BN.gather(1, order_BN)
        side = Packing(is_read_BN, heads=self.heads)
        hidden_ND, pull = self.decoder.forward(
            side.with_idle_rows(read_BN[is_read_BN]),
            side,
            visibility=past_visible(side, dtype=self.dtype),
            dropout=dropout,
        )
        count, rows_M = int(is_target_BT.sum()), None
        if count < side.count:
            position_BN = torch.arange(read_BN.size(1))
            rows_M = (position_BN >= is_source_BS.sum(1, keepdim=True) - 1)[is_read_BN].nonzero()[:, 0]

        @torch.no_grad()
        def backward(gradient_ND: Tensor) -> None:
            whole_ND = gradient_ND.new_zeros(hidden_ND.shape)
            rows = slice(count) if rows_M is None else rows_M
            whole_ND[rows] = gradient_ND[:count]
            pull(whole_ND.to(self.dtype))

        return ForwardPass(hidden_ND if rows_M is None else hidden_ND[rows_M], count, backward)
