"""Weights as the C++ core gets them: of odd sizes, with numbers at the ends of their range, missing, of other shapes.

The core must refuse them with a ValueError, or translate; it may not crash, read beyond an array, or hang.
"""

import contextlib
import random
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from transduce.engine import FrozenNetwork
from transduce.engine.frozen_network import obstacle
from transduce.errors import ModelError, TransduceError
from transduce.model.config import ModelConfig
from transduce.networks.beam_searching import BeamRequest

OPTIONS: dict[str, tuple[Any, ...]] = {
    "d_model": (1, 2, 8, 30, 66), "d_ff": (1, 7, 64, 130), "heads": (1, 2, 3), "d_k": (None, 1, 5, 17),
    "d_v": (None, 1, 7, 16), "encoder_layers": (1, 2), "decoder_layers": (1, 2), "norm": ("post", "pre"),
    "norm_epsilon": (1e-6, 1e-30, 1e30), "final_norm": (None, False, True), "decoder_mixer": ("attention", "ssru"),
    "positions": ("sinusoidal", "sinusoidal_halves", "concatenated", "learned", "none"),
    "first_position": (0, 0, 2, 1 << 40), "learned_positions": (1, 9, 60), "scores": ("scaled", "unscaled"),
    "attention_bias": (False, True), "activation": ("relu", "gelu", "gelu_tanh", "gelu_sigmoid", "silu"),
    "tied": ("all", "decoder", "inputs", "none"), "source_vocabulary_size": (None, 5, 40),
    "embedding_scale": (None, 1e-30, 1e30), "embedding_norm": (False, True), "start_from_zeros": (False, True),
    "output_bias": (False, True), "vocabulary_size": (5, 33, 97),
}  # fmt: skip
ENDS = (np.nan, np.inf, -np.inf, 3.4e38, -3.4e38, 1e-45, 0.0)
Weights = dict[str, NDArray[Any]]


def _weights(config: ModelConfig, chance: random.Random) -> Weights:
    numbers = np.random.default_rng(chance.randrange(1 << 32))
    found: Weights = {}
    for name, shape in config.parameter_shapes().items():
        found[name] = numbers.normal(size=shape).astype(np.float32)
        if len(shape) == 2 and chance.random() < 0.3:
            found[name] = numbers.integers(-127, 128, shape).astype(np.int8)
            found[f"{name}.scale"] = numbers.uniform(0, 0.1, shape[:1]).astype(np.float32)
    return found


def _damage(weights: Weights, chance: random.Random) -> None:
    name = chance.choice(sorted(weights))
    array = np.ascontiguousarray(weights[name])
    match chance.randrange(9):
        case 0:
            del weights[name]
        case 1:
            weights[chance.choice((name + "x", "", "encoder.layers.999999999.x", name + ".scale"))] = array
        case 2:
            weights[name] = array[: len(array) // 2]
        case 3:
            weights[name] = array[..., None] if array.ndim < 3 else array
        case 4:
            weights[name] = np.asfortranarray(array) if array.ndim > 1 else np.repeat(array, 2)[::2]
        case 5:
            weights[name] = array.astype(chance.choice(("f8", "f2", "i4", "u1", "?")))
        case 6:
            weights[name] = np.zeros(chance.choice(((0,), (0, 8), (8, 0), (1 << 16, 1), ())), np.float32)
        case 7:
            weights[name] = array.T
        case _:
            wide = array.copy()
            if wide.size and wide.dtype in (np.int8, np.float32):
                wide.reshape(-1)[chance.randrange(wide.size)] = -128 if wide.dtype == np.int8 else chance.choice(ENDS)
            weights[name] = wide


def _translate(network: FrozenNetwork, config: ModelConfig, chance: random.Random) -> None:
    most = (config.source_vocabulary_size or config.vocabulary_size) + (chance.random() < 0.05)
    lengths = [chance.choice((1, 2, 9, 40)) for _ in range(chance.choice((1, 3)))]
    rows = [[chance.randrange(1, most) for _ in range(length)] for length in lengths]
    source_BS = np.zeros((len(rows), max(map(len, rows))), np.int64)
    for row, ids in zip(source_BS, rows, strict=True):
        row[: len(ids)] = ids
    beam, count = chance.choice((1, 2, 4)), len(rows)
    lists = [[2, 3, *range(4, config.vocabulary_size, 2)]] * count if chance.random() < 0.3 else []
    prefixes = [[chance.randrange(config.vocabulary_size)] if chance.random() < 0.2 else []] * count
    network.beam_search(source_BS, BeamRequest(beam, beam, 0.6, True, 1, [6] * count, prefixes, lists))


def cases(*, seed: int) -> Callable[[int], str]:
    """Return the function that makes a network of a number, damages its weights and translates."""

    def case(number: int) -> str:
        chance = random.Random(f"{seed}-{number}")
        config = None
        while config is None:
            with contextlib.suppress(ValidationError):
                config = ModelConfig(**{name: chance.choice(values) for name, values in OPTIONS.items()})
        assert obstacle(config) is None
        weights = _weights(config, chance)
        for _ in range(chance.choice((0, 1, 1, 2))):
            _damage(weights, chance)
        try:
            with np.errstate(all="ignore"):
                _translate(FrozenNetwork(weights, config, precision=chance.choice(("int8", "float32"))), config, chance)
        except TransduceError:
            raise
        except (ValueError, TypeError, KeyError) as fault:  # users meet these only if a check before the core is wrong
            raise ModelError(f"the core refused: {str(fault).splitlines()[0]}") from None
        return "translated"

    return case
