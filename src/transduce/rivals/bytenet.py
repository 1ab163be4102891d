"""ByteNet, "Neural Machine Translation in Linear Time" (Kalchbrenner et al. 2016).

Dilated convolutions without attention: the distance that a block sees doubles from block to block, so two positions n
apart are about log n blocks apart, as Table 1 of the Transformer's paper says.

    block       x + W_3 ReLU(LN(W_2 * ReLU(LN(W_1 ReLU(LN(x))))))     widths 2d → d → d → 2d; W_2 is dilated
    encoder     centred blocks over the source, which zeros extend to a · n + b columns (dynamic unfolding)
    decoder     causal blocks over  E y_(t-1) + column t  (zeros beyond the last column)
    output      W ReLU(x) + b, ReLU, then the output matrix

The encoder's columns, added to the decoder's inputs, are all that it sees of the source. A target may be longer than
the columns. LayerNorm is over the channels of one position, so that no position sees a later one.

Departures: columns and embeddings are summed (the paper does not say how they are joined). By name: `tied` matrices,
`dropout`. Shapes: D is the width 2d between blocks, I = d inside, K the kernel, P = (K - 1) · dilation, L the columns.
"""

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn import functional

from transduce.networks.initialization import glorot_linear
from transduce.networks.network import MatrixView, Network, offset_by_one
from transduce.networks.output import Output
from transduce.rivals.bytenet_config import ByteNetConfig
from transduce.rivals.convolutions import Convolution, Side, empty_past, next_window, windows
from transduce.rivals.decoding_state import BeamState
from transduce.rivals.matrices import TokenMatrices, matrix_views
from transduce.special_tokens import OWN_SPECIAL_TOKENS, SpecialTokens


class DilatedBlock(nn.Module):
    """A residual block with one dilated convolution, narrower than its input."""

    def __init__(self, config: ByteNetConfig, *, dilation: int) -> None:
        super().__init__()
        wide, narrow = config.d_model, config.d_model // 2
        self.dilation, self.kernel = dilation, config.kernel
        self.norm_1, self.W_1 = nn.LayerNorm(wide), glorot_linear(wide, narrow)
        self.norm_2, self.W_2 = nn.LayerNorm(narrow), Convolution(narrow, narrow, kernel=config.kernel)
        self.norm_3, self.W_3 = nn.LayerNorm(narrow), glorot_linear(narrow, wide)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x_BTD: Tensor, *, side: Side, live_BT: Tensor | None = None) -> Tensor:
        """Return the block's output at all positions, shape (B, T, D); positions that are not live count as zeros."""
        narrow_BTI = self._narrowed(x_BTD)
        if live_BT is not None:
            narrow_BTI = narrow_BTI.masked_fill(~live_BT[..., None], 0.0)
        return self._widened(windows(narrow_BTI, kernel=self.kernel, dilation=self.dilation, side=side), x_BTD)

    def step(self, x_BWD: Tensor, past_BWPI: Tensor) -> tuple[Tensor, Tensor]:
        """Return the output for one more position of each beam, and the inputs to keep."""
        window_BWKI, past_BWPI = next_window(past_BWPI, self._narrowed(x_BWD), dilation=self.dilation)
        return self._widened(window_BWKI, x_BWD), past_BWPI

    def _narrowed(self, x_BTD: Tensor) -> Tensor:
        return self.norm_2(self.W_1(self.norm_1(x_BTD).relu())).relu()  # type: ignore[no-any-return]

    def _widened(self, windows_BTKI: Tensor, x_BTD: Tensor) -> Tensor:
        return x_BTD + self.dropout(self.W_3(self.norm_3(self.W_2(windows_BTKI)).relu()))  # type: ignore[no-any-return]


class ByteNet(Network):
    """The whole network: token ids in, the vector before the output matrix out.

    Its state holds the columns of each sentence, and the past inputs of each block of each beam.
    """

    config: ByteNetConfig

    def __init__(self, config: ByteNetConfig, tokens: SpecialTokens = OWN_SPECIAL_TOKENS) -> None:
        super().__init__(config, tokens)
        d = config.d_model
        self.matrix = TokenMatrices(config.vocabulary_size, (d, d), tied=config.tied, dropout=config.dropout)
        dilations = config.dilations * config.sets
        self.encoder = nn.ModuleList(DilatedBlock(config, dilation=dilation) for dilation in dilations)
        self.decoder = nn.ModuleList(DilatedBlock(config, dilation=dilation) for dilation in dilations)
        self.readout = glorot_linear(d, d)

    @property
    def output(self) -> Output:
        """The output matrix, without a bias."""
        return self.matrix.output

    def forward(self, source_BS: Tensor, target_BT: Tensor) -> Tensor:
        """Return the vector that predicts each label, shape (B, T, D)."""
        (columns_BLD,) = self.start(source_BS).sentences
        embedded_BTD = self.matrix.embed_target(offset_by_one(target_BT, start=self.tokens.start))
        missing = embedded_BTD.size(1) - columns_BLD.size(1)
        x_BTD = embedded_BTD + functional.pad(columns_BLD, (0, 0, 0, missing))  # a negative number cuts
        for block in self.decoder:
            x_BTD = block(x_BTD, side="causal")
        return self._read_out(x_BTD)

    def start(self, source_BS: Tensor) -> BeamState:
        """Make the columns of the sources."""
        visible_BS = source_BS != self.tokens.padding
        columns = [self.config.columns(length) for length in visible_BS.sum(dim=1).tolist()]
        longest = max(*columns, source_BS.size(1))
        live_BL = torch.arange(longest, device=source_BS.device) < source_BS.new_tensor(columns)[:, None]
        embedded_BSD = self.matrix.embed_source(source_BS).masked_fill(~visible_BS[..., None], 0.0)
        x_BLD = functional.pad(embedded_BSD, (0, 0, 0, longest - source_BS.size(1)))
        for block in self.encoder:
            x_BLD = block(x_BLD, side="centred", live_BT=live_BL)
        pasts = [
            empty_past(x_BLD, self.config.d_model // 2, kernel=self.config.kernel, dilation=dilation)
            for dilation in self.config.dilations * self.config.sets
        ]
        return BeamState((x_BLD.masked_fill(~live_BL[..., None], 0.0),), pasts)

    def advance(self, state: BeamState, tokens_BW: Tensor) -> Tensor:
        """Feed each beam its newest token; return the vector that predicts the next, shape (B, W, D)."""
        x_BWD, (columns_BLD,) = self.matrix.embed_target(tokens_BW), state.sentences
        if state.length < columns_BLD.size(1):
            x_BWD = x_BWD + columns_BLD[:, state.length, None]
        for place, block in enumerate(self.decoder):
            x_BWD, state.beams[place] = block.step(x_BWD, state.beams[place])  # type: ignore[operator]
        state.length += 1
        return self._read_out(x_BWD)

    def matrices(self) -> Iterable[MatrixView]:
        """Return every linear map, and each position of every kernel as a matrix of its own."""
        return matrix_views(self)

    def _read_out(self, x_BTD: Tensor) -> Tensor:
        return self.readout(x_BTD.relu()).relu()  # type: ignore[no-any-return]
