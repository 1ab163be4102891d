"""The trained network frozen for translation in int8: all weights packed, all that is between them fused.

It is the network of section 3, one position at a time, and satisfies what the search needs (`start`, `step`, `select`):

- Sources are not padded: the tokens of a batch stand in one list, and each looks at its own sentence's alone.
- q, k and v come from one product; what the decoder needs of the source is computed once and shared by its beams.
- Where the kernels are ours, a position is one call: what it does is noted once as a program and run again, until a
  sentence leaves or a table moves.
- Keys and values, in bf16, stay where they were written. A beam that continues another takes over the list of places
  (`slots`) in which its past lies, so nothing is copied when the search reorders its beams or a sentence leaves. When
  their tables are full, what no beam looks back at is left behind: beams of a sentence share most of their past.

The scores' scale, 1 / √d_k, is part of the queries' weights. Embeddings are int8 rows, gathered; the output layer has
the same ones, and where the kernels are ours they lie there once, packed for the product.
"""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from transduce.engine.backend import AnyProduct, Backend, fastest_backend
from transduce.engine.calls import Program
from transduce.engine.fused_kernels import FusedKernels
from transduce.engine.int8_state import Int8State, Rows
from transduce.engine.vnni_products import GROUP
from transduce.model.config import ModelConfig
from transduce.model.positional_encoding import concatenated_positions, sinusoidal_positions
from transduce.networks.network import NetworkConfig
from transduce.networks.stepwise import Booleans, Ids, LogProbabilities
from transduce.special_tokens import OWN_SPECIAL_TOKENS, SpecialTokens

ENCODED_AT_ONCE = 1024  # tokens; more would be no faster, and what is between two products would leave the caches
FIRST_STEPS = 24  # positions for whose places there is room at first; it doubles when it is full
NEXT_STEPS = 8  # positions for whose keys and values there is room, before those that no beam looks at are left behind
FEW_PLACES = 256  # for as many keys and values there is always room: a sentence alone then seldom needs more


def obstacle(config: NetworkConfig) -> str | None:
    """Return what of a network has no int8 form here, or None."""
    if not isinstance(config, ModelConfig):
        return type(config).__name__
    if config.scores == "additive":
        return 'scores = "additive"'
    if config.query_width != config.value_width:
        return "d_k and d_v that differ"
    return None


@dataclass(frozen=True)
class _Norm:
    gain: Tensor
    bias: Tensor


@dataclass(frozen=True)
class _Layer:
    """The products of one layer in the order in which they are taken, and its norms."""

    qkv: AnyProduct
    own_output: AnyProduct
    own_norm: _Norm
    inner: AnyProduct
    outer: AnyProduct
    feed_norm: _Norm


@dataclass(frozen=True)
class _Cross:
    """A decoder layer's attention over the source: what the source gives, what the target asks."""

    memory: AnyProduct
    query: AnyProduct
    output: AnyProduct
    norm: _Norm


