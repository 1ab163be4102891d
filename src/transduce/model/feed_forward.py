"""Position-wise feed-forward network, section 3.3 of "Attention Is All You Need".

    FFN(x) = max(0, x W_1 + b_1) W_2 + b_2                                       (equation 2)

The same two matrices serve every position; each layer has its own.

Departures by name (`ModelConfig.activation`, `feed_forward_dropout`): other activations, and dropout after them.
"""

from collections.abc import Callable, Mapping
from functools import partial

from torch import Tensor, nn
from torch.nn import functional

from transduce.model.config import ModelConfig
from transduce.networks.initialization import glorot_linear

ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "gelu_tanh": partial(functional.gelu, approximate="tanh"),
    "gelu_sigmoid": lambda x: x * (1.702 * x).sigmoid(),
    "silu": functional.silu,
}


class FeedForward(nn.Module):
    """Two linear maps with an activation between them, applied to each position by itself."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.W_1 = glorot_linear(config.d_model, config.d_ff)
        self.W_2 = glorot_linear(config.d_ff, config.d_model)
        self.activation_name = config.activation
        self.activation = ACTIVATIONS[config.activation]
        self.dropout = nn.Dropout(config.feed_forward_dropout)

    def forward(self, inputs_BTD: Tensor) -> Tensor:
        """Return FFN(x) at every position, shape (B, T, D)."""
        hidden_BTF = self.activation(self.W_1(inputs_BTD))
        outputs_BTD: Tensor = self.W_2(self.dropout(hidden_BTF))
        return outputs_BTD
