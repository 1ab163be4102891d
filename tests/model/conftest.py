"""A network small enough to be tested in milliseconds, with a distinct size for every axis.

All sizes are primes, so that a transposed axis cannot pass, but for d_model, which pairs of sines want even: 14.
"""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from transduce.model import ModelConfig, Transformer

SIZES = {"vocabulary_size": 31, "layers": 2, "d_model": 14, "d_ff": 23, "heads": 3, "d_k": 5, "d_v": 7, "dropout": 0.0}


@pytest.fixture(autouse=True)
def _same_random_numbers() -> None:
    torch.manual_seed(1706_03762)


@pytest.fixture
def make_config() -> Callable[..., ModelConfig]:
    """Return a function that makes the small configuration with some settings changed."""
    return lambda **changes: ModelConfig.model_validate(SIZES | changes)


@pytest.fixture
def make_model(make_config: Callable[..., ModelConfig]) -> Callable[..., Transformer]:
    """Return a function that makes a small model in float64, where equal means equal to 15 digits."""
    return lambda **changes: Transformer(make_config(**changes)).double().eval()


@pytest.fixture
def source_BS() -> Tensor:
    """Return three sentences of 11, 7 and 2 tokens; ids 0 are padding."""
    return padded([11, 7, 2])


@pytest.fixture
def target_BT() -> Tensor:
    """Return three sentences of 5, 13 and 3 tokens; ids 0 are padding."""
    return padded([5, 13, 3])


def padded(lengths: list[int]) -> Tensor:
    tokens = torch.randint(4, 31, (len(lengths), max(lengths)))
    return tokens.masked_fill(torch.arange(max(lengths)) >= torch.tensor(lengths)[:, None], 0)
