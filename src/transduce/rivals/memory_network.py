"""A memory network for transduction, after "End-To-End Memory Networks" (Sukhbaatar et al. 2015).

Attention in several hops, with recurrence over hops instead of positions (section 2 of the Transformer's paper). The
memory holds single tokens: no item depends on another, so this network shows what self-attention over contexts adds.

    items       source token j: key A x_j + T_A(j), value C x_j + T_C(j)
                token i that was read: key A y_i + S_A(t - i), value C y_i + S_C(t - i), with its age t - i
    query       u^1_t = B y_t + b,  y_t the token read at t
    hop         p = softmax_i(u · key_i),  o = Σ_i p_i value_i,  u ← H u + o, then ReLU on half of the units
    output      W u

All hops share A, C, T, S and H ("layer-wise" in the paper). Departure: the paper has language models and question
answering; the two memories of source and target are ours. By name: `tied` matrices, `dropout`, `initialization`.

Shapes: D is the width, R counts the tokens read, P positions or ages.
"""

from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from transduce.errors import DataError
from transduce.networks.attention_block import AttentionBlock
from transduce.networks.initialization import glorot_linear, normal_rows
from transduce.networks.network import MatrixView, Network, offset_by_one
from transduce.networks.output import Output
from transduce.rivals.decoding_state import BeamState
from transduce.rivals.matrices import matrix_views
from transduce.rivals.memory_network_config import MemoryNetworkConfig
from transduce.rivals.shapes import TIES
from transduce.special_tokens import OWN_SPECIAL_TOKENS, SpecialTokens

PAPER_STD = 0.1


