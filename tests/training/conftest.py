"""A corpus small enough to train on in a test: digits to be read backwards."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch

from transduce.data.token_store import TokenStore, token_store_written
from transduce.machine import Compute
from transduce.model.config import ModelConfig
from transduce.model.transformer import Transformer
from transduce.training.batches import TrainingBatches
from transduce.training.config import TrainingConfig
from transduce.training.randomness import seed_weights
from transduce.training.trainer import Trainer, TrainerContext

Activation = Literal["relu", "gelu"]
VOCABULARY = 17
EOS = 3


@pytest.fixture
def store(tmp_path: Path) -> TokenStore:
    generator = np.random.default_rng(7)
    sources = [generator.integers(4, VOCABULARY, size=generator.integers(1, 9)).tolist() for _ in range(61)]
    with token_store_written(tmp_path / "store", vocabulary_size=VOCABULARY) as writer:
        writer.append(
            [[*source, EOS] for source in sources],
            [[*reversed(source), EOS] for source in sources],
            texts=[("", "") for _ in sources],
        )
    return TokenStore.open(tmp_path / "store")


def tiny_model(*, dropout: float = 0.1, seed: int = 1, activation: Activation = "relu") -> Transformer:
    seed_weights(seed)
    sizes = ModelConfig(
        vocabulary_size=VOCABULARY, layers=1, d_model=16, d_ff=24, heads=2, dropout=dropout, activation=activation
    )
    return Transformer(sizes)


@pytest.fixture
def make_model() -> Callable[..., Transformer]:
    return tiny_model


def tiny_config(**settings: object) -> TrainingConfig:
    defaults: dict[str, object] = {
        "steps": 12,
        "batch_tokens": 64,
        "schedule": "constant",
        "peak": 3e-3,
        "warmup_steps": 3,
        "checkpoint_every": 5,
        "report_every": 2,
        "tensorboard": False,
        "precision": "float32",
        "threads": 1,
    }
    return TrainingConfig.model_validate(defaults | settings)


@pytest.fixture
def make_config() -> Callable[..., TrainingConfig]:
    return tiny_config


@pytest.fixture
def make_trainer(tmp_path: Path, store: TokenStore) -> Callable[..., Trainer]:
    """Return a function that builds a trainer in tmp_path/run; a keyword is a setting, or something around it."""

    def make(model: Transformer | None = None, *, config: TrainingConfig | None = None, **around: object) -> Trainer:
        config = config or tiny_config()
        defaults: dict[str, object] = {
            "folder": tmp_path / "run",
            "compute": Compute(device="cpu", threads=1, precision="float32"),
        }
        context = TrainerContext(**(defaults | around))  # type: ignore[arg-type]
        batches = TrainingBatches(store, config)
        return Trainer(model or tiny_model(), batches, config, context=context)

    return make


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)
