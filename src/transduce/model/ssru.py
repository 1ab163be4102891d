"""SSRU, a recurrent unit in place of the decoder's self-attention (Kim et al. 2019; not in the paper).

    f_t = σ(W_f x_t + b_f)        c_t = f_t ∘ c_{t-1} + (1 - f_t) ∘ W x_t,   c_0 = 0        SSRU(x)_t = max(0, c_t)

A departure by name (`ModelConfig.decoder_mixer`), used in Marian's small models. One vector, c, carries all information
about earlier positions, so decoding keeps one vector per layer for a sentence of any length.

Training computes the steps one after the other; they take a third to a tenth of the time of one product with W. A
cumulative product of f would underflow, and a parallel scan by doubling took 7 to 10 times as long on a CPU.
"""

import torch
from torch import Tensor, nn

from transduce.model.config import ModelConfig
from transduce.networks.initialization import glorot_linear


class SSRU(nn.Module):
    """A recurrent unit with a gate f, the share of the state that stays, and a candidate W x for the rest."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.W = glorot_linear(config.d_model, config.d_model, bias=False)
        self.W_f = glorot_linear(config.d_model, config.d_model)

    def forward(self, inputs_BTD: Tensor, state_BD: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return the outputs, shape (B, T, D), and the last state, shape (B, D); the first is `state_BD` or zeros."""
        # In bf16 a gate near 1 rounds to 1 and the state would not change: compute in at least float32.
        exact = torch.promote_types(inputs_BTD.dtype, torch.float32)
        gate_BTD = self.W_f(inputs_BTD).to(exact).sigmoid()
        new_BTD = (1.0 - gate_BTD) * self.W(inputs_BTD)
        state_BD = torch.zeros_like(new_BTD[:, 0]) if state_BD is None else state_BD
        states = []
        for gate_BD, new_BD in zip(gate_BTD.unbind(dim=1), new_BTD.unbind(dim=1), strict=True):
            state_BD = torch.addcmul(new_BD, gate_BD, state_BD)
            states.append(state_BD)
        return torch.stack(states, dim=1).relu().to(inputs_BTD.dtype), state_BD
