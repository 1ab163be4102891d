"""A tiny model with random weights, and servers on loopback: the laws of serving need no good translations."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch

from transduce.model import ModelConfig, Transformer
from transduce.model_directory import Description, Languages, save_model
from transduce.special_tokens import OWN_SPECIAL_TOKENS
from transduce.text.bpe_tokenizer import BpeTokenizer
from transduce.text.tokenizer_pair import TokenizerPair
from transduce.translator import Translator

EOS = OWN_SPECIAL_TOKENS.end

SOURCE = Path(__file__).parents[2] / "src"
LINES = ["the dog runs.", "a cat sleeps here", "der Hund läuft.", "eine Katze schläft hier"] * 3
KEY = "a-key-of-many-letters"


def write_model(
    folder: Path,
    *,
    seed: int = 3,
    source: str = "en",
    target: str = "de",
    fondness_of_ending: float = 0.0,
    d_ff: int = 13,
    layers: int = 1,
) -> Path:
    """Write a model with random weights; `fondness_of_ending` makes its outputs end, which they hardly ever do."""
    tokenizer = BpeTokenizer.learn(LINES, vocabulary_size=400)
    torch.manual_seed(seed)
    config = ModelConfig(
        vocabulary_size=tokenizer.vocabulary_size, d_model=22, heads=11, d_ff=d_ff, layers=layers, dropout=0
    )
    description = Description(
        architecture=config,
        languages=Languages(source=source, target=target),
        longest_sentence=40,
        decoding={"extra_length": 3, "beam": 2},
    )
    network = Transformer(config)
    parameters = {name: parameter.detach() for name, parameter in network.named_parameters()}
    ending_D = network.output.matrix_VD[EOS].detach()
    parameters["decoder.layers.0.feed_forward_residual.norm.bias"] += fondness_of_ending * ending_D / ending_D.norm()
    save_model(folder, description, parameters, tokenizers=TokenizerPair.shared(tokenizer), card="")
    return folder


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("models") / "tiny")


class RunningServer:
    """A server process: its address, its log and its clients."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self.process = process
        self._log = log
        self.address = self.wait_for("listening")["address"]

    def client(self, **options: Any) -> httpx.Client:  # noqa: ANN401
        return httpx.Client(base_url=self.address, timeout=30, trust_env=False, **options)

    def events(self) -> list[dict[str, Any]]:
        lines = self._log.read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def wait_for(self, event: str, *, count: int = 1) -> dict[str, Any]:
        """Return an event's record once it has been logged `count` times."""
        end = time.monotonic() + 180
        while time.monotonic() < end:
            found = [record for record in self.events() if record["event"] == event]
            if len(found) >= count:
                return found[count - 1]
            assert self.process.poll() is None, self._log.read_text(encoding="utf-8")
            time.sleep(0.05)
        raise AssertionError(f"no {event}: {self._log.read_text(encoding='utf-8')}")

    def child(self) -> int:
        """The process id of the newest child."""
        return int([record for record in self.events() if record["event"] == "child ready"][-1]["process"])


@contextmanager
def running_server(
    log: Path, *arguments: str | Path, environment: dict[str, str] | None = None
) -> Iterator[RunningServer]:
    """Run `transduce serve` on a free port; kill it at the end if it still runs."""
    command = [sys.executable, "-m", "transduce", "serve", "--port", "0", "--threads", "1", *map(str, arguments)]
    variables = {**os.environ, "OMP_NUM_THREADS": "1", **(environment or {})}
    variables["PYTHONPATH"] = os.pathsep.join(filter(None, [variables.get("PYTHONPATH"), str(SOURCE)]))
    with log.open("wb") as stderr:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr, env=variables)
        try:
            yield RunningServer(process, log)
        finally:
            process.kill()
            process.wait()


@pytest.fixture
def key() -> str:
    return KEY


@pytest.fixture(scope="session")
def server(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server without keys that many tests share."""
    with running_server(tmp_path_factory.mktemp("server") / "log", model) as running:
        yield running


@pytest.fixture(scope="session")
def locked_server(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server that needs a key."""
    folder = tmp_path_factory.mktemp("locked")
    (folder / "keys").write_text(f"# ours\n{KEY}\n", encoding="utf-8")
    with running_server(folder / "log", model, "--api-key-file", folder / "keys") as running:
        yield running


@pytest.fixture
def client(server: RunningServer) -> Iterator[httpx.Client]:
    with server.client() as opened:
        yield opened


@pytest.fixture(scope="session")
def translator(model: Path) -> Translator:
    """The same model in this process, to compare with."""
    return Translator.load(model, threads=1)


def answers_in_threads(count: int, work: Callable[[int], Any]) -> list[Any]:
    """Return the result of `work` for each number, each computed in a thread of its own."""
    results: list[Any] = [None] * count

    def run(number: int) -> None:
        results[number] = work(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads), "a request was left without an answer"
    return results


# Test modules cannot import this file, so they get its functions as fixtures.


@pytest.fixture(scope="session")
def make_model() -> Callable[..., Path]:
    return write_model


@pytest.fixture(scope="session")
def run_server() -> Callable[..., Any]:
    return running_server


@pytest.fixture(scope="session")
def in_threads() -> Callable[..., list[Any]]:
    return answers_in_threads
