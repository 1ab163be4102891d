"""The Extended Neural GPU, "Can Active Memory Replace Attention?" (Kaiser and Bengio 2016).

Active memory (section 2 of the Transformer's paper): instead of attending to parts of a memory, every step updates all
of it at once by a gated convolution. The state has N positions, w rows each, and m maps.

    gated       CGRU(s) = u ⊙ s + (1 - u) ⊙ tanh(U * (r ⊙ s) + B),  u, r = σ'(U' * s + B'),
                σ'(x) = min(1, max(0, 1.2 σ(x) - 0.1)),  B' = 1 at first
    encoder     s_0 = LN(E x) in the first row, zeros elsewhere; then N steps through all layers with the same weights
    decoder     d_0 = s_N; step i: d_(i+1) = CGRU(d_i, p_i), where the tape p has matrices of its own in all three maps;
                the output is d_(i+1) at position i of the first row; the symbol's embedding is then written to p there

N = ⌈a · n⌉ + b follows from the source alone; a longer target cannot be written, and training leaves such pairs out. A
step costs a convolution over the whole state, and no step can begin before the last has ended, also in training.

Departures: embeddings are m wide, without a map to m; no scheduled sampling; orthogonal kernels without a gain. By
name: `tied` matrices. Shapes: M maps, N positions, H height, U = M times the gates of a kernel.
"""

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn import functional

from transduce.errors import DataError
from transduce.networks.network import MatrixView, Network
from transduce.networks.output import Output
from transduce.rivals.decoding_state import BeamState
from transduce.rivals.matrices import StackedLinear, TokenMatrices, matrix_views
from transduce.rivals.neural_gpu_config import NeuralGpuConfig
from transduce.special_tokens import OWN_SPECIAL_TOKENS, SpecialTokens


