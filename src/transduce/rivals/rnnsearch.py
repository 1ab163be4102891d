"""RNNsearch, "Neural Machine Translation by Jointly Learning to Align and Translate" (Bahdanau et al. 2015).

Attention over a recurrent encoder: the additive attention that section 3.2.1 of the Transformer's paper compares with.
Two gated recurrent units read the source in both directions and leave an annotation h_j = [h→_j; h←_j] for each token.
The decoder is a third unit: at position t it compares its state s_(t-1) with every annotation and reads their weighted
mean c_t.

    gated unit    z, r = σ(W_zr x + U_zr h⁻ + b),  h̃ = tanh(W x + U (r ⊙ h⁻) + b),  h = (1 - z) ⊙ h⁻ + z ⊙ h̃
    start         s_0 = tanh(W_s h←_1 + b)
    alignment     e_tj = v · tanh(W_a s_(t-1) + U_a h_j),  a_t = softmax_j(e_tj),  c_t = Σ_j a_tj h_j
    state         s_t = gated unit of x = [E y_(t-1); c_t] and s_(t-1)
    output        maxout over neighbouring pairs of U_o s_(t-1) + V_o E y_(t-1) + C_o c_t, then the output matrix

Departures by name: `tied` matrices, and `dropout` on the embeddings and before the output matrix. Departure: weights
are Glorot-uniform and recurrent matrices orthogonal, where the paper draws from normal distributions.

Shapes: D is the width of a state, N = 2 D that of an annotation, E of an embedding, A of the alignment, G = 3 D of the
gates, O of the output.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Self

import torch
from pydantic import PositiveInt, model_validator
from torch import Tensor, nn
from torch.nn import functional

from transduce.networks.attention_block import AttentionBlock, Projections
from transduce.networks.cost import Cost
from transduce.networks.initialization import glorot_linear, normal_rows
from transduce.networks.network import MatrixView, Network, NetworkConfig, Probability, offset_by_one
from transduce.networks.output import Output
from transduce.special_tokens import OWN_SPECIAL_TOKENS, SpecialTokens


class RnnSearchConfig(NetworkConfig, frozen=True):
    """Sizes of RNNsearch. The defaults are its paper's."""

    kind: Literal["rnnsearch"] = "rnnsearch"
    """Which network: `rnnsearch` is recurrent, with additive attention (Bahdanau et al. 2015)."""
    d_model: PositiveInt = 1000
    """Width of each recurrent state."""
    embedding_width: PositiveInt = 620
    """Width of the embeddings."""
    alignment_width: PositiveInt = 1000
    """Width of the hidden layer that compares a state with an annotation."""
    output_width: PositiveInt = 500
    """Width of the vector before the output matrix, after maxout."""
    dropout: Probability = 0.0
    """Dropout on the embeddings and on the vector before the output matrix. Departure: the paper has none."""
    tied: Literal["none", "inputs", "all"] = "none"
    """Which of the source, target and output matrices are one. Departure: the paper has three."""

    @model_validator(mode="after")
    def one_matrix_has_one_width(self) -> Self:
        """Refuse one matrix for inputs and output where they differ in width."""
        if self.tied == "all" and self.embedding_width != self.output_width:
            raise ValueError(
                f'tied = "all" makes one matrix of the embeddings, {self.embedding_width} wide, and the output, '
                f'{self.output_width} wide. Set both to one width, or choose tied = "inputs".'
            )
        return self

    @property
    def depth(self) -> int:
        """Three units: two read the source, one writes the target."""
        return 3

    @property
    def title(self) -> str:
        """The network and its paper."""
        return "RNNsearch of *Neural Machine Translation by Jointly Learning to Align and Translate*"

    @property
    def in_words(self) -> str:
        """The sizes in a few words."""
        return f"recurrent with attention, states {self.d_model} wide, embeddings {self.embedding_width}"


# Whether source and target share a matrix, and whether the output shares it too.
_TIES = {"none": (False, False), "inputs": (True, False), "all": (True, True)}