class Int8Network:
    """The network, ready to be searched."""

    def __init__(
        self,
        parameters: Mapping[str, Tensor],
        config: ModelConfig,
        tokens: SpecialTokens = OWN_SPECIAL_TOKENS,
        *,
        backend: Backend | None = None,
    ) -> None:
        backend = backend or fastest_backend()
        assert obstacle(config) is None, f"ask `obstacle` first: {obstacle(config)}"
        assert backend is not None, "ask `fastest_backend` first"
        self.config, self.tokens = config, tokens
        self.backend, self.kernels = backend, backend.kernels
        self._is_pre = config.norm == "pre"
        widths = (config.d_model, config.heads * config.query_width, config.d_ff)
        # An odd width is padded by torch before a product, which a program cannot do.
        self._has_programs = isinstance(self.kernels, FusedKernels) and not any(width % GROUP for width in widths)
        self._read_embeddings(parameters)
        self._encoder = [self._layer(parameters, f"encoder.layers.{n}") for n in range(config.encoder_depth)]
        self._decoder = [self._layer(parameters, f"decoder.layers.{n}") for n in range(config.decoder_depth)]
        self._cross = [self._cross_layer(parameters, f"decoder.layers.{n}") for n in range(config.decoder_depth)]
        if self._is_pre:
            self._final = [_norm(parameters, f"{stack}.final_norm") for stack in ("encoder", "decoder")]
        self._positions = [
            _positions(config, parameters.get(f"{s}.positions.table_TD")) for s in ("encoder", "decoder")
        ]

    @property
    def source_padding(self) -> int:
        """The padding that both sides share."""
        return self.tokens.padding

    def longest_target(self, source_length: int) -> int | None:
        """Return the number of learned positions; sinusoids have no bound."""
        return self.config.learned_positions if self.config.positions == "learned" else None

    def start(self, source_BS: Ids) -> Int8State:
        """Encode the sources and keep what the decoder needs of them."""
        lengths_B = torch.from_numpy((source_BS != self.source_padding).sum(axis=1))
        starts_B = lengths_B.cumsum(dim=0) - lengths_B
        shape = (2, int(lengths_B.sum()), self.config.heads * self.config.query_width)
        cross = [torch.empty(shape, dtype=torch.bfloat16) for _ in self._cross]
        for first, last in _parts(lengths_B.tolist()):
            begin = int(starts_B[first])
            part = [tables[:, begin : begin + int(lengths_B[first:last].sum())] for tables in cross]
            self._encode(torch.from_numpy(source_BS[first:last]), lengths_B[first:last], part)
        return Int8State([(tables[0], tables[1]) for tables in cross], starts_B, lengths_B)

    def _encode(self, source_BS: Tensor, lengths_B: Tensor, cross: list[Tensor]) -> None:
        """Encode some sentences and write what each decoder layer needs of them into its keys and values."""
        is_token = source_BS != self.source_padding
        starts_B = lengths_B.cumsum(dim=0) - lengths_B
        tokens_N, places_N = source_BS[is_token], is_token.nonzero()[:, 1].contiguous()
        rows = Rows.make(len(tokens_N), self.config)
        k, longest = self.kernels, int(lengths_B.max())
        k.embed(tokens_N, *self._source, self._table(0, longest), places_N, rows.x)
        places = torch.arange(longest)
        starts_N, lengths_N = starts_B.repeat_interleave(lengths_B), lengths_B.repeat_interleave(lengths_B)
        heads, mixed = self.config.heads, rows.heads
        keys, values = torch.empty(2, *mixed.shape, dtype=torch.bfloat16)
        self._enter(k, rows, self._encoder[0].own_norm)
        for layer, next_norm in _with_next(self._encoder, self._final[0] if self._is_pre else None):
            raw, scale, offset = k.multiply(layer.qkv, rows.model), rows.scale, layer.qkv.offset
            k.encoder_attend(raw, scale, offset, keys, values, starts_N, lengths_N, places, heads, mixed, scale)
            self._leave(k, rows, layer.own_output, layer.own_norm, rows.heads, layer.feed_norm)
            self._feed(k, rows, layer, next_norm)
        for layer_cross, tables in zip(self._cross, cross, strict=True):
            memory = layer_cross.memory
            k.rescale(k.multiply(memory, rows.model), rows.scale, memory.offset, tables[0], tables[1])

    def step(self, state: Int8State, tokens_BW: Ids) -> LogProbabilities:
        """Decode one position more of every beam."""
        rows = self._make_room(state, tokens_BW.size)
        rows.tokens.numpy()[:] = tokens_BW.reshape(-1)
        rows.positions.fill_(state.length)
        state.length += 1
        state.where.numpy()[:] = state.used, state.length
        if not self._has_programs:
            self._decode(self.kernels, state, rows)
        else:
            if state.program is None:
                state.program = Program()
                self._decode(FusedKernels(state.program), state, rows)
            state.program.run()
        state.used += len(rows.x)
        log_probabilities_BWV: LogProbabilities = state.logits_RV.numpy().reshape(*tokens_BW.shape, -1)
        return log_probabilities_BWV

    def _decode(self, k: Any, state: Int8State, rows: Rows) -> None:  # noqa: ANN401 - a module or an object
        """Compute log-probabilities of the rows' next tokens, or note in a program how."""
        heads, scale, mixed = self.config.heads, rows.scale, rows.heads
        k.embed(rows.tokens, *self._target, self._positions[1], rows.positions, rows.x)
        self._enter(k, rows, self._decoder[0].own_norm)
        layers = _with_next(self._decoder, self._final[1] if self._is_pre else None)
        for number, (layer, next_norm) in enumerate(layers):
            (keys, values), cross, slots = state.past[number], self._cross[number], state.slots_RK
            raw, offset = k.multiply(layer.qkv, rows.model), layer.qkv.offset
            k.self_attend(raw, scale, offset, keys, values, state.where, slots, heads, mixed, scale)
            self._leave(k, rows, layer.own_output, layer.own_norm, rows.heads, cross.norm)
            raw, offset = k.multiply(cross.query, rows.model), cross.query.offset
            (keys, values), starts, lengths = state.cross[number], state.starts_R, state.lengths_R
            k.cross_attend(raw, scale, offset, keys, values, starts, lengths, state.places, heads, mixed, scale)
            self._leave(k, rows, cross.output, cross.norm, rows.heads, layer.feed_norm)
            self._feed(k, rows, layer, next_norm)
        if state.outputs is None:
            k.multiply(self._output, rows.model, state.logits_RV)
        else:
            count = len(rows.x) // len(state.outputs)
            for output, own, logits in zip(
                state.outputs, rows.model.split(count), state.logits_RV.split(count), strict=True
            ):
                k.multiply(output, own, logits)
            k.hide(state.logits_RV, state.is_padding_BL)
        k.log_softmax(state.logits_RV, scale)

    def restrict(self, state: Int8State, lists_BL: Ids, is_padding_BL: Booleans) -> None:
        """Give each sentence an output layer of its own, of the rows of its list."""
        state.outputs = [self._output.among(own_L) for own_L in torch.from_numpy(lists_BL)]
        state.is_padding_BL = torch.from_numpy(is_padding_BL)
        state.rows = None

    def select(self, state: Int8State, sentences_B: Ids, beams_BW: Ids) -> Int8State:
        """Let each row take over the past of the row that it continues."""
        rows_R = torch.from_numpy((sentences_B[:, None] * state.beams + beams_BW).reshape(-1))
        stays = len(sentences_B) == len(state.starts_B) and bool((sentences_B == np.arange(len(sentences_B))).all())
        is_reordered = beams_BW.shape[1] == state.beams and stays
        if is_reordered:  # then all tables stay where they are
            state.slots_RK.copy_(state.slots_RK[rows_R])
            return state
        state.slots_RK = state.slots_RK[rows_R]
        kept_B = torch.from_numpy(sentences_B)
        state.starts_B, state.lengths_B = state.starts_B[kept_B], state.lengths_B[kept_B]
        if state.outputs is not None:
            state.outputs = [state.outputs[sentence] for sentence in sentences_B.tolist()]
            state.is_padding_BL = state.is_padding_BL[kept_B]
        state.beams = beams_BW.shape[1]
        state.rows = None
        return state

    def _make_room(self, state: Int8State, count: int) -> Rows:
        """Return room for the next position of `count` rows, and note where their keys will lie."""
        if state.rows is None or len(state.rows.x) != count:
            state.rows, state.program = Rows.make(count, self.config), None
            state.starts_R = state.starts_B.repeat_interleave(state.beams)
            state.lengths_R = state.lengths_B.repeat_interleave(state.beams)
            state.places = torch.arange(int(state.lengths_B.max()))
            width = self.config.vocabulary_size if state.outputs is None else state.is_padding_BL.size(1)
            state.logits_RV = torch.empty(count, width)
        if len(state.slots_RK) != count:
            state.slots_RK, state.program = torch.zeros(count, FIRST_STEPS, dtype=torch.int64), None
        if state.length == state.slots_RK.size(1):
            state.slots_RK, state.program = torch.cat([state.slots_RK, torch.zeros_like(state.slots_RK)], dim=1), None
        if state.used + count > (len(state.past[0][0]) if state.past else 0):
            self._make_room_for_past(state, count)
            state.program = None
        if len(self._positions[1]) <= state.length:
            self._table(1, state.length + 1)
            state.program = None
        state.slots_RK[:, state.length] = torch.arange(state.used, state.used + count)
        return state.rows

    def _make_room_for_past(self, state: Int8State, count: int) -> None:
        """Keep what a beam still looks back at, in tables with room for as much again, or NEXT_STEPS positions."""
        past_RK = state.slots_RK[:, : state.length]
        kept, where = past_RK.unique(return_inverse=True)
        past_RK.copy_(where)
        room = len(kept) + max(len(kept), NEXT_STEPS * count, FEW_PLACES)
        width = self.config.heads * self.config.query_width
        state.past = state.past or [(torch.empty(0, width, dtype=torch.bfloat16),) * 2] * len(self._decoder)
        for layer, tables in enumerate(state.past):  # one after the other, so that never all are held twice
            keys, values = (torch.empty(room, width, dtype=torch.bfloat16) for _ in tables)
            torch.index_select(tables[0], 0, kept, out=keys[: len(kept)])
            torch.index_select(tables[1], 0, kept, out=values[: len(kept)])
            state.past[layer] = (keys, values)
        state.used = len(kept)

    def _enter(self, k: Any, rows: Rows, norm: _Norm) -> None:  # noqa: ANN401
        if self._is_pre:
            k.normalize(rows.x, norm.gain, norm.bias, rows.model, rows.scale)
        else:
            k.quantize(rows.x, rows.model, rows.scale)

    def _leave(
        self,
        k: Any,  # noqa: ANN401
        rows: Rows,
        product: AnyProduct,
        own: _Norm,
        inputs: Tensor,
        following: _Norm,
    ) -> None:
        """Add a sub-layer's output; with pre-norm the next sub-layer's norm follows, with post-norm its own."""
        norm = following if self._is_pre else own
        k.add_and_normalize(
            k.multiply(product, inputs),
            rows.scale,
            product.offset,
            rows.x,
            norm.gain,
            norm.bias,
            self._is_pre,
            rows.model,
            rows.scale,
        )

    def _feed(self, k: Any, rows: Rows, layer: _Layer, following: _Norm) -> None:  # noqa: ANN401
        raw, inner = k.multiply(layer.inner, rows.model), rows.inner
        is_gelu = self.config.activation == "gelu"
        k.activate(raw, rows.scale, layer.inner.offset, is_gelu, inner, rows.scale)
        self._leave(k, rows, layer.outer, layer.feed_norm, rows.inner, following)

    def _read_embeddings(self, parameters: Mapping[str, Tensor]) -> None:
        source = parameters["embeddings.source_VD"]
        target = parameters.get("embeddings.target_VD", source)
        output = parameters.get("embeddings.output_VD", target)
        packed = {
            id(matrix): self.backend.product(matrix, limit=self.backend.limit, is_embedding=True)
            for matrix in {id(matrix): matrix for matrix in (source, target, output)}.values()
        }
        self._source, self._target = (self._embedding(packed[id(matrix)]) for matrix in (source, target))
        self._output = packed[id(output)]

    def _embedding(self, product: AnyProduct) -> tuple[Tensor, Tensor]:
        assert product.table is not None, "it was packed as an embedding"
        rows, scales = product.table
        return rows, scales * math.sqrt(self.config.d_model)

    def _layer(self, parameters: Mapping[str, Tensor], name: str) -> _Layer:
        own, feed = f"{name}.self_attention", f"{name}.feed_forward"
        return _Layer(
            qkv=self._product(parameters, f"{own}.W_Q", f"{own}.W_K", f"{own}.W_V"),
            own_output=self._product(parameters, f"{own}.W_O"),
            own_norm=_norm(parameters, f"{own}_residual.norm"),
            inner=self._product(parameters, f"{feed}.W_1"),
            outer=self._product(parameters, f"{feed}.W_2"),
            feed_norm=_norm(parameters, f"{feed}_residual.norm"),
        )

    def _cross_layer(self, parameters: Mapping[str, Tensor], name: str) -> _Cross:
        cross = f"{name}.cross_attention"
        return _Cross(
            memory=self._product(parameters, f"{cross}.W_K", f"{cross}.W_V"),
            query=self._product(parameters, f"{cross}.W_Q"),
            output=self._product(parameters, f"{cross}.W_O"),
            norm=_norm(parameters, f"{cross}_residual.norm"),
        )

    def _product(self, parameters: Mapping[str, Tensor], *names: str) -> AnyProduct:
        scales = [self._query_scale if name.endswith("W_Q") else 1.0 for name in names]
        weights = [parameters[f"{name}.weight"] * scale for name, scale in zip(names, scales, strict=True)]
        biases = [parameters[f"{n}.bias"] * s for n, s in zip(names, scales, strict=True) if f"{n}.bias" in parameters]
        return self.backend.product(torch.cat(weights), torch.cat(biases) if biases else None, limit=self.backend.limit)

    @property
    def _query_scale(self) -> float:
        return 1.0 if self.config.scores == "unscaled" else 1.0 / math.sqrt(self.config.query_width)

    def _table(self, side: int, length: int) -> Tensor:
        """Return the positions of a side, at least `length` of them."""
        if len(self._positions[side]) < length:
            self._positions[side] = _positions(self.config, None, length=2 * length)
        return self._positions[side]


