"""A small model with a corpus of its own, and the command line to call."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner, Result

from transduce.cli.application import app
from transduce.data.sentence_hashes import sentence_hashes
from transduce.model.config import ModelConfig
from transduce.model.transformer import Transformer
from transduce.model_directory import Description, Languages, save_model
from transduce.text.tokenizer import Tokenizer

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
    """A model directory with random weights, whose training text held the first two sources."""
    return make_model(tmp_path_factory.mktemp("models") / "small", seed=3)


@pytest.fixture(scope="session")
def other_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("models") / "other", seed=4)


def make_model(folder: Path, *, seed: int) -> Path:
    tokenizer = Tokenizer.learn(SOURCES + TARGETS, vocabulary_size=320)
    config = ModelConfig(vocabulary_size=tokenizer.vocabulary_size, d_model=16, heads=2, d_ff=24, layers=1)
    torch.manual_seed(seed)
    description = Description(
        architecture=config,
        languages=Languages(source="en", target="de"),
        decoding={"beam": 3, "extra_length": 4},
        training={"averaged": [1000, 2000]},
    )
    save_model(
        folder,
        description,
        dict(Transformer(config).named_parameters()),
        tokenizer=tokenizer,
        card="a card",
        training_hashes=np.unique(sentence_hashes(SOURCES[:2])),
    )
    return folder


@pytest.fixture
def test_files(tmp_path: Path) -> str:
    """Two aligned files, named as a user names them."""
    return f"{write_lines(tmp_path / 'test.en', SOURCES)},{write_lines(tmp_path / 'test.de', TARGETS)}"


def write_lines(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    return path