class MemoryNetwork(Network):
    """The whole network: token ids in, the query after the last hop out.

    Its state holds keys, values and visibility of each sentence, and A y and C y of the tokens that each beam read.
    """

    config: MemoryNetworkConfig

    def __init__(self, config: MemoryNetworkConfig, tokens: SpecialTokens = OWN_SPECIAL_TOKENS) -> None:
        super().__init__(config, tokens)
        size, positions, d = config.vocabulary_size, config.positions, config.d_model
        b_is_a, w_is_c = TIES[config.tied]  # whether B is A, and whether W is C
        self.A_VD, self.C_VD = normal_rows(size, d), normal_rows(size, d)
        self.B_VD = self.A_VD if b_is_a else normal_rows(size, d)
        self.W_VD = self.C_VD if w_is_c else normal_rows(size, d)
        self.T_A_PD, self.T_C_PD, self.S_A_PD, self.S_C_PD = (normal_rows(positions, d) for _ in range(4))
        self.b_D = nn.Parameter(torch.zeros(d))
        self.H = glorot_linear(d, d, bias=False)
        self.dropout = nn.Dropout(config.dropout)
        if {"glorot": False, "paper": True}[config.initialization] and not self.b_D.is_meta:
            for parameter in self.parameters():
                nn.init.normal_(parameter, std=PAPER_STD)

    @property
    def output(self) -> Output:
        """The output matrix, without a bias."""
        return Output(self.W_VD)

    def forward(self, source_BS: Tensor, target_BT: Tensor) -> Tensor:
        """Return the vector that predicts each label, shape (B, T, D)."""
        return self._decode(source_BS, target_BT)[0]

    def start(self, source_BS: Tensor) -> BeamState:
        """Make the memory of the sources."""
        length = self._checked(source_BS.size(1))
        keys_BSD = functional.embedding(source_BS, self.A_VD) + self.T_A_PD[:length]
        values_BSD = functional.embedding(source_BS, self.C_VD) + self.T_C_PD[:length]
        nothing_BWRD = keys_BSD[:, None, :0]
        return BeamState((keys_BSD, values_BSD, source_BS != self.tokens.padding), [nothing_BWRD, nothing_BWRD])

    def advance(self, state: BeamState, tokens_BW: Tensor) -> Tensor:
        """Feed each beam its newest token; return the vector that predicts the next, shape (B, W, D)."""
        newest = (functional.embedding(tokens_BW, table)[:, :, None] for table in (self.A_VD, self.C_VD))
        state.beams = [torch.cat(both, dim=2) for both in zip(state.beams, newest, strict=True)]
        state.length = self._checked(state.length + 1)
        ages = slice(None, state.length)
        read_keys_BWRD = state.beams[0] + self.S_A_PD[ages].flip(0)
        read_values_BWRD = state.beams[1] + self.S_C_PD[ages].flip(0)
        keys_BSD, values_BSD, visible_BS = state.sentences
        u_BWD = functional.embedding(tokens_BW, self.B_VD) + self.b_D
        for _ in range(self.config.hops):
            u_BWD = self.dropout(u_BWD)
            of_source_BWS = (u_BWD @ keys_BSD.mT).masked_fill(~visible_BS[:, None], -torch.inf)
            of_read_BWR = (read_keys_BWRD @ u_BWD[..., None])[..., 0]
            from_source, from_read = _softmax(of_source_BWS, of_read_BWR)
            read_BWD = from_source @ values_BSD + (from_read[:, :, None] @ read_values_BWRD)[:, :, 0]
            u_BWD = self._hop(u_BWD, read_BWD)
        return u_BWD

    @torch.no_grad()
    def attention(self, source: Sequence[int], target: Sequence[int]) -> Mapping[str, AttentionBlock]:
        """Return the weights of every hop, each a layer with one head; keys depend on their age and are not shown."""
        device = self.W_VD.device
        _, weights = self._decode(
            torch.tensor([list(source)], device=device), torch.tensor([list(target)], device=device)
        )
        return {"memory": AttentionBlock("target", "source+read", torch.cat(weights)[:, None])}

    def matrices(self) -> Iterable[MatrixView]:
        """Return H, the only linear map between hops."""
        return matrix_views(self)

    def _decode(self, source_BS: Tensor, target_BT: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Return the query of each label after the last hop, and the weights of each hop."""
        keys_BSD, values_BSD, visible_BS = self.start(source_BS).sentences
        inputs_BT = offset_by_one(target_BT, start=self.tokens.start)
        length = self._checked(inputs_BT.size(1))
        read_keys_BRD, read_values_BRD = (functional.embedding(inputs_BT, each) for each in (self.A_VD, self.C_VD))
        place_T = torch.arange(length, device=source_BS.device)
        # age[t, i] = t - i and item[t, age] = t - age are the same matrix; above its diagonal are tokens not yet read.
        age_TR = place_T[:, None] - place_T
        unread_TR, age_BTR = age_TR < 0, age_TR.clamp(min=0).expand(len(inputs_BT), -1, -1)
        u_BTD, weights = functional.embedding(inputs_BT, self.B_VD) + self.b_D, []
        for _ in range(self.config.hops):
            u_BTD = self.dropout(u_BTD)
            of_source_BTS = (u_BTD @ keys_BSD.mT).masked_fill(~visible_BS[:, None], -torch.inf)
            of_age_BTR = (u_BTD @ self.S_A_PD[:length].mT).gather(2, age_BTR)
            of_read_BTR = (u_BTD @ read_keys_BRD.mT + of_age_BTR).masked_fill(unread_TR, -torch.inf)
            from_source, from_read = _softmax(of_source_BTS, of_read_BTR)
            by_age_BTR = from_read.gather(2, age_BTR).masked_fill(unread_TR, 0.0)
            read_BTD = from_source @ values_BSD + from_read @ read_values_BRD + by_age_BTR @ self.S_C_PD[:length]
            weights.append(torch.cat([from_source, from_read], dim=-1))
            u_BTD = self._hop(u_BTD, read_BTD)
        return u_BTD, weights

    def _hop(self, u_BTD: Tensor, read_BTD: Tensor) -> Tensor:
        linear, rectified = (self.H(u_BTD) + read_BTD).chunk(2, dim=-1)
        return torch.cat([linear, rectified.relu()], dim=-1)

    def _checked(self, length: int) -> int:
        if length > self.config.positions:
            raise DataError(
                f"A sentence of {length} tokens is longer than the {self.config.positions} positions that this model "
                "has learned. Split it, or train with more model.positions."
            )
        return length


def _softmax(of_source: Tensor, of_read: Tensor) -> tuple[Tensor, Tensor]:
    """Return the softmax over both parts of the memory, as two parts."""
    scores = torch.cat([of_source, of_read], dim=-1)
    exact = scores if scores.dtype == torch.float64 else scores.float()
    from_source, from_read = (
        exact.softmax(dim=-1).to(scores.dtype).split([of_source.size(-1), of_read.size(-1)], dim=-1)
    )
    return from_source, from_read
