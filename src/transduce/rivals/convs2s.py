"""ConvS2S, "Convolutional Sequence to Sequence Learning" (Gehring et al. 2017).

A layer computes all positions at once, as in the Transformer, but each sees only k neighbours. Every decoder layer
attends to the source, as later in the Transformer.

    inputs       e_j = E x_j + P_j  (source),  g_i = E y_i + P_i  (target); linear maps to the first layer's width
    layer        GLU(W * x + b) with GLU([A; B]) = A ⊙ σ(B),  then (x + its input) · √½
    encoder      z = linear map of the last layer to the embeddings' width; keys z_j, values (z_j + e_j) · √½
    attention    in every decoder layer, after its GLU: d_i = (W_d h_i + b_d + g_i) · √½,  a_i = softmax_j(d_i · z_j),
                 h_i ← (W_c √n Σ_j a_ij value_j + b_c + h_i) · √½,  n the tokens of the source
    output       linear map to the output's width, then the output matrix

Convolutions are centred in the encoder and causal in the decoder. All maps are weight-normalised, w = g v / ‖v‖ with
one length g for each output. The encoder's gradient is divided by twice the number of attention layers.

Departure by name: `tied` matrices. Shapes: D is a layer's width, E an embedding's, K a kernel's, P = K - 1 inputs kept.
"""

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from transduce.errors import DataError
from transduce.networks.attention_block import AttentionBlock, Projections
from transduce.networks.network import Network, offset_by_one
from transduce.networks.output import Output
from transduce.rivals.convolutions import Side, empty_past, next_window, windows
from transduce.rivals.convs2s_config import ConvS2SConfig
from transduce.rivals.decoding_state import BeamState
from transduce.rivals.matrices import TokenMatrices
from transduce.rivals.recurrent import visible_softmax
from transduce.special_tokens import OWN_SPECIAL_TOKENS, SpecialTokens

HALF = math.sqrt(0.5)
EMBEDDING_STD = 0.1


