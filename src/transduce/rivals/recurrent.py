"""Recurrent units, a stack of them, and additive attention: what the recurrent networks share.

    gated unit    z, r = σ(W_zr x + U_zr h⁻ + b),  h̃ = tanh(W x + U (r ⊙ h⁻) + b),  h = (1 - z) ⊙ h⁻ + z ⊙ h̃
    LSTM          i, f, o = σ(W x + U h⁻ + b),  g = tanh(W_g x + U_g h⁻ + b_g),  c = f ⊙ c⁻ + i ⊙ g,  h = o ⊙ tanh(c)
    alignment     e_tj = v · tanh(W_a s_t + U_a h_j),  a_t = softmax_j(e_tj),  c_t = Σ_j a_tj h_j

W x + b of all positions is one product, made before the loop over positions. Weights are Glorot-uniform, recurrent
matrices orthogonal, the LSTM's forget bias 1. Departure: the LSTM has no peepholes.

Shapes: D is the width of a state, Z that of all that a unit keeps (D, or 2 D for h and c of an LSTM), G that of its
gates, E that of its input, A that of the alignment, N that of an annotation.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from transduce.networks.attention_block import Projections
from transduce.networks.initialization import glorot_linear
from transduce.rivals.matrices import StackedLinear


class GatedUnit(nn.Module):
    """A gated recurrent unit with the reset gate before the recurrent matrix, unlike torch's."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.width = self.state_width = width
        self.input = StackedLinear(inputs, width, blocks=3)
        self.gates = StackedLinear(width, width, blocks=2, bias=False, draw="orthogonal")
        self.candidate = StackedLinear(width, width, blocks=1, bias=False, draw="orthogonal")

    def forward(self, projected_BWG: Tensor, state_BWD: Tensor) -> Tensor:
        """Return the next state from the projected input, W x + b, and the state before it."""
        of_gates, of_candidate = projected_BWG.split([2 * self.width, self.width], dim=-1)
        update_BWD, reset_BWD = (of_gates + self.gates(state_BWD)).sigmoid().chunk(2, dim=-1)
        candidate_BWD = (of_candidate + self.candidate(reset_BWD * state_BWD)).tanh()
        next_BWD: Tensor = state_BWD + update_BWD * (candidate_BWD - state_BWD)
        return next_BWD


class LstmUnit(nn.Module):
    """Long short-term memory; its state is h and c side by side."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.width, self.state_width = width, 2 * width
        self.input = StackedLinear(inputs, width, blocks=4)  # i, f, o, g
        self.gates = StackedLinear(width, width, blocks=4, bias=False, draw="orthogonal")
        with torch.no_grad():
            self.input.bias[width : 2 * width].fill_(1.0)

    def forward(self, projected_BWG: Tensor, state_BWZ: Tensor) -> Tensor:
        """Return the next state from the projected input, W x + b, and the state before it."""
        hidden_BWD, cell_BWD = state_BWZ.split(self.width, dim=-1)
        sums_BWG = projected_BWG + self.gates(hidden_BWD)
        of_gates, of_candidate = sums_BWG.split([3 * self.width, self.width], dim=-1)
        input_BWD, forget_BWD, output_BWD = of_gates.sigmoid().chunk(3, dim=-1)
        cell_BWD = forget_BWD * cell_BWD + input_BWD * of_candidate.tanh()
        return torch.cat([output_BWD * cell_BWD.tanh(), cell_BWD], dim=-1)


def empty_state(unit: GatedUnit | LstmUnit, like_BTE: Tensor) -> Tensor:
    """Return the unit's state of zeros for each sentence of a batch, shape (B, 1, Z)."""
    return like_BTE.new_zeros(like_BTE.size(0), 1, unit.state_width)


