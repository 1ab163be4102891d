"""The Muon optimizer (Jordan et al. 2024; not in the paper): steps of equal length in every direction of a matrix.

Departure by name (`TrainingConfig.optimizer`). Adam scales each number of a matrix by its own history, and most of the
resulting step of the matrix lies in a few directions. Muon takes the mean M of a matrix's gradients and makes its
singular values equal:

    M = U Σ Vᵀ   →   step = -rate · 0.2 · √(the longer side) · U Vᵀ

The factor gives the step the length of Adam's (Liu et al. 2025), so that both share one learning rate. Adam still
trains embeddings, biases and norms.

Five Newton-Schulz iterations, which are matrix products alone, approximate U Vᵀ with singular values between 0.7 and
1.2, close enough. They run in the precision of the network's products: bf16 takes a third of the time, and its rounding
is small compared with that spread. With several ranks, each computes some of the matrices and sends them to the others,
so that the ranks cannot round differently.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from transduce.networks.network import MatrixView
from transduce.training.config import TrainingConfig
from transduce.training.distributed import World
from transduce.training.flat_parameters import FlatParameters
from transduce.training.optimization import Adam

MOMENTUM = 0.95
_LENGTH = 0.2
_ROUNDS = 5
_POLYNOMIAL = (3.4445, -4.7750, 2.0315)  # Jordan's: as steep as possible at 0, and close to 1 after five iterations
_SMALLEST_NORM = 1e-7


class Muon(Adam):
    """Muon for some parameters, viewed as matrices, and Adam for all others."""

    def __init__(
        self,
        parameters: FlatParameters,
        config: TrainingConfig,
        *,
        matrices: Sequence[MatrixView],
        product_dtype: torch.dtype | None = None,
        world: World | None = None,
    ) -> None:
        """Compute products in `product_dtype` (the parameters' dtype unless given), shared among the ranks."""
        others = {name for name, _ in parameters.named_parts(parameters.values)} - {matrix.name for matrix in matrices}
        super().__init__(parameters, config, only=others)
        self._product_dtype, self._world = product_dtype or parameters.values.dtype, world or World()
        values, gradients, means = (
            dict(parameters.named_parts(vector)) for vector in (parameters.values, parameters.gradients, self.mean)
        )
        self._of_shape: dict[torch.Size, list[tuple[Tensor, Tensor, Tensor]]] = {}
        for matrix in matrices:
            vectors = (part[matrix.name].view(matrix.shape) for part in (values, gradients, means))
            for value, gradient, mean in zip(*vectors, strict=True):
                self._of_shape.setdefault(value.shape, []).append((value, gradient, mean))

    def step(self, *, rate: float) -> None:
        """Apply the gradients at this learning rate."""
        super().step(rate=rate)
        for shape, matrices in self._of_shape.items():  # a batch per shape: the matrices are many and small
            gradients = torch.stack([gradient for _, gradient, _ in matrices])
            means = torch.stack([mean for _, _, mean in matrices]).lerp_(gradients, 1.0 - MOMENTUM)
            directions = self._directions(gradients.lerp_(means, MOMENTUM))
            for (value, _, mean), new_mean, direction in zip(matrices, means, directions, strict=True):
                mean.copy_(new_mean)
                value.sub_(direction, alpha=rate * _LENGTH * max(shape) ** 0.5)

    def _directions(self, matrices: Tensor) -> Tensor:
        """Return approximately U Vᵀ of each matrix, bit for bit the same on every rank."""
        if self._world.size == 1:
            return orthogonal(matrices, product_dtype=self._product_dtype)
        own = slice(self._world.rank, None, self._world.size)
        directions = torch.zeros_like(matrices)
        directions[own] = orthogonal(matrices[own], product_dtype=self._product_dtype)
        return self._world.sum_(directions)


def orthogonal(matrices: Tensor, *, product_dtype: torch.dtype | None = None) -> Tensor:
    """Return approximately U Vᵀ for each matrix U Σ Vᵀ along the first axis; a zero matrix stays zero."""
    is_tall = matrices.size(-2) > matrices.size(-1)
    x: Tensor = matrices.mT if is_tall else matrices
    x = (x / x.norm(dim=(-2, -1), keepdim=True).clamp(min=_SMALLEST_NORM)).to(product_dtype or matrices.dtype)
    a, b, c = _POLYNOMIAL
    for _ in range(_ROUNDS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return (x.mT if is_tall else x).to(matrices.dtype)