class NormalizedMap(nn.Module):
    """A linear map of a window, w = g v / ‖v‖, drawn so that the variance of its output is `gain` times its input's."""

    def __init__(self, inputs: int, outputs: int, *, kernel: int = 1, gain: float = 1.0) -> None:
        super().__init__()
        direction = torch.empty(outputs, kernel * inputs)
        if not direction.is_meta:
            nn.init.normal_(direction, std=math.sqrt(gain / (kernel * inputs)))
        self.v, self.g = nn.Parameter(direction), nn.Parameter(direction.norm(dim=1))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the map of inputs, or of windows flattened to one axis."""
        return functional.linear(inputs, self.v * (self.g / self.v.norm(dim=1))[:, None], self.bias)


class GatedLayer(nn.Module):
    """A convolution to twice the width and a gate over it; `skip` maps the input for the residual sum."""

    def __init__(self, inputs: int, width: int, *, kernel: int, dropout: float) -> None:
        super().__init__()
        self.kernel, self.dropout = kernel, nn.Dropout(dropout)
        self.convolution = NormalizedMap(inputs, 2 * width, kernel=kernel, gain=4.0 * (1.0 - dropout))
        self.skip = nn.Identity() if inputs == width else NormalizedMap(inputs, width)

    def forward(self, inputs_BTD: Tensor, *, side: Side) -> Tensor:
        """Return the gated outputs of all positions, shape (B, T, D)."""
        return self.gated(windows(self.dropout(inputs_BTD), kernel=self.kernel, side=side))

    def gated(self, windows_BTKD: Tensor) -> Tensor:
        """Return the gated output of each window, shape (B, T, D)."""
        return functional.glu(self.convolution(windows_BTKD.flatten(start_dim=2)), dim=-1)


class AttendingLayer(GatedLayer):
    """A gated layer of the decoder, with its maps into and out of the attention."""

    def __init__(self, inputs: int, width: int, *, kernel: int, dropout: float, embedding: int) -> None:
        super().__init__(inputs, width, kernel=kernel, dropout=dropout)
        self.W_d, self.W_c = NormalizedMap(width, embedding), NormalizedMap(embedding, width)


class ConvS2S(Network):
    """The whole network: token ids in, the vector before the output matrix out.

    Its state holds keys, values and visibility of each sentence, and the past inputs of each layer of each beam.
    """

    config: ConvS2SConfig

    def __init__(self, config: ConvS2SConfig, tokens: SpecialTokens = OWN_SPECIAL_TOKENS) -> None:
        super().__init__(config, tokens)
        e, p = config.d_model, config.dropout
        self.matrix = TokenMatrices(config.vocabulary_size, (e, config.output_width), tied=config.tied)
        self.source_positions, self.target_positions = (nn.Parameter(torch.zeros(config.positions, e)) for _ in "st")
        for table in (self.matrix.source_VE, self.matrix.target_VE, self.source_positions, self.target_positions):
            if not table.is_meta:
                nn.init.normal_(table, std=EMBEDDING_STD)
        encoder, decoder = config.encoder, config.decoder
        self.encoder_in = NormalizedMap(e, encoder[0][0], gain=1.0 - p)
        inputs = [encoder[0][0], *(width for width, _ in encoder)]
        self.encoder = nn.ModuleList(
            GatedLayer(before, width, kernel=k, dropout=p) for before, (width, k) in zip(inputs, encoder, strict=False)
        )
        self.encoder_out = NormalizedMap(inputs[-1], e)
        self.decoder_in = NormalizedMap(e, decoder[0][0], gain=1.0 - p)
        inputs = [decoder[0][0], *(width for width, _ in decoder)]
        self.decoder = nn.ModuleList(
            AttendingLayer(before, width, kernel=k, dropout=p, embedding=e)
            for before, (width, k) in zip(inputs, decoder, strict=False)
        )
        self.decoder_out = NormalizedMap(inputs[-1], config.output_width)
        self.dropout = nn.Dropout(p)

    @property
    def output(self) -> Output:
        """The output matrix, without a bias."""
        return self.matrix.output

    def forward(self, source_BS: Tensor, target_BT: Tensor) -> Tensor:
        """Return the vector that predicts each label, shape (B, T, O)."""
        return self._decode(self.start(source_BS), target_BT)[0]

    def start(self, source_BS: Tensor) -> BeamState:
        """Encode the sources."""
        visible_BS = source_BS != self.tokens.padding
        seen_BS1 = visible_BS[..., None]
        embedded_BSE = self._place(self.matrix.embed_source(source_BS), self.source_positions)
        x_BSD = self.encoder_in(embedded_BSE)
        for layer in self.encoder:
            x_BSD = x_BSD.masked_fill(~seen_BS1, 0.0)
            x_BSD = (layer(x_BSD, side="centred") + layer.skip(x_BSD)) * HALF  # type: ignore[operator]
        z_BSE = self.encoder_out(x_BSD).masked_fill(~seen_BS1, 0.0)
        # The same numbers with a smaller gradient: the part that is not detached is 1 / (2 layers) of the whole.
        share = 1.0 / (2 * len(self.decoder))
        z_BSE = z_BSE * share + z_BSE.detach() * (1.0 - share)
        pasts = [empty_past(x_BSD, layer.convolution.v.size(1) // k, kernel=k) for layer, k in self._kernels()]
        return BeamState((z_BSE, (z_BSE + embedded_BSE) * HALF, visible_BS), pasts)

    def advance(self, state: BeamState, tokens_BW: Tensor) -> Tensor:
        """Feed each beam its newest token; return the vector that predicts the next, shape (B, W, O)."""
        embedded_BWE = self._place(self.matrix.embed_target(tokens_BW), self.target_positions, at=state.length)
        x_BWD = self.decoder_in(embedded_BWE)
        for place, (layer, _) in enumerate(self._kernels()):
            window_BWKD, state.beams[place] = next_window(state.beams[place], layer.dropout(x_BWD))
            hidden_BWD, _, _ = self._attend(state, layer, layer.gated(window_BWKD), embedded_BWE)
            x_BWD = (hidden_BWD + layer.skip(x_BWD)) * HALF
        state.length += 1
        return self.dropout(self.decoder_out(x_BWD))  # type: ignore[no-any-return]

    @torch.no_grad()
    def attention(self, source: Sequence[int], target: Sequence[int]) -> Mapping[str, AttentionBlock]:
        """Return the attention of every decoder layer, each with one head."""
        device = self.output.matrix_VD.device
        state = self.start(torch.tensor([list(source)], device=device))
        _, queries, weights = self._decode(state, torch.tensor([list(target)], device=device))
        key_BSE, value_BSE, _ = (each.expand(len(queries), *each.shape[1:])[:, None] for each in state.sentences)
        projections = Projections(torch.cat(queries)[:, None], key_BSE, value_BSE, "unscaled", scale=1.0)
        return {"cross": AttentionBlock("target", "source", torch.cat(weights)[:, None], projections)}

    def _kernels(self) -> list[tuple[AttendingLayer, int]]:
        layers: list[AttendingLayer] = [layer for layer in self.decoder if isinstance(layer, AttendingLayer)]
        return [(layer, layer.kernel) for layer in layers]

    def _place(self, embedded_BTE: Tensor, table_TE: Tensor, *, at: int | None = None) -> Tensor:
        """Add the positions from 0 on, or position `at`, which all beams share, and apply dropout."""
        last = embedded_BTE.size(1) if at is None else at + 1
        if last > table_TE.size(0):
            raise DataError(
                f"A sentence of {last} tokens is longer than the {table_TE.size(0)} positions that this model has "
                "learned. Split it, or train with more model.positions."
            )
        positions_TE = table_TE[:last] if at is None else table_TE[at]
        return self.dropout(embedded_BTE + positions_TE)  # type: ignore[no-any-return]

    def _decode(self, state: BeamState, target_BT: Tensor) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """Return the vectors before the output matrix, and the queries and weights of each layer."""
        inputs_BT = offset_by_one(target_BT, start=self.tokens.start)
        embedded_BTE = self._place(self.matrix.embed_target(inputs_BT), self.target_positions)
        x_BTD, queries, weights = self.decoder_in(embedded_BTE), [], []
        for layer, _ in self._kernels():
            hidden_BTD, query_BTE, weights_BTS = self._attend(state, layer, layer(x_BTD, side="causal"), embedded_BTE)
            x_BTD = (hidden_BTD + layer.skip(x_BTD)) * HALF
            queries.append(query_BTE)
            weights.append(weights_BTS)
        return self.dropout(self.decoder_out(x_BTD)), queries, weights

    def _attend(
        self, state: BeamState, layer: AttendingLayer, hidden_BTD: Tensor, embedded_BTE: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return a layer's outputs with their contexts, its queries and its weights."""
        keys_BSE, values_BSE, visible_BS = state.sentences
        query_BTE = (layer.W_d(hidden_BTD) + embedded_BTE) * HALF
        weights_BTS = visible_softmax(query_BTE @ keys_BSE.mT, visible_BS)
        count_B11 = visible_BS.sum(dim=1)[:, None, None].to(hidden_BTD.dtype)
        context_BTE = weights_BTS @ values_BSE * count_B11.sqrt()
        return (layer.W_c(context_BTE) + hidden_BTD) * HALF, query_BTE, weights_BTS
