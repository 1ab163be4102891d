"""A small model with a corpus of its own, and the command line to call."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner, Result

from transduce.cli.application import app
from transduce.data.batch import pad_rows
from transduce.data.sentence_hashes import sentence_hashes
from transduce.model.config import ModelConfig
from transduce.model.transformer import Transformer
from transduce.model_directory import Description, Languages, save_model
from transduce.networks.log_probabilities import token_log_probabilities
from transduce.text.bpe_tokenizer import BpeTokenizer
from transduce.text.tokenizer_pair import TokenizerPair

SOURCES = [
    "a red dog runs",
    "two blue cats sleep",
    "the old man sings",
    "it rains",
    "a red cat sings",
    "the dog sleeps",
]
TARGETS = [
    "ein roter Hund läuft",
    "zwei blaue Katzen schlafen",
    "der alte Mann singt",
    "es regnet",
    "eine rote Katze singt",
    "der Hund schläft",
]

Command = Callable[..., Result]


@pytest.fixture
def transduce() -> Command:
    """Run a command in this process, 80 columns wide; what the user can cure is in `result.exception`."""

    def run(*arguments: str | Path) -> Result:
        environment = {"COLUMNS": "80", "NO_COLOR": "1"}
        return CliRunner().invoke(app, [str(argument) for argument in arguments], env=environment)

    return run


@pytest.fixture(scope="session")
def small_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model directory that has learned its six pairs; it believes that only the first two were trained on."""
    return make_model(tmp_path_factory.mktemp("models") / "small", seed=3, steps=120)


@pytest.fixture(scope="session")
def other_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model directory with random weights."""
    return make_model(tmp_path_factory.mktemp("models") / "other", seed=4, steps=0)


def make_model(folder: Path, *, seed: int, steps: int) -> Path:
    tokenizer = BpeTokenizer.learn(SOURCES + TARGETS, vocabulary_size=320)
    config = ModelConfig(vocabulary_size=tokenizer.vocabulary_size, d_model=16, heads=2, d_ff=24, layers=1, dropout=0)
    torch.manual_seed(seed)
    model = Transformer(config)
    learn_by_heart(model, tokenizer, steps=steps)
    description = Description(
        architecture=config,
        languages=Languages(source="en", target="de"),
        decoding={"beam": 3, "extra_length": 30},
        training={"averaged": [1000, 2000]},
    )
    save_model(
        folder,
        description,
        dict(model.named_parameters()),
        tokenizers=TokenizerPair.shared(tokenizer),
        card="a card",
        training_hashes=np.unique(sentence_hashes(SOURCES[:2])),
    )
    return folder


def learn_by_heart(model: Transformer, tokenizer: BpeTokenizer, *, steps: int) -> None:
    pairs = TokenizerPair.shared(tokenizer).encode_pairs(list(zip(SOURCES, TARGETS, strict=True)))
    source_BS, target_BT = (pad_rows([pair[side] for pair in pairs]) for side in range(2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        log_p_BT = token_log_probabilities(model(source_BS, target_BT), model.output, target_BT)
        (-log_p_BT[target_BT != 0].mean()).backward()
        optimizer.step()


@pytest.fixture
def test_files(tmp_path: Path) -> str:
    """Two aligned files, named as a user names them."""
    return f"{write_lines(tmp_path / 'test.en', SOURCES)},{write_lines(tmp_path / 'test.de', TARGETS)}"


def write_lines(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    return path
