"""A network like GNMT, "Google's Neural Machine Translation System" (Wu et al. 2016).

The deepest of the recurrent rivals: each LSTM (`recurrent.py`) from the third layer up has a residual connection, as
every sub-layer of the Transformer has. The encoder's lowest layer reads both directions.

    encoder      x^1_j = [LSTM→_j; LSTM←_j],  x^2 = LSTM_2(x^1),  x^l = LSTM_l(x^(l-1)) + x^(l-1)  from l = 3 on
    alignment    a_t = softmax_j(v · tanh(W_a y^1_(t-1) + U_a x^L_j)),  c_t = Σ_j a_tj x^L_j
    decoder      y^1 = LSTM_1([E y_t; c_t]),  y^2 = LSTM_2([y^1; c_t]),  y^l = LSTM_l([y^(l-1); c_t]) + y^(l-1)

y^1_(t-1) is the bottom layer's output at the position before (zeros at first). So only the bottom layer and the
attention wait for each other; the layers above read all contexts at once. The decoder starts from zeros.

Departures: no word-pieces, coverage penalty or reinforcement learning of its own; search and text are those of this
package. By name: `tied` matrices, `initialization`. Shapes: D is the width, Z = 2 D that of h and c, A the alignment's.
"""

from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor, nn

from transduce.networks.attention_block import AttentionBlock
from transduce.networks.network import MatrixView, Network, offset_by_one
from transduce.networks.output import Output
from transduce.rivals.decoding_state import BeamState
from transduce.rivals.gnmt_config import GnmtConfig
from transduce.rivals.matrices import TokenMatrices, draw_uniform, matrix_views
from transduce.rivals.recurrent import AdditiveAttention, LstmUnit, empty_state, unrolled
from transduce.special_tokens import OWN_SPECIAL_TOKENS, SpecialTokens

PAPER_BOUND = 0.04
FIRST_RESIDUAL = 2  # layers count from 0: the third


