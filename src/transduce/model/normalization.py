"""Layer normalisation of section 3.1, and batch normalisation in its place (Ioffe and Szegedy 2015; not in the paper).

    LayerNorm(x) = g ⊙ (x - μ) / √(σ² + ε) + b        μ and σ² of one position, over its numbers
    BatchNorm(x) = g ⊙ (x - μ) / √(σ² + ε) + b        μ and σ² of each number, over all positions of a batch

A departure by name (`ModelConfig.normalization`), to measure what layer normalisation adds. Padding does not count. In
training, μ and σ² are those of the batch, and running means of them are kept for translation. The running means are
parameters without a gradient, so that checkpoints, averages and model directories hold them like weights.
"""

import torch
from torch import Tensor, nn

from transduce.model.config import ModelConfig

SHARE_OF_NEWEST = 0.1


class MaskedBatchNorm(nn.Module):
    """Batch normalisation over the positions that hold a token."""

    def __init__(self, width: int, *, epsilon: float) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))
        self.mean_D = nn.Parameter(torch.zeros(width), requires_grad=False)
        self.variance_D = nn.Parameter(torch.ones(width), requires_grad=False)

    def forward(self, x_BTD: Tensor, present_BT: Tensor | None = None) -> Tensor:
        """Return the normalised vectors, shape (B, T, D)."""
        exact_BTD = x_BTD if x_BTD.dtype == torch.float64 else x_BTD.float()
        mean_D, variance_D = self.mean_D, self.variance_D
        if self.training:
            rows_ND = exact_BTD.flatten(end_dim=-2) if present_BT is None else exact_BTD[present_BT]
            mean_D, variance_D = rows_ND.mean(dim=0), rows_ND.var(dim=0, correction=0)  # type: ignore[assignment]
            self.mean_D.data.lerp_(mean_D.detach(), SHARE_OF_NEWEST)
            self.variance_D.data.lerp_(variance_D.detach(), SHARE_OF_NEWEST)
        normal_BTD = (exact_BTD - mean_D) * (variance_D + self.epsilon).rsqrt()
        return (normal_BTD * self.weight + self.bias).to(x_BTD.dtype)


def layer_norm(config: ModelConfig) -> nn.LayerNorm:
    """Return layer normalisation over the model's width, with gain and bias."""
    return nn.LayerNorm(config.d_model, eps=config.norm_epsilon)


def normalization(config: ModelConfig) -> nn.Module:
    """Return the configured normalisation over the model's width."""
    if {"layer": False, "batch": True}[config.normalization]:
        return MaskedBatchNorm(config.d_model, epsilon=config.norm_epsilon)
    return layer_norm(config)


def normalize(norm: nn.Module, x_BTD: Tensor, present_BT: Tensor | None) -> Tensor:
    """Apply a normalisation or the identity; only batch normalisation uses `present_BT`."""
    normal_BTD: Tensor = norm(x_BTD, present_BT) if isinstance(norm, MaskedBatchNorm) else norm(x_BTD)
    return normal_BTD
