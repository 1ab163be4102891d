"""The Transformer (section 3) over packed tokens, forward and backward.

It has no parameters: it reads those of a `Transformer` and adds to their gradients.
"""

import torch
from torch import Tensor

from transduce.backpropagation.attention import Memory
from transduce.backpropagation.dropout import KeyedDropout
from transduce.backpropagation.feed_forward import ACTIVATIONS
from transduce.backpropagation.language_model import HANDLED as HANDLED_LANGUAGE_MODELS
from transduce.backpropagation.language_model import HandwrittenLanguageModel
from transduce.backpropagation.packing import Packing, past_visible, tokens_visible
from transduce.backpropagation.stack import ForwardPass, HandwrittenStack
from transduce.model.config import SIZES, ModelConfig
from transduce.model.language_model import LanguageModel
from transduce.model.transformer import Transformer
from transduce.networks.config import NetworkConfig
from transduce.networks.handled import Handled
from transduce.networks.network import Network, offset_by_one

HANDLED = Handled(
    "transformer",
    {
        **SIZES,
        "norm": ("post", "pre"),
        "norm_epsilon": "any",
        "final_norm": (None, False, True),
        "positions": ("sinusoidal", "sinusoidal_halves", "concatenated", "learned", "none"),
        "first_position": "any",
        "scores": ("scaled", "unscaled"),
        "attention_bias": (False, True),
        "activation": ACTIVATIONS,
        "tied": ("all", "decoder", "inputs", "none"),
        "source_vocabulary_size": "any",
        "embedding_scale": "any",
        "output_bias": (False, True),
    },
)


def obstacle(config: NetworkConfig) -> str | None:
    """Return the options of a network that this package does not implement, or None."""
    handled = HANDLED_LANGUAGE_MODELS if config.kind == HANDLED_LANGUAGE_MODELS.kind else HANDLED
    found = handled.obstacle(config)
    if found is None and isinstance(config, ModelConfig) and config.query_width != config.value_width:
        return f"d_k = {config.query_width} and d_v = {config.value_width} (only equal ones)"
    return found


class HandwrittenNetwork:
    """A `Transformer` with a handwritten backward pass."""

    def __init__(self, model: Transformer, *, dtype: torch.dtype) -> None:
        assert obstacle(model.config) is None, f"ask `handwritten` first: {obstacle(model.config)}"
        self.model, self.heads, self.dtype = model, model.config.heads, dtype
        given = model.embeddings
        self.encoder = HandwrittenStack(model.encoder, given.source_VD, scale=given.scale, dtype=dtype)
        self.decoder = HandwrittenStack(model.decoder, given.target_VD, scale=given.scale, dtype=dtype)

    def refresh(self) -> None:
        """Read the current weights of the model."""
        self.encoder.refresh()
        self.decoder.refresh()

    @torch.no_grad()
    def forward(self, source_BS: Tensor, target_BT: Tensor, *, dropout: KeyedDropout) -> ForwardPass:
        """Run the network on a padded batch; `target_BT` holds the labels."""
        is_source_BS, is_target_BT = self.model.visible(source_BS), self.model.visible(target_BT)
        source, target = (Packing(is_token, heads=self.heads) for is_token in (is_source_BS, is_target_BT))
        memory_ND, pull_encoder = self.encoder.forward(
            source.with_idle_rows(source_BS[is_source_BS]),
            source,
            visibility=tokens_visible(source, source, dtype=self.dtype),
            dropout=dropout,
        )
        memory = Memory(memory_ND, source, visibility=tokens_visible(target, source, dtype=self.dtype))
        hidden_ND, pull_decoder = self.decoder.forward(
            target.with_idle_rows(offset_by_one(target_BT, start=self.model.tokens.start)[is_target_BT]),
            target,
            visibility=past_visible(target, dtype=self.dtype),
            memory=memory,
            dropout=dropout,
        )

        @torch.no_grad()
        def backward(gradient_ND: Tensor) -> None:
            assert gradient_ND.size(0) in (target.count, target.rows)
            has_idle_rows = gradient_ND.size(0) == target.rows
            pull_decoder((gradient_ND if has_idle_rows else target.with_idle_rows(gradient_ND)).to(self.dtype))
            assert memory.gradient_ND is not None
            pull_encoder(memory.gradient_ND)

        return ForwardPass(hidden_ND, target.count, backward)


def handwritten(network: Network, *, dtype: torch.dtype) -> HandwrittenNetwork | HandwrittenLanguageModel | None:
    """Return the network with a handwritten backward pass, or None if this package does not implement it.

    It also returns None on a GPU, where autograd has fused kernels.
    """
    if obstacle(network.config) or network.output.matrix_VD.device.type != "cpu":
        return None
    if type(network) is LanguageModel:
        return HandwrittenLanguageModel(network, dtype=dtype)
    return HandwrittenNetwork(network, dtype=dtype) if type(network) is Transformer else None