def _parts(lengths: list[int]) -> list[tuple[int, int]]:
    """Return neighbouring sentences, first and one past the last, that together have at most ENCODED_AT_ONCE tokens."""
    bounds, tokens = [0], 0
    for number, length in enumerate(lengths):
        tokens += length
        if tokens > ENCODED_AT_ONCE and number > bounds[-1]:
            bounds.append(number)
            tokens = length
    return list(itertools.pairwise([*bounds, len(lengths)]))


def _with_next(layers: list[_Layer], final: _Norm | None) -> list[tuple[_Layer, _Norm]]:
    """Return each layer with the norm that follows it under pre-norm (post-norm does not ask)."""
    following = [layer.own_norm for layer in layers[1:]] + [final or layers[-1].feed_norm]
    return list(zip(layers, following, strict=True))


def _norm(parameters: Mapping[str, Tensor], name: str) -> _Norm:
    gain, bias = (parameters[f"{name}.{kind}"].detach().float().clone() for kind in ("weight", "bias"))
    return _Norm(gain, bias)


def _positions(config: ModelConfig, learned: Tensor | None, *, length: int = 256) -> Tensor:
    if config.positions == "learned":
        assert learned is not None, "a learned table cannot grow"
        return learned.detach().float().clone()
    if config.positions == "none":
        return torch.zeros(length, config.d_model)
    make = concatenated_positions if config.positions == "concatenated" else sinusoidal_positions
    return make(length, config.d_model).float().contiguous()
