"""The trained network frozen for translation in int8: all weights packed, all that is between them fused.

It is the network of section 3, one position at a time, and satisfies what the search needs (`start`, `step`, `select`):

- Sources are not padded: the tokens of a batch stand in one list, and each looks at its own sentence's alone.
- q, k and v come from one product; what the decoder needs of the source is computed once and shared by its beams.
- Keys and values, in bf16, stay where they were written. A beam that continues another takes over the list of places
  (`slots`) in which its past lies, so nothing is copied when the search reorders its beams or a sentence leaves.

The scores' scale, 1 / √d_k, is part of the queries' weights. Embeddings are int8 rows, gathered; the
output layer has the same rows, packed for the product.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transduce.engine.backend import AnyProduct, Backend, fastest_backend
from transduce.engine.products import quantize_weight
from transduce.model.config import ModelConfig
from transduce.model.positional_encoding import concatenated_positions, sinusoidal_positions

Array = NDArray[Any]

FIRST_STEPS = 24  # tokens for which there is room at first; it doubles when it is full


def obstacle(config: ModelConfig) -> str | None:
    """Return what of a network has no int8 form here, or None."""
    if config.scores == "additive":
        return 'scores = "additive"'
    if config.query_width != config.value_width:
        return "d_k and d_v that differ"
    return None


@dataclass(frozen=True)
class _Norm:
    gain: Array
    bias: Array


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


@dataclass
class _Rows:
    """Room for what is computed of R rows: x, and the quantised inputs of the next product."""

    x: Array
    model: Tensor  # R x D
    heads: Tensor  # R x A
    inner: Tensor  # R x F
    scale: Array

    @classmethod
    def make(cls, rows: int, config: ModelConfig) -> "_Rows":
        widths = (config.d_model, config.heads * config.query_width, config.d_ff)
        model, heads, inner = (torch.empty(rows, width, dtype=torch.uint8) for width in widths)
        return cls(np.empty((rows, config.d_model), np.float32), model, heads, inner, np.empty(rows, np.float32))

    def first(self, rows: int) -> "_Rows":
        return _Rows(self.x[:rows], self.model[:rows], self.heads[:rows], self.inner[:rows], self.scale[:rows])


@dataclass
class Int8State:
    """B sentences with W beams each: where the past of each of the R rows lies, and its source."""

    cross: list[tuple[Array, Array]]
    starts_B: Array
    lengths_B: Array
    beams: int = 1
    length: int = 0
    past: list[tuple[Array, Array]] = field(default_factory=list)
    used: int = 0
    slots_RK: Array = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    rows: _Rows | None = None
    starts_R: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    lengths_R: Array = field(default_factory=lambda: np.zeros(0, np.int64))


class Int8Network:
    """The network, ready to be searched."""

    def __init__(
        self, parameters: Mapping[str, Tensor], config: ModelConfig, *, backend: Backend | None = None
    ) -> None:
        backend = backend or fastest_backend()
        assert obstacle(config) is None, f"ask `obstacle` first: {obstacle(config)}"
        assert backend is not None, "ask `fastest_backend` first"
        self.config = config
        self.backend, self.kernels = backend, backend.kernels
        self._is_pre = config.norm == "pre"
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
    def longest_target(self) -> int | None:
        """The number of learned positions; sinusoids go on for ever."""
        return self.config.learned_positions if self.config.positions == "learned" else None

    def start(self, source_BS: Tensor) -> Int8State:
        """Encode the sources and keep what the decoder needs of them."""
        is_token = (source_BS != 0).numpy()
        lengths_B = is_token.sum(axis=1)
        starts_B = np.cumsum(lengths_B) - lengths_B
        tokens_N, places_N = source_BS.numpy()[is_token], np.nonzero(is_token)[1]
        rows = _Rows.make(len(tokens_N), self.config)
        k = self.kernels
        k.embed(tokens_N, *self._source, self._table(0, int(lengths_B.max())), places_N, rows.x)
        starts_N, lengths_N = np.repeat(starts_B, lengths_B), np.repeat(lengths_B, lengths_B)
        heads, width = self.config.heads, rows.heads.size(1)
        keys, values = np.empty((2, len(tokens_N), width), np.uint16)
        self._enter(rows, self._encoder[0].own_norm)
        for layer, next_norm in _with_next(self._encoder, self._final[0] if self._is_pre else None):
            raw = layer.qkv(rows.model).numpy()
            mixed = rows.heads.numpy()
            offset = layer.qkv.offset
            k.encoder_attend(raw, rows.scale, offset, keys, values, starts_N, lengths_N, heads, mixed, rows.scale)
            self._leave(rows, layer.own_output, layer.own_norm, rows.heads, layer.feed_norm)
            self._feed(rows, layer, next_norm)
        cross = []
        for layer_cross in self._cross:
            memory, pair = layer_cross.memory, np.empty((2, len(tokens_N), width), np.uint16)
            k.rescale(memory(rows.model).numpy(), rows.scale, memory.offset, pair[0], pair[1])
            cross.append((pair[0], pair[1]))
        return Int8State(cross, starts_B, lengths_B)

    def step(self, state: Int8State, tokens_BW: Tensor) -> Tensor:
        """Decode one position more of every beam."""
        rows = self._make_room(state, tokens_BW.numel())
        k, heads = self.kernels, self.config.heads
        place_R = np.full(tokens_BW.numel(), state.length, np.int64)
        tokens_R = tokens_BW.reshape(-1).numpy()
        k.embed(tokens_R, *self._target, self._table(1, state.length + 1), place_R, rows.x)
        self._enter(rows, self._decoder[0].own_norm)
        state.length += 1
        scale, mixed = rows.scale, rows.heads.numpy()
        layers = _with_next(self._decoder, self._final[1] if self._is_pre else None)
        for number, (layer, next_norm) in enumerate(layers):
            (keys, values), cross, used = state.past[number], self._cross[number], state.used
            raw, offset = layer.qkv(rows.model).numpy(), layer.qkv.offset
            k.self_attend(raw, scale, offset, keys, values, used, state.slots_RK, state.length, heads, mixed, scale)
            self._leave(rows, layer.own_output, layer.own_norm, rows.heads, cross.norm)
            raw, offset = cross.query(rows.model).numpy(), cross.query.offset
            (keys, values), starts, lengths = state.cross[number], state.starts_R, state.lengths_R
            k.cross_attend(raw, scale, offset, keys, values, starts, lengths, heads, mixed, scale)
            self._leave(rows, cross.output, cross.norm, rows.heads, layer.feed_norm)
            self._feed(rows, layer, next_norm)
        state.used += len(scale)
        logits_RV = self._output(rows.model)
        k.log_softmax(logits_RV.numpy(), scale)
        return logits_RV.view(*tokens_BW.shape, -1)

    def select(self, state: Int8State, sentences: Tensor, beams_BW: Tensor) -> Int8State:
        """Let each row take over the past of the row that it continues."""
        kept = sentences.numpy()
        rows_R = (kept[:, None] * state.beams + beams_BW.numpy()).reshape(-1)
        state.slots_RK = state.slots_RK[rows_R]
        state.starts_B, state.lengths_B = state.starts_B[kept], state.lengths_B[kept]
        state.beams = beams_BW.size(1)
        state.rows = None
        return state

    def _make_room(self, state: Int8State, count: int) -> _Rows:
        """Return room for the next position of `count` rows, and note where their keys will lie."""
        if state.rows is None or len(state.rows.x) != count:
            state.rows = _Rows.make(count, self.config)
            state.starts_R = np.repeat(state.starts_B, state.beams)
            state.lengths_R = np.repeat(state.lengths_B, state.beams)
        if len(state.slots_RK) != count:
            state.slots_RK = np.zeros((count, FIRST_STEPS), np.int64)
        if state.length == state.slots_RK.shape[1]:
            state.slots_RK = np.concatenate([state.slots_RK, np.zeros_like(state.slots_RK)], axis=1)
        state.slots_RK[:, state.length] = np.arange(state.used, state.used + count)
        room = len(state.past[0][0]) if state.past else 0
        if state.used + count > room:
            width = self.config.heads * self.config.query_width
            more = max(count * FIRST_STEPS, room)
            grown = [np.empty((2, room + more, width), np.uint16) for _ in self._decoder]
            for tables, (keys, values) in zip(grown, state.past, strict=False):
                tables[0, : state.used], tables[1, : state.used] = keys[: state.used], values[: state.used]
            state.past = [(tables[0], tables[1]) for tables in grown]
        return state.rows

    def _enter(self, rows: _Rows, norm: _Norm) -> None:
        if self._is_pre:
            self.kernels.normalize(rows.x, norm.gain, norm.bias, rows.model.numpy(), rows.scale)
        else:
            self.kernels.quantize(rows.x, rows.model.numpy(), rows.scale)

    def _leave(self, rows: _Rows, product: AnyProduct, own: _Norm, inputs: Tensor, following: _Norm) -> None:
        """Add a sub-layer's output; with pre-norm the next sub-layer's norm follows, with post-norm its own."""
        norm = following if self._is_pre else own
        self.kernels.add_and_normalize(
            product(inputs).numpy(),
            rows.scale,
            product.offset,
            rows.x,
            norm.gain,
            norm.bias,
            self._is_pre,
            rows.model.numpy(),
            rows.scale,
        )

    def _feed(self, rows: _Rows, layer: _Layer, following: _Norm) -> None:
        raw, inner = layer.inner(rows.model).numpy(), rows.inner.numpy()
        is_gelu = self.config.activation == "gelu"
        self.kernels.activate(raw, rows.scale, layer.inner.offset, is_gelu, inner, rows.scale)
        self._leave(rows, layer.outer, layer.feed_norm, rows.inner, following)

    def _read_embeddings(self, parameters: Mapping[str, Tensor]) -> None:
        factor = np.float32(math.sqrt(self.config.d_model))
        names = {"source": "embeddings.source_VD", "target": "embeddings.target_VD", "output": "embeddings.output_VD"}
        source = parameters[names["source"]]
        target = parameters.get(names["target"], source)
        output = parameters.get(names["output"], target)
        tables = {}
        for matrix in (source, target):
            if id(matrix) not in tables:
                rows, scale = quantize_weight(matrix, limit=self.backend.limit)
                tables[id(matrix)] = (rows.numpy(), scale.numpy(), factor)
        self._source, self._target = tables[id(source)], tables[id(target)]
        self._output = self.backend.product(output, limit=self.backend.limit)

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

    def _table(self, side: int, length: int) -> Array:
        """Return the positions of a side, at least `length` of them."""
        if len(self._positions[side]) < length:
            self._positions[side] = _positions(self.config, None, length=2 * length)
        return self._positions[side]


def _with_next(layers: list[_Layer], final: _Norm | None) -> list[tuple[_Layer, _Norm]]:
    """Return each layer with the norm that follows it under pre-norm (post-norm does not ask)."""
    following = [layer.own_norm for layer in layers[1:]] + [final or layers[-1].feed_norm]
    return list(zip(layers, following, strict=True))


def _norm(parameters: Mapping[str, Tensor], name: str) -> _Norm:
    gain, bias = (parameters[f"{name}.{kind}"].detach().float().clone().numpy() for kind in ("weight", "bias"))
    return _Norm(gain, bias)


def _positions(config: ModelConfig, learned: Tensor | None, *, length: int = 256) -> Array:
    if config.positions == "learned":
        assert learned is not None, "a learned table cannot grow"
        return np.asarray(learned.detach().float().clone().numpy())
    if config.positions == "none":
        return np.zeros((length, config.d_model), np.float32)
    make = concatenated_positions if config.positions == "concatenated" else sinusoidal_positions
    return np.asarray(make(length, config.d_model).float().numpy())
