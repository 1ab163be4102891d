"""RNNsearch, "Neural Machine Translation by Jointly Learning to Align and Translate" (Bahdanau et al. 2015).

Attention over a recurrent encoder: the additive attention that section 3.2.1 of the Transformer's paper compares with.
Two gated recurrent units (`recurrent.py`) read the source in both directions and leave an annotation h_j = [h→_j; h←_j]
for each token. The decoder is a third unit: at position t it compares its state s_(t-1) with every annotation and reads
their weighted mean c_t.

    start         s_0 = tanh(W_s h←_1 + b)
    alignment     e_tj = v · tanh(W_a s_(t-1) + U_a h_j),  a_t = softmax_j(e_tj),  c_t = Σ_j a_tj h_j
    state         s_t = gated unit of x = [E y_(t-1); c_t] and s_(t-1)
    output        maxout over neighbouring pairs of U_o s_(t-1) + V_o E y_(t-1) + C_o c_t, then the output matrix

Departures by name: `tied` matrices, `dropout` on the embeddings and before the output matrix, `initialization`.

Shapes: D is the width of a state, N = 2 D that of an annotation, E of an embedding, A of the alignment, G = 3 D of the
gates, O of the output.
"""

from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor, nn

from transduce.networks.attention_block import AttentionBlock
from transduce.networks.initialization import glorot_linear
from transduce.networks.network import MatrixView, Network, offset_by_one
from transduce.networks.output import Output
from transduce.rivals.decoding_state import BeamState
from transduce.rivals.matrices import StackedLinear, TokenMatrices, matrix_views
from transduce.rivals.recurrent import AdditiveAttention, GatedUnit, empty_state, unrolled
from transduce.rivals.rnnsearch_config import RnnSearchConfig
from transduce.special_tokens import OWN_SPECIAL_TOKENS, SpecialTokens


