"""LSTM sequence to sequence, "Sequence to Sequence Learning with Neural Networks" (Sutskever et al. 2014).

The encoder-decoder without attention that section 1 of the Transformer's paper begins with. A stack of LSTMs
(`recurrent.py`) reads the source, from its last token to its first; a second stack with weights of its own writes the
target. Each layer of the second starts from the last (h, c) of the same layer of the first, and nothing else passes
between them: 2 · layers · d numbers, however long the sentence.

    h^l_t, c^l_t = LSTM_l(h^(l-1)_t, h^l_(t-1), c^l_(t-1)),   h^0_t = E x_t          logits = O h^L_t

Departures by name: `tied` matrices, `dropout`, `initialization`. Shapes: D is the width, Z = 2 D that of h and c.
"""

from collections.abc import Iterable

from torch import Tensor

from transduce.networks.network import MatrixView, Network, offset_by_one
from transduce.networks.output import Output
from transduce.rivals.decoding_state import BeamState
from transduce.rivals.lstm_config import LstmConfig
from transduce.rivals.matrices import TokenMatrices, draw_uniform, matrix_views
from transduce.rivals.recurrent import LstmStack
from transduce.special_tokens import OWN_SPECIAL_TOKENS, SpecialTokens

PAPER_BOUND = 0.08


class LstmNetwork(Network):
    """The whole network: token ids in, the top layer's h out. Its state holds (h, c) of each layer of each beam."""

    config: LstmConfig

    def __init__(self, config: LstmConfig, tokens: SpecialTokens = OWN_SPECIAL_TOKENS) -> None:
        super().__init__(config, tokens)
        d, dropout = config.d_model, config.dropout
        self.matrix = TokenMatrices(config.vocabulary_size, (d, d), tied=config.tied, dropout=dropout)
        self.encoder = LstmStack(d, d, layers=config.layers, dropout=dropout)
        self.decoder = LstmStack(d, d, layers=config.layers, dropout=dropout)
        if {"glorot": False, "paper": True}[config.initialization]:
            draw_uniform(self, bound=PAPER_BOUND)

    @property
    def output(self) -> Output:
        """The output matrix, without a bias."""
        return self.matrix.output

    def forward(self, source_BS: Tensor, target_BT: Tensor) -> Tensor:
        """Return the vector that predicts each label, shape (B, T, D)."""
        inputs_BTD = self.matrix.embed_target(offset_by_one(target_BT, start=self.tokens.start))
        hidden_BTD: Tensor = self.decoder(inputs_BTD, self.start(source_BS).beams)[0]
        return hidden_BTD

    def start(self, source_BS: Tensor) -> BeamState:
        """Read the sources."""
        visible_BS, embedded_BSD = source_BS != self.tokens.padding, self.matrix.embed_source(source_BS)
        if self.config.reversed_source:
            visible_BS, embedded_BSD = visible_BS.flip(1), embedded_BSD.flip(1)
        return BeamState((), self.encoder(embedded_BSD, visible_BT=visible_BS)[1])

    def advance(self, state: BeamState, tokens_BW: Tensor) -> Tensor:
        """Feed each beam its newest token; return the vector that predicts the next, shape (B, W, D)."""
        return self.decoder.step(self.matrix.embed_target(tokens_BW), state.beams)

    def matrices(self) -> Iterable[MatrixView]:
        """Return every linear map, each gate a matrix of its own."""
        return matrix_views(self)