class Kernel(StackedLinear):
    """Convolutions over positions and height, a matrix for each place of the kernel and each gate."""

    def __init__(self, config: NeuralGpuConfig, *, gates: int) -> None:
        m, places = config.d_model, config.kernel * config.kernel_height
        super().__init__(m, m, blocks=places * gates, bias=False, draw="orthogonal")
        self.places = (config.kernel, config.kernel_height)
        with torch.no_grad():
            self.weight.mul_(1.0 / math.sqrt(places))  # so that the sum over places keeps the length of its input

    def forward(self, state_BMNH: Tensor) -> Tensor:
        """Return the convolution of every gate, shape (B, U, N, H)."""
        along, height = self.places
        weight = self.weight.view(along, height, -1, self.in_features).permute(2, 3, 0, 1)
        return functional.conv2d(state_BMNH, weight, padding=(along // 2, height // 2))


class GatedConvolution(nn.Module):
    """A gated update of the whole state; in the decoder, the tape enters its three maps."""

    def __init__(self, config: NeuralGpuConfig, *, has_tape: bool) -> None:
        super().__init__()
        m = config.d_model
        self.gates, self.candidate = Kernel(config, gates=2), Kernel(config, gates=1)
        self.gates_bias, self.candidate_bias = nn.Parameter(torch.ones(2 * m)), nn.Parameter(torch.zeros(m))
        if has_tape:
            self.tape = Kernel(config, gates=3)

    def forward(self, state_BMNH: Tensor, tape_BMNH: Tensor | None = None) -> Tensor:
        """Return the next state, shape (B, M, N, H)."""
        of_gates = self.gates(state_BMNH) + self.gates_bias[:, None, None]
        of_candidate = self.candidate_bias[:, None, None]
        if tape_BMNH is not None:
            from_tape = self.tape(tape_BMNH)
            size = state_BMNH.size(1)
            of_gates, of_candidate = of_gates + from_tape[:, : 2 * size], of_candidate + from_tape[:, 2 * size :]
        update, reset = (1.2 * of_gates.sigmoid() - 0.1).clamp(0.0, 1.0).chunk(2, dim=1)
        candidate = (self.candidate(reset * state_BMNH) + of_candidate).tanh()
        next_BMNH: Tensor = candidate + update * (state_BMNH - candidate)
        return next_BMNH


class NeuralGpu(Network):
    """The whole network: token ids in, the first row of the state at each label's own position out.

    Its state holds which positions are live in each sentence, and the state and the tape of each beam.
    """

    config: NeuralGpuConfig

    def __init__(self, config: NeuralGpuConfig, tokens: SpecialTokens = OWN_SPECIAL_TOKENS) -> None:
        super().__init__(config, tokens)
        m = config.d_model
        self.matrix = TokenMatrices(config.vocabulary_size, (m, m), tied=config.tied)
        self.norm = nn.LayerNorm(m)
        self.encoder = nn.ModuleList(GatedConvolution(config, has_tape=False) for _ in range(config.layers))
        self.decoder = nn.ModuleList(GatedConvolution(config, has_tape=True) for _ in range(config.layers))

    @property
    def output(self) -> Output:
        """The output matrix, without a bias."""
        return self.matrix.output

    def longest_target(self, source_length: int) -> int | None:
        """Return N, the positions of the state."""
        return self.config.state_positions(source_length)

    def forward(self, source_BS: Tensor, target_BT: Tensor) -> Tensor:
        """Return the vector that predicts each label, shape (B, T, M)."""
        state = self.start(source_BS)
        (live_BN,), (state_BWMNH, _) = state.sentences, state.beams
        self._refuse_long(target_BT, live_BN)
        embedded_BTM = self.matrix.embed_target(target_BT)
        whole_BMNH = self._as_state(embedded_BTM, live_BN.size(1)).expand(-1, -1, -1, self.config.height)
        place_N1 = torch.arange(live_BN.size(1), device=target_BT.device)[:, None]
        state_BMNH, outputs = state_BWMNH[:, 0], []
        for step in range(target_BT.size(1)):
            state_BMNH = self._step(self.decoder, state_BMNH, live_BN, whole_BMNH * (place_N1 < step))
            outputs.append(state_BMNH[:, :, step, 0])
        return torch.stack(outputs, dim=1)

    def start(self, source_BS: Tensor) -> BeamState:
        """Read the sources: as many steps as the state has positions."""
        visible_BS = source_BS != self.tokens.padding
        sizes = [self.config.state_positions(length) for length in visible_BS.sum(dim=1).tolist()]
        sizes_B = source_BS.new_tensor(sizes)
        positions = max(*sizes, source_BS.size(1))
        live_BN = torch.arange(positions, device=source_BS.device) < sizes_B[:, None]
        embedded_BSM = self.norm(self.matrix.embed_source(source_BS)).masked_fill(~visible_BS[..., None], 0.0)
        state_BMNH = functional.pad(self._as_state(embedded_BSM, positions), (0, self.config.height - 1))
        for step in range(max(sizes)):
            next_BMNH = self._step(self.encoder, state_BMNH, live_BN)
            state_BMNH = torch.where((step < sizes_B)[:, None, None, None], next_BMNH, state_BMNH)
        return BeamState((live_BN,), [state_BMNH[:, None], torch.zeros_like(state_BMNH)[:, None]])

    def advance(self, state: BeamState, tokens_BW: Tensor) -> Tensor:
        """Write each beam's newest token to its tape; return the vector that predicts the next, shape (B, W, M)."""
        (live_BN,), (state_BWMNH, tape_BWMNH) = state.sentences, state.beams
        if state.length:  # the first token is the start token, which is not written
            embedded_BWM11 = self.matrix.embed_target(tokens_BW)[..., None, None]
            is_here_N1 = (torch.arange(live_BN.size(1), device=tokens_BW.device) == state.length - 1)[:, None]
            tape_BWMNH = torch.where(is_here_N1, embedded_BWM11, tape_BWMNH)
        live_RN = live_BN.repeat_interleave(tokens_BW.size(1), dim=0)
        next_RMNH = self._step(self.decoder, state_BWMNH.flatten(end_dim=1), live_RN, tape_BWMNH.flatten(end_dim=1))
        state.beams = [next_RMNH.view_as(state_BWMNH), tape_BWMNH]
        state.length += 1
        return state.beams[0][..., state.length - 1, 0]

    def matrices(self) -> Iterable[MatrixView]:
        """Return each gate at each place of every kernel as a matrix of its own."""
        return matrix_views(self)

    def _step(
        self, layers: nn.ModuleList, state_BMNH: Tensor, live_BN: Tensor, tape_BMNH: Tensor | None = None
    ) -> Tensor:
        """Return the state after all layers; positions that are not live stay zero."""
        live_B1N1 = live_BN[:, None, :, None].to(state_BMNH.dtype)
        for layer in layers:
            state_BMNH = layer(state_BMNH, tape_BMNH) * live_B1N1
        share = min(0.5, self.config.dropout * 3.0 / math.sqrt(live_BN.size(1)))
        return functional.dropout(state_BMNH, share, training=self.training)

    def _as_state(self, embedded_BTM: Tensor, positions: int) -> Tensor:
        """Return embeddings as the first row of a state, shape (B, M, N, 1)."""
        padded_BNM = functional.pad(embedded_BTM, (0, 0, 0, positions - embedded_BTM.size(1)))
        return padded_BNM.mT[..., None]

    def _refuse_long(self, target_BT: Tensor, live_BN: Tensor) -> None:
        lengths_B, sizes_B = (target_BT != self.tokens.padding).sum(dim=1), live_BN.sum(dim=1)
        if bool((lengths_B > sizes_B).any()):
            raise DataError(
                f"A target of {int(lengths_B[lengths_B > sizes_B][0])} tokens is longer than this network can write "
                "for its source (model.length_factor, model.length_extra). Leave the pair out."
            )
