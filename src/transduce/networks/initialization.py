"""Initial weights of every network. The paper does not give them; these are those of the authors' code.

Matrices are Glorot-uniform, between ±√(6 / (inputs + outputs)); biases are zero; embeddings and learned positions are
normal with standard deviation d_model^-0.5. Layer normalisation starts with gain 1 and bias 0.

Departure: the matrices of queries, keys and values are drawn separately; the authors' first code fused them.
"""

import torch
from torch import nn


def glorot_linear(inputs: int, outputs: int, *, bias: bool = True) -> nn.Linear:
    """Return a linear map with Glorot-uniform weights and, if it has one, a zero bias."""
    linear = nn.Linear(inputs, outputs, bias=bias)
    nn.init.xavier_uniform_(linear.weight)
    if bias:
        nn.init.zeros_(linear.bias)
    return linear


def normal_rows(rows: int, d_model: int) -> nn.Parameter:
    """Return a table of vectors, one row each, drawn from N(0, 1 / d_model)."""
    table = torch.empty(rows, d_model)
    if not table.is_meta:  # on the meta device there is nothing to fill, and torch would load its compiler
        nn.init.normal_(table, std=d_model**-0.5)
    return nn.Parameter(table)