def unrolled(
    unit: GatedUnit | LstmUnit, inputs_BTE: Tensor, state_B1Z: Tensor, visible_BT: Tensor | None = None
) -> Tensor:
    """Return the unit's state after each input, shape (B, T, Z); padding leaves the state as it is."""
    projections = unit.input(inputs_BTE).split(1, dim=1)
    if visible_BT is None:
        states = []
        for projected_B1G in projections:
            state_B1Z = unit(projected_B1G, state_B1Z)
            states.append(state_B1Z)
        return torch.cat(states, dim=1)
    states = []
    for projected_B1G, visible_B1 in zip(projections, visible_BT.split(1, dim=1), strict=True):
        state_B1Z = torch.where(visible_B1[..., None], unit(projected_B1G, state_B1Z), state_B1Z)
        states.append(state_B1Z)
    return torch.cat(states, dim=1)


class LstmStack(nn.Module):
    """Layers of LSTMs, each reading the one below, with dropout after each layer."""

    def __init__(self, inputs: int, width: int, *, layers: int, dropout: float) -> None:
        super().__init__()
        self.width = width
        self.units = nn.ModuleList(LstmUnit(inputs if layer == 0 else width, width) for layer in range(layers))
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, inputs_BTE: Tensor, states: Sequence[Tensor] | None = None, visible_BT: Tensor | None = None
    ) -> tuple[Tensor, list[Tensor]]:
        """Return the top layer's outputs, shape (B, T, D), and the last state of each layer, shape (B, 1, Z)."""
        x_BTE, lasts = inputs_BTE, []
        for layer, unit in enumerate(self.units):
            assert isinstance(unit, LstmUnit)
            first_B1Z = empty_state(unit, inputs_BTE) if states is None else states[layer]
            states_BTZ = unrolled(unit, x_BTE, first_B1Z, visible_BT)
            x_BTE = self.dropout(states_BTZ[..., : self.width])
            lasts.append(states_BTZ[:, -1:])
        return x_BTE, lasts

    def step(self, inputs_BWE: Tensor, states: list[Tensor], *, extra_BWG: Tensor | float = 0.0) -> Tensor:
        """Return the top layer's output for one more input of each beam, shape (B, W, D), and replace the states.

        `extra_BWG` is added to the bottom layer's projected input.
        """
        x_BWE = inputs_BWE
        for layer, unit in enumerate(self.units):
            projected_BWG = unit.input(x_BWE)  # type: ignore[operator]
            states[layer] = unit(projected_BWG + extra_BWG if layer == 0 else projected_BWG, states[layer])
            x_BWE = self.dropout(states[layer][..., : self.width])
        return x_BWE


class AdditiveAttention(nn.Module):
    """One hidden layer compares a query with every annotation (Bahdanau et al. 2015)."""

    def __init__(self, query: int, annotation: int, *, hidden: int) -> None:
        super().__init__()
        self.W_a, self.U_a = glorot_linear(query, hidden, bias=False), glorot_linear(annotation, hidden, bias=False)
        self.v_A = nn.Parameter(glorot_linear(hidden, 1, bias=False).weight[0].detach().clone())

    def weights(self, query_BWD: Tensor, keys_BSA: Tensor, visible_BS: Tensor) -> Tensor:
        """Return how much each query takes from each annotation, shape (B, W, S); `keys_BSA` are U_a h."""
        hidden_BWSA = (self.W_a(query_BWD)[:, :, None] + keys_BSA[:, None]).tanh()
        scores_BWS = hidden_BWSA @ self.v_A.to(hidden_BWSA.dtype)
        return visible_softmax(scores_BWS, visible_BS)

    def projections(self, query_BTD: Tensor, keys_BSA: Tensor, annotations_BSN: Tensor) -> Projections:
        """Return queries, keys and values of one pair as those of one layer with one head."""
        return Projections(
            query_LHQE=self.W_a(query_BTD)[None],
            key_LHKE=keys_BSA[None],
            value_LHKG=annotations_BSN[None],
            scores="additive",
            scale=1.0,
            additive_LHE=self.v_A[None, None],
        )


def visible_softmax(scores_BWS: Tensor, visible_BS: Tensor) -> Tensor:
    """Return the softmax of scores over the visible positions of the source, in the scores' own precision."""
    exact_BWS = scores_BWS if scores_BWS.dtype == torch.float64 else scores_BWS.float()
    return exact_BWS.masked_fill(~visible_BS[:, None], -torch.inf).softmax(dim=-1).to(scores_BWS.dtype)