class GatedUnit(nn.Module):
    """A gated recurrent unit with the reset gate before the recurrent matrix, unlike torch's."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.input = glorot_linear(inputs, 3 * width)
        self.gates = _orthogonal(width, blocks=2)
        self.candidate = _orthogonal(width, blocks=1)

    def forward(self, projected_BWG: Tensor, state_BWD: Tensor) -> Tensor:
        """Return the next state from the projected input, W x + b, and the state before it."""
        width = state_BWD.size(-1)
        of_gates, of_candidate = projected_BWG.split([2 * width, width], dim=-1)
        update_BWD, reset_BWD = (of_gates + self.gates(state_BWD)).sigmoid().chunk(2, dim=-1)
        candidate_BWD = (of_candidate + self.candidate(reset_BWD * state_BWD)).tanh()
        next_BWD: Tensor = state_BWD + update_BWD * (candidate_BWD - state_BWD)
        return next_BWD


@dataclass
class RnnSearchState:
    """The decoding state: the annotations and keys of each sentence, and the recurrent state of each beam."""

    annotations_BSN: Tensor
    keys_BSA: Tensor
    visible_BS: Tensor
    state_BWD: Tensor


class RnnSearch(Network):
    """The whole network: token ids in, the vector before the output matrix out."""

    config: RnnSearchConfig

    def __init__(self, config: RnnSearchConfig, tokens: SpecialTokens = OWN_SPECIAL_TOKENS) -> None:
        super().__init__(config, tokens)
        size, d, e, a = config.vocabulary_size, config.d_model, config.embedding_width, config.alignment_width
        self.source_VE = normal_rows(size, e)
        inputs_are_one, all_are_one = _TIES[config.tied]
        self.target_VE = self.source_VE if inputs_are_one else normal_rows(size, e)
        self.output_VO = self.target_VE if all_are_one else normal_rows(size, config.output_width)
        self.reader, self.backward_reader = GatedUnit(e, d), GatedUnit(e, d)
        self.first_state = glorot_linear(d, d)
        self.W_a, self.U_a = glorot_linear(d, a, bias=False), glorot_linear(2 * d, a, bias=False)
        self.v_A = nn.Parameter(glorot_linear(a, 1, bias=False).weight[0].detach().clone())
        self.writer = GatedUnit(e, d)
        self.writer_context = glorot_linear(2 * d, 3 * d, bias=False)
        self.readout = glorot_linear(d + e + 2 * d, 2 * config.output_width)
        self.dropout = nn.Dropout(config.dropout)

    @property
    def output(self) -> Output:
        """The output matrix, without a bias."""
        return Output(self.output_VO)

    def forward(self, source_BS: Tensor, target_BT: Tensor) -> Tensor:
        """Return the vector that predicts each label, shape (B, T, O)."""
        return self._read_out(*self._decode(source_BS, target_BT)[:3])

    def start(self, source_BS: Tensor) -> RnnSearchState:
        """Read the sources in both directions."""
        visible_BS = source_BS != self.tokens.padding
        embedded_BSE = self.dropout(functional.embedding(source_BS, self.source_VE))
        forward_BSD = _states(self.reader, embedded_BSE, visible_BS)
        backward_BSD = _states(self.backward_reader, embedded_BSE.flip(1), visible_BS.flip(1)).flip(1)
        annotations_BSN = torch.cat([forward_BSD, backward_BSD], dim=-1)
        state_BWD = self.first_state(backward_BSD[:, :1]).tanh()
        return RnnSearchState(annotations_BSN, self.U_a(annotations_BSN), visible_BS, state_BWD)

    def advance(self, state: RnnSearchState, tokens_BW: Tensor) -> Tensor:
        """Feed each beam its newest token; return the vector that predicts the next, shape (B, W, O)."""
        embedded_BWE = self.dropout(functional.embedding(tokens_BW, self.target_VE))
        before_BWD = state.state_BWD
        context_BWN, _ = self._attend(state, before_BWD)
        state.state_BWD = self._write(self.writer.input(embedded_BWE), context_BWN, before_BWD)
        return self._read_out(before_BWD, embedded_BWE, context_BWN)

    def select(self, state: RnnSearchState, sentences_B: Tensor, beams_BW: Tensor) -> RnnSearchState:
        """Return the state of the named sentences and beams."""
        return RnnSearchState(
            state.annotations_BSN[sentences_B],
            state.keys_BSA[sentences_B],
            state.visible_BS[sentences_B],
            state.state_BWD[sentences_B[:, None], beams_BW],
        )

    @torch.no_grad()
    def attention(self, source: Sequence[int], target: Sequence[int]) -> Mapping[str, AttentionBlock]:
        """Return the alignment as one layer with one head; its queries are W_a s, its keys U_a h, its values h."""
        device = self.output_VO.device
        source_BS, target_BT = torch.tensor([list(source)], device=device), torch.tensor([list(target)], device=device)
        before_BTD, _, _, weights_BTS = self._decode(source_BS, target_BT)
        state = self.start(source_BS)
        projections = Projections(
            query_LHQE=self.W_a(before_BTD)[None],
            key_LHKE=state.keys_BSA[None],
            value_LHKG=state.annotations_BSN[None],
            scores="additive",
            scale=1.0,
            additive_LHE=self.v_A[None, None],
        )
        return {"cross": AttentionBlock("target", "source", weights_BTS[None], projections)}

    def matrices(self) -> Iterable[MatrixView]:
        """Return every linear map, each gate a matrix of its own."""
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear):
                gates = {"input": 3, "gates": 2, "writer_context": 3}.get(name.rpartition(".")[2], 1)
                yield MatrixView(f"{name}.weight", (gates, module.out_features // gates, module.in_features))

    def cost(self, source_length: int, target_length: int) -> Cost:
        """Return the cost of a forward pass, in which each position waits for the one before it."""
        c, n, m = self.config, source_length, target_length
        d, e, a, o = c.d_model, c.embedding_width, c.alignment_width, c.output_width
        unit, align = 3 * d * (e + d), a * d + n * (a + 2 * d)
        encoder = n * (2 * unit + 2 * d * a) + d * d
        decoder = m * (unit + 6 * d * d + align + 2 * o * (3 * d + e))
        operations = {"encoder": 2 * encoder, "decoder": 2 * decoder, "output": 2 * m * c.vocabulary_size * o}
        kept = n * 2 * (e + 8 * d) + m * (e + 12 * d + 4 * o + n * (a + 2))
        return Cost(operations, sequential_steps=n + m, path_length=n, kept_numbers=kept)

    def part_of(self, parameter: str) -> str:
        """Return the part of the network that a parameter belongs to, in words."""
        parts = {"reader": "encoder", "backward_reader": "encoder", "first_state": "decoder", "readout": "output"}
        alignment = dict.fromkeys(("W_a", "U_a", "v_A"), "alignment")
        writer = dict.fromkeys(("writer", "writer_context"), "decoder")
        return {**parts, **alignment, **writer}.get(parameter.partition(".")[0], "embeddings")

    def _decode(self, source_BS: Tensor, target_BT: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the states before each label, the embeddings read there, the contexts and the weights."""
        state = self.start(source_BS)
        inputs_BT = offset_by_one(target_BT, start=self.tokens.start)
        embedded_BTE = self.dropout(functional.embedding(inputs_BT, self.target_VE))
        now_BWD, befores, contexts, weights = state.state_BWD, [], [], []
        for projected_BWG in self.writer.input(embedded_BTE).split(1, dim=1):
            context_BWN, weights_BWS = self._attend(state, now_BWD)
            befores.append(now_BWD)
            contexts.append(context_BWN)
            weights.append(weights_BWS)
            now_BWD = self._write(projected_BWG, context_BWN, now_BWD)
        return torch.cat(befores, dim=1), embedded_BTE, torch.cat(contexts, dim=1), torch.cat(weights, dim=1)

    def _attend(self, state: RnnSearchState, query_BWD: Tensor) -> tuple[Tensor, Tensor]:
        """Return the context of each beam, which is its weighted mean of the annotations, and the weights."""
        hidden_BWSA = (self.W_a(query_BWD)[:, :, None] + state.keys_BSA[:, None]).tanh()
        scores_BWS = (hidden_BWSA @ self.v_A.to(hidden_BWSA.dtype)).float()
        scores_BWS = scores_BWS.masked_fill(~state.visible_BS[:, None], -torch.inf)
        weights_BWS = scores_BWS.softmax(dim=-1).to(state.annotations_BSN.dtype)
        return weights_BWS @ state.annotations_BSN, weights_BWS

    def _write(self, projected_BWG: Tensor, context_BWN: Tensor, state_BWD: Tensor) -> Tensor:
        next_BWD: Tensor = self.writer(projected_BWG + self.writer_context(context_BWN), state_BWD)
        return next_BWD

    def _read_out(self, state_BTD: Tensor, embedded_BTE: Tensor, context_BTN: Tensor) -> Tensor:
        pairs_BTO2: Tensor = self.readout(torch.cat([state_BTD, embedded_BTE, context_BTN], dim=-1)).unflatten(
            -1, (-1, 2)
        )
        hidden_BTO: Tensor = self.dropout(pairs_BTO2.amax(dim=-1))
        return hidden_BTO


def _states(unit: GatedUnit, embedded_BSE: Tensor, visible_BS: Tensor) -> Tensor:
    """Return the unit's state after each token, shape (B, S, D); padding leaves the state as it is."""
    state_B1D = embedded_BSE.new_zeros(embedded_BSE.size(0), 1, unit.candidate.in_features)
    states = []
    for projected_B1G, visible_B1 in zip(
        unit.input(embedded_BSE).split(1, dim=1), visible_BS.split(1, dim=1), strict=True
    ):
        state_B1D = torch.where(visible_B1[..., None], unit(projected_B1G, state_B1D), state_B1D)
        states.append(state_B1D)
    return torch.cat(states, dim=1)


def _orthogonal(width: int, *, blocks: int) -> nn.Linear:
    linear = nn.Linear(width, blocks * width, bias=False)
    if not linear.weight.is_meta:
        for block in linear.weight.data.split(width):
            nn.init.orthogonal_(block)
    return linear
