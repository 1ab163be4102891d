"""Luong's network, "Effective Approaches to Attention-based Neural Machine Translation" (Luong et al. 2015).

Multiplicative attention: `dot` is the Transformer's attention without its scale. Stacks of LSTMs read and write as in
`lstm.py`; in addition, each target position takes a weighted mean of the source states h̄_s, the encoder's top outputs.

    scores     dot h_t · h̄_s      general h_t · W_a h̄_s      concat v · tanh(W_a [h_t; h̄_s])
    context    a_t = softmax_s(scores),  c_t = Σ_s a_ts h̄_s
    output     h̃_t = tanh(W_c [c_t; h_t]),  logits = O h̃_t
    feeding    the bottom layer reads [E y_t; h̃_t] at the next position, h̃_0 = 0

h_t is the decoder's top output at the same position, where RNNsearch takes the state before it.

Departure: attention is global; the paper's local windows are left out. Departures by name: `tied` matrices,
`initialization`. Shapes: D is the width, Z = 2 D that of h and c, G = 4 D that of the gates.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import torch
from torch import Tensor, nn

from transduce.networks.attention_block import AttentionBlock, Projections
from transduce.networks.initialization import glorot_linear
from transduce.networks.network import MatrixView, Network, offset_by_one
from transduce.networks.output import Output
from transduce.rivals.decoding_state import BeamState
from transduce.rivals.luong_config import LuongConfig
from transduce.rivals.matrices import StackedLinear, TokenMatrices, draw_uniform, matrix_views
from transduce.rivals.recurrent import AdditiveAttention, LstmStack, visible_softmax
from transduce.special_tokens import OWN_SPECIAL_TOKENS, SpecialTokens

PAPER_BOUND = 0.1


class LuongNetwork(Network):
    """The whole network: token ids in, the attentional vector h̃ out.

    Its state holds source states, keys and visibility of each sentence; (h, c) of each layer and h̃ of each beam.
    """

    config: LuongConfig

    def __init__(self, config: LuongConfig, tokens: SpecialTokens = OWN_SPECIAL_TOKENS) -> None:
        super().__init__(config, tokens)
        d, dropout = config.d_model, config.dropout
        self.matrix = TokenMatrices(config.vocabulary_size, (d, d), tied=config.tied, dropout=dropout)
        self.encoder = LstmStack(d, d, layers=config.layers, dropout=dropout)
        self.decoder = LstmStack(d, d, layers=config.layers, dropout=dropout)
        if config.input_feeding:
            self.feeding = StackedLinear(d, d, blocks=4, bias=False)
        compatibilities: Mapping[str, Callable[[], nn.Module]] = {
            "dot": nn.Identity,
            "general": lambda: glorot_linear(d, d, bias=False),
            "concat": lambda: AdditiveAttention(d, d, hidden=d),
        }
        self.compatibility = compatibilities[config.scores]()
        self.W_c = glorot_linear(2 * d, d, bias=False)
        self.dropout = nn.Dropout(dropout)
        if {"glorot": False, "paper": True}[config.initialization]:
            draw_uniform(self, bound=PAPER_BOUND)

    @property
    def output(self) -> Output:
        """The output matrix, without a bias."""
        return self.matrix.output

    def forward(self, source_BS: Tensor, target_BT: Tensor) -> Tensor:
        """Return the vector that predicts each label, shape (B, T, D)."""
        return self.dropout(self._decode(self.start(source_BS), target_BT)[1])  # type: ignore[no-any-return]

    def start(self, source_BS: Tensor) -> BeamState:
        """Read the sources."""
        visible_BS, embedded_BSD = source_BS != self.tokens.padding, self.matrix.embed_source(source_BS)
        is_reversed = self.config.reversed_source
        outputs_BSD, lasts = self.encoder(
            embedded_BSD.flip(1) if is_reversed else embedded_BSD,
            visible_BT=visible_BS.flip(1) if is_reversed else visible_BS,
        )
        outputs_BSD = outputs_BSD.flip(1) if is_reversed else outputs_BSD
        compatibility = self.compatibility
        keys_BSD = (compatibility.U_a if isinstance(compatibility, AdditiveAttention) else compatibility)(outputs_BSD)
        return BeamState((outputs_BSD, keys_BSD, visible_BS), [*lasts, torch.zeros_like(outputs_BSD[:, :1])])

    def advance(self, state: BeamState, tokens_BW: Tensor) -> Tensor:
        """Feed each beam its newest token; return the vector that predicts the next, shape (B, W, D)."""
        top_BWD = self._step(state, self.matrix.embed_target(tokens_BW))
        state.beams[-1], _ = self._attend(state, top_BWD)
        return self.dropout(state.beams[-1])  # type: ignore[no-any-return]

    @torch.no_grad()
    def attention(self, source: Sequence[int], target: Sequence[int]) -> Mapping[str, AttentionBlock]:
        """Return the attention as one layer with one head; its values are the source states."""
        device = self.output.matrix_VD.device
        state = self.start(torch.tensor([list(source)], device=device))
        top_BTD, _, weights_BTS = self._decode(state, torch.tensor([list(target)], device=device))
        values_BSD, keys_BSD, _ = state.sentences
        if isinstance(self.compatibility, AdditiveAttention):
            projections = self.compatibility.projections(top_BTD, keys_BSD, values_BSD)
        else:
            projections = Projections(top_BTD[None], keys_BSD[None], values_BSD[None], "unscaled", scale=1.0)
        return {"cross": AttentionBlock("target", "source", weights_BTS[None], projections)}

    def matrices(self) -> Iterable[MatrixView]:
        """Return every linear map, each gate a matrix of its own."""
        return matrix_views(self)

    def _decode(self, state: BeamState, target_BT: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the decoder's top outputs at each label, the attentional vectors h̃, and the weights."""
        embedded_BTD = self.matrix.embed_target(offset_by_one(target_BT, start=self.tokens.start))
        if not self.config.input_feeding:
            top_BTD: Tensor = self.decoder(embedded_BTD, state.beams[:-1])[0]
            return top_BTD, *self._attend(state, top_BTD)
        found = []
        for embedded_B1D in embedded_BTD.split(1, dim=1):
            top_B1D = self._step(state, embedded_B1D)
            state.beams[-1], weights_B1S = self._attend(state, top_B1D)
            found.append((top_B1D, state.beams[-1], weights_B1S))
        tops, attentionals, weights = zip(*found, strict=True)
        return torch.cat(tops, dim=1), torch.cat(attentionals, dim=1), torch.cat(weights, dim=1)

    def _step(self, state: BeamState, embedded_BWD: Tensor) -> Tensor:
        *states, attentional_BWD = state.beams
        extra_BWG = self.feeding(attentional_BWD) if self.config.input_feeding else 0.0
        top_BWD = self.decoder.step(embedded_BWD, states, extra_BWG=extra_BWG)
        state.beams[:-1] = states
        return top_BWD

    def _attend(self, state: BeamState, top_BTD: Tensor) -> tuple[Tensor, Tensor]:
        """Return the attentional vectors h̃, shape (B, T, D), and the weights."""
        values_BSD, keys_BSD, visible_BS = state.sentences
        if isinstance(self.compatibility, AdditiveAttention):
            weights_BTS = self.compatibility.weights(top_BTD, keys_BSD, visible_BS)
        else:
            weights_BTS = visible_softmax(top_BTD @ keys_BSD.mT, visible_BS)
        context_BTD = weights_BTS @ values_BSD
        return self.W_c(torch.cat([context_BTD, top_BTD], dim=-1)).tanh(), weights_BTS