class GnmtNetwork(Network):
    """The whole network: token ids in, the top layer's output out.

    Its state holds annotations, keys and visibility of each sentence, and (h, c) of each layer of each beam.
    """

    config: GnmtConfig

    def __init__(self, config: GnmtConfig, tokens: SpecialTokens = OWN_SPECIAL_TOKENS) -> None:
        super().__init__(config, tokens)
        d, layers = config.d_model, config.layers
        self.matrix = TokenMatrices(config.vocabulary_size, (d, d), tied=config.tied, dropout=config.dropout)
        self.forward_reader, self.backward_reader = LstmUnit(d, d), LstmUnit(d, d)
        self.readers = nn.ModuleList(LstmUnit(2 * d if layer == 1 else d, d) for layer in range(1, layers))
        self.alignment = AdditiveAttention(d, d, hidden=config.alignment_width)
        self.writers = nn.ModuleList(LstmUnit(2 * d, d) for _ in range(layers))
        self.dropout = nn.Dropout(config.dropout)
        if {"glorot": False, "paper": True}[config.initialization]:
            draw_uniform(self, bound=PAPER_BOUND)

    @property
    def output(self) -> Output:
        """The output matrix, without a bias."""
        return self.matrix.output

    def forward(self, source_BS: Tensor, target_BT: Tensor) -> Tensor:
        """Return the vector that predicts each label, shape (B, T, D)."""
        return self._decode(self.start(source_BS), target_BT)[0]

    def start(self, source_BS: Tensor) -> BeamState:
        """Read the sources: the lowest layer in both directions, the others from left to right."""
        visible_BS, embedded_BSD = source_BS != self.tokens.padding, self.matrix.embed_source(source_BS)
        zeros_B1Z = empty_state(self.forward_reader, embedded_BSD)
        forward_BSZ = unrolled(self.forward_reader, embedded_BSD, zeros_B1Z, visible_BS)
        backward_BSZ = unrolled(self.backward_reader, embedded_BSD.flip(1), zeros_B1Z, visible_BS.flip(1)).flip(1)
        x_BSD = self.dropout(torch.cat([self._hidden(forward_BSZ), self._hidden(backward_BSZ)], dim=-1))
        for layer, unit in enumerate(self.readers, start=1):
            outputs_BSD = self.dropout(self._hidden(unrolled(unit, x_BSD, zeros_B1Z, visible_BS)))  # type: ignore[arg-type]
            x_BSD = outputs_BSD + x_BSD if layer >= FIRST_RESIDUAL else outputs_BSD
        return BeamState((x_BSD, self.alignment.U_a(x_BSD), visible_BS), [zeros_B1Z] * self.config.layers)

    def advance(self, state: BeamState, tokens_BW: Tensor) -> Tensor:
        """Feed each beam its newest token; return the vector that predicts the next, shape (B, W, D)."""
        x_BWD = self.matrix.embed_target(tokens_BW)
        context_BWD, _ = self._attend(state, self._hidden(state.beams[0]))
        for layer, unit in enumerate(self.writers):
            projected_BWG = unit.input(torch.cat([x_BWD, context_BWD], dim=-1))  # type: ignore[operator]
            state.beams[layer] = unit(projected_BWG, state.beams[layer])
            outputs_BWD = self.dropout(self._hidden(state.beams[layer]))
            x_BWD = outputs_BWD + x_BWD if layer >= FIRST_RESIDUAL else outputs_BWD
        return x_BWD

    @torch.no_grad()
    def attention(self, source: Sequence[int], target: Sequence[int]) -> Mapping[str, AttentionBlock]:
        """Return the alignment as one layer with one head; its values are the encoder's outputs."""
        device = self.output.matrix_VD.device
        state = self.start(torch.tensor([list(source)], device=device))
        _, before_BTD, weights_BTS = self._decode(state, torch.tensor([list(target)], device=device))
        annotations_BSD, keys_BSA, _ = state.sentences
        projections = self.alignment.projections(before_BTD, keys_BSA, annotations_BSD)
        return {"cross": AttentionBlock("target", "source", weights_BTS[None], projections)}

    def matrices(self) -> Iterable[MatrixView]:
        """Return every linear map, each gate a matrix of its own."""
        return matrix_views(self)

    def _decode(self, state: BeamState, target_BT: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the top layer's outputs, the queries of the attention and its weights."""
        embedded_BTD = self.matrix.embed_target(offset_by_one(target_BT, start=self.tokens.start))
        bottom, now_B1Z, befores, afters, contexts, weights = self.writers[0], state.beams[0], [], [], [], []
        for embedded_B1D in embedded_BTD.split(1, dim=1):
            befores.append(self._hidden(now_B1Z))
            context_B1D, weights_B1S = self._attend(state, befores[-1])
            now_B1Z = bottom(bottom.input(torch.cat([embedded_B1D, context_B1D], dim=-1)), now_B1Z)  # type: ignore[operator]
            afters.append(self._hidden(now_B1Z))
            contexts.append(context_B1D)
            weights.append(weights_B1S)
        x_BTD, context_BTD = self.dropout(torch.cat(afters, dim=1)), torch.cat(contexts, dim=1)
        for layer, unit in enumerate(self.writers):
            if layer:
                states_BTZ = unrolled(unit, torch.cat([x_BTD, context_BTD], dim=-1), state.beams[layer])  # type: ignore[arg-type]
                outputs_BTD = self.dropout(self._hidden(states_BTZ))
                x_BTD = outputs_BTD + x_BTD if layer >= FIRST_RESIDUAL else outputs_BTD
        return x_BTD, torch.cat(befores, dim=1), torch.cat(weights, dim=1)

    def _attend(self, state: BeamState, query_BWD: Tensor) -> tuple[Tensor, Tensor]:
        annotations_BSD, keys_BSA, visible_BS = state.sentences
        weights_BWS = self.alignment.weights(query_BWD, keys_BSA, visible_BS).to(annotations_BSD.dtype)
        return weights_BWS @ annotations_BSD, weights_BWS

    def _hidden(self, state_BWZ: Tensor) -> Tensor:
        return state_BWZ[..., : self.config.d_model]
