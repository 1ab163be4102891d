"""Residual connection, dropout and layer normalisation (3.1, 5.4) around a sub-layer f, and their gradient.

    post   z = x + Dropout(f(x))        y = LayerNorm(z)         ∂x = ∂z + ∂f        ∂f = f'(Dropout(∂z))
    pre    y = x + Dropout(f(LayerNorm(x)))                      ∂x = ∂y + LayerNorm'(f'(Dropout(∂y)))

LayerNorm and its gradient sum over a token in float32, whatever the precision of x.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from transduce.backpropagation import fused_kernels
from transduce.backpropagation.dropout import DropoutDraw, KeyedDropout
from transduce.backpropagation.linear import add_gradient
from transduce.backpropagation.pullback import Pullback
from transduce.model.layers import Residual

Sublayer = Callable[[Tensor], tuple[Tensor, Pullback]]


class HandwrittenNorm:
    """Layer normalisation over the model's width."""

    def __init__(self, module: nn.LayerNorm) -> None:
        self.module = module

    def forward(self, x_ND: Tensor) -> tuple[Tensor, Pullback]:
        """Return LayerNorm(x) and its pullback."""
        gain_D, bias_D, shape = self.module.weight, self.module.bias, list(self.module.normalized_shape)
        y_ND, mean_N, inverse_N = torch.native_layer_norm(x_ND, shape, gain_D, bias_D, self.module.eps)

        def pull(gradient_ND: Tensor) -> Tensor:
            x_gradient_ND, gain_gradient_D, bias_gradient_D = torch.ops.aten.native_layer_norm_backward(
                gradient_ND, x_ND, shape, mean_N, inverse_N, gain_D, bias_D, [True, True, True]
            )
            add_gradient(gain_D, gain_gradient_D)
            add_gradient(bias_D, bias_gradient_D)
            result_ND: Tensor = x_gradient_ND
            return result_ND

        return y_ND, pull


class HandwrittenResidual:
    """The residual connection and norm of section 3.1 around a sub-layer."""

    def __init__(self, module: Residual) -> None:
        assert isinstance(module.norm, nn.LayerNorm), "the allow-list holds layer normalisation only"
        self.is_pre_norm, self.norm, self.dropout = module.is_pre_norm, HandwrittenNorm(module.norm), module.dropout.p

    def forward(self, x_ND: Tensor, sublayer: Sublayer, *, dropout: KeyedDropout) -> tuple[Tensor, Pullback]:
        """Return the output, shape (N, D), and its pullback."""
        return (self._pre if self.is_pre_norm else self._post)(x_ND, sublayer, dropout)

    def _post(self, x_ND: Tensor, sublayer: Sublayer, dropout: KeyedDropout) -> tuple[Tensor, Pullback]:
        branch_ND, pull_branch = sublayer(x_ND)
        if fused_kernels.has_kernels(x_ND.dtype) and self.norm.module.weight.dtype == torch.float32:
            draw = dropout.draw(branch_ND, probability=self.dropout)
            if draw is not None:
                return self._post_in_one_pass(x_ND, branch_ND, pull_branch, draw)
        kept = dropout.keep(branch_ND, probability=self.dropout)
        y_ND, pull_norm = self.norm.forward(x_ND + branch_ND if kept is None else kept.added_to(x_ND, branch_ND))

        def pull(gradient_ND: Tensor) -> Tensor:
            sum_gradient_ND = pull_norm(gradient_ND)
            branch_gradient_ND = sum_gradient_ND if kept is None else kept.times(sum_gradient_ND)
            return pull_branch(branch_gradient_ND).add_(sum_gradient_ND)

        return y_ND, pull

    def _post_in_one_pass(
        self, x_ND: Tensor, branch_ND: Tensor, pull_branch: Pullback, draw: DropoutDraw
    ) -> tuple[Tensor, Pullback]:
        gain_D, bias_D = self.norm.module.weight, self.norm.module.bias
        normed_sum = fused_kernels.NormedSum(gain_D, bias_D, epsilon=self.norm.module.eps)
        threshold, scale = draw.threshold, draw.scale
        y_ND, saved = normed_sum.forward(x_ND, branch_ND, draw)

        def pull(gradient_ND: Tensor) -> Tensor:
            to_sum_ND, to_branch_ND, to_norm_2D = normed_sum.backward(
                gradient_ND, saved, threshold=threshold, scale=scale
            )
            add_gradient(gain_D, to_norm_2D[0])
            add_gradient(bias_D, to_norm_2D[1])
            return pull_branch(to_branch_ND).add_(to_sum_ND)

        return y_ND, pull

    def _pre(self, x_ND: Tensor, sublayer: Sublayer, dropout: KeyedDropout) -> tuple[Tensor, Pullback]:
        normal_ND, pull_norm = self.norm.forward(x_ND)
        branch_ND, pull_branch = sublayer(normal_ND)
        kept = dropout.keep(branch_ND, probability=self.dropout)
        y_ND = x_ND + branch_ND if kept is None else kept.added_to(x_ND, branch_ND)

        def pull(gradient_ND: Tensor) -> Tensor:
            branch_gradient_ND = gradient_ND if kept is None else kept.times(gradient_ND)
            return pull_norm(pull_branch(branch_gradient_ND)).add_(gradient_ND)

        return y_ND, pull
