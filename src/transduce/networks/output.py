"""The output layer: hidden vectors to logits, section 3.4 of "Attention Is All You Need".

    logits = h Eᵀ (+ b)

The paper has no bias; other systems' models have one.
"""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Output:
    """The matrix and, where a network has one, the bias that turn hidden vectors into logits."""

    matrix_VD: Tensor
    bias_V: Tensor | None = None

    def logits(self, hidden: Tensor) -> Tensor:
        """Return the logits of hidden vectors, shape (…, V), in the hidden vectors' own precision."""
        products = hidden @ self.matrix_VD.to(hidden.dtype).T
        return products if self.bias_V is None else products + self.bias_V.to(hidden.dtype)