class RnnSearch(Network):
    """The whole network: token ids in, the vector before the output matrix out.

    Its state holds annotations, keys and visibility of each sentence, and the recurrent state of each beam.
    """

    config: RnnSearchConfig

    def __init__(self, config: RnnSearchConfig, tokens: SpecialTokens = OWN_SPECIAL_TOKENS) -> None:
        super().__init__(config, tokens)
        d, e, o = config.d_model, config.embedding_width, config.output_width
        self.matrix = TokenMatrices(
            config.vocabulary_size,
            (e, o),
            tied=config.tied,
            dropout=config.dropout,
            source_rows=config.source_vocabulary_size,
        )
        self.reader, self.backward_reader = GatedUnit(e, d), GatedUnit(e, d)
        self.first_state = glorot_linear(d, d)
        self.alignment = AdditiveAttention(d, 2 * d, hidden=config.alignment_width)
        self.writer = GatedUnit(e, d)
        self.writer_context = StackedLinear(2 * d, d, blocks=3, bias=False)
        self.readout = glorot_linear(d + e + 2 * d, 2 * o)
        self.dropout = nn.Dropout(config.dropout)
        if {"glorot": False, "paper": True}[config.initialization]:
            self._draw_as_the_paper()

    @property
    def output(self) -> Output:
        """The output matrix, without a bias."""
        return self.matrix.output

    def forward(self, source_BS: Tensor, target_BT: Tensor) -> Tensor:
        """Return the vector that predicts each label, shape (B, T, O)."""
        return self._read_out(*self._decode(self.start(source_BS), target_BT)[:3])

    def start(self, source_BS: Tensor) -> BeamState:
        """Read the sources in both directions."""
        visible_BS = source_BS != self.tokens.padding
        embedded_BSE = self.matrix.embed_source(source_BS)
        zeros_B1D = empty_state(self.reader, embedded_BSE)
        forward_BSD = unrolled(self.reader, embedded_BSE, zeros_B1D, visible_BS)
        backward_BSD = unrolled(self.backward_reader, embedded_BSE.flip(1), zeros_B1D, visible_BS.flip(1)).flip(1)
        annotations_BSN = torch.cat([forward_BSD, backward_BSD], dim=-1)
        state_BWD = self.first_state(backward_BSD[:, :1]).tanh()
        return BeamState((annotations_BSN, self.alignment.U_a(annotations_BSN), visible_BS), [state_BWD])

    def advance(self, state: BeamState, tokens_BW: Tensor) -> Tensor:
        """Feed each beam its newest token; return the vector that predicts the next, shape (B, W, O)."""
        embedded_BWE = self.matrix.embed_target(tokens_BW)
        before_BWD = state.beams[0]
        context_BWN, _ = self._attend(state, before_BWD)
        state.beams[0] = self._write(self.writer.input(embedded_BWE), context_BWN, before_BWD)
        return self._read_out(before_BWD, embedded_BWE, context_BWN)

    @torch.no_grad()
    def attention(self, source: Sequence[int], target: Sequence[int]) -> Mapping[str, AttentionBlock]:
        """Return the alignment as one layer with one head; its queries are W_a s, its keys U_a h, its values h."""
        device = self.output.matrix_VD.device
        state = self.start(torch.tensor([list(source)], device=device))
        before_BTD, _, _, weights_BTS = self._decode(state, torch.tensor([list(target)], device=device))
        annotations_BSN, keys_BSA, _ = state.sentences
        projections = self.alignment.projections(before_BTD, keys_BSA, annotations_BSN)
        return {"cross": AttentionBlock("target", "source", weights_BTS[None], projections)}

    def matrices(self) -> Iterable[MatrixView]:
        """Return every linear map, each gate a matrix of its own."""
        return matrix_views(self)

    def _decode(self, state: BeamState, target_BT: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the states before each label, the embeddings read there, the contexts and the weights."""
        embedded_BTE = self.matrix.embed_target(offset_by_one(target_BT, start=self.tokens.start))
        now_BWD, befores, contexts, weights = state.beams[0], [], [], []
        for projected_BWG in self.writer.input(embedded_BTE).split(1, dim=1):
            context_BWN, weights_BWS = self._attend(state, now_BWD)
            befores.append(now_BWD)
            contexts.append(context_BWN)
            weights.append(weights_BWS)
            now_BWD = self._write(projected_BWG, context_BWN, now_BWD)
        return torch.cat(befores, dim=1), embedded_BTE, torch.cat(contexts, dim=1), torch.cat(weights, dim=1)

    def _attend(self, state: BeamState, query_BWD: Tensor) -> tuple[Tensor, Tensor]:
        """Return the context of each beam, which is its weighted mean of the annotations, and the weights."""
        annotations_BSN, keys_BSA, visible_BS = state.sentences
        weights_BWS = self.alignment.weights(query_BWD, keys_BSA, visible_BS).to(annotations_BSN.dtype)
        return weights_BWS @ annotations_BSN, weights_BWS

    def _write(self, projected_BWG: Tensor, context_BWN: Tensor, state_BWD: Tensor) -> Tensor:
        next_BWD: Tensor = self.writer(projected_BWG + self.writer_context(context_BWN), state_BWD)
        return next_BWD

    def _read_out(self, state_BTD: Tensor, embedded_BTE: Tensor, context_BTN: Tensor) -> Tensor:
        pairs_BTO2: Tensor = self.readout(torch.cat([state_BTD, embedded_BTE, context_BTN], dim=-1)).unflatten(
            -1, (-1, 2)
        )
        hidden_BTO: Tensor = self.dropout(pairs_BTO2.amax(dim=-1))
        return hidden_BTO

    @torch.no_grad()
    def _draw_as_the_paper(self) -> None:
        if self.output.matrix_VD.is_meta:
            return
        for name, parameter in self.named_parameters():
            if name.endswith(("bias", "v_A")):
                parameter.zero_()
            elif ".gates." not in name and ".candidate." not in name:
                parameter.normal_(std=0.001 if name.startswith("alignment.") else 0.01)
