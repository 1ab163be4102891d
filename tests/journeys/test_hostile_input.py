"""Ten thousand hostile lines through the command line: none crashes it, hangs it or shifts a line."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from transduce.model import ModelConfig, Transformer
from transduce.model_directory import Description, Languages, save_model
from transduce.text.bpe_tokenizer import BpeTokenizer
from transduce.text.tokenizer_pair import TokenizerPair

pytestmark = pytest.mark.slow

LINES = 10_000
MARKED = 97  # every so many lines stands a line that must come out as it does alone


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tokenizer = BpeTokenizer.learn(["the dog runs.", "der Hund läuft."] * 4, vocabulary_size=320)
    torch.manual_seed(1)
    config = ModelConfig(vocabulary_size=tokenizer.vocabulary_size, d_model=8, heads=2, d_ff=8, layers=1, dropout=0)
    description = Description(
        architecture=config,
        languages=Languages(source="en", target="de"),
        longest_sentence=20,
        decoding={"beam": 1, "extra_length": 0, "maximum_length": 4},
    )
    parameters = {name: parameter.detach() for name, parameter in Transformer(config).named_parameters()}
    folder = tmp_path_factory.mktemp("hostile") / "model"
    save_model(folder, description, parameters, tokenizers=TokenizerPair.shared(tokenizer), card="")
    return folder


def hostile_lines(seed: int) -> list[bytes]:
    chance = random.Random(seed)
    alphabets = [
        "abc .,!?",
        "\u200b\u200c\u200d\ufeff\u00ad\u2060",
        "\u202e\u202dאבגد مرحبا",
        "\x00\x01\x07\x1b\x7f\x85\u2028\u2029\x0b\x0c",
        "😀👩‍👩‍👧‍👦🇩🇪é\u0301\u0308",
        "\ufdd0\ufdd1\uffff▁<b></b>{x}%s$1",
    ]

    def line(number: int) -> bytes:
        if number % MARKED == 0:
            return b"the dog runs."
        kind = chance.randrange(10)
        if kind == 0:
            return b""
        if kind == 1:
            return bytes(chance.choices([b for b in range(256) if b != 10], k=chance.randrange(40)))
        if kind == 2:
            return b"\xed\xa0\x80 lone surrogate \xed\xbf\xbf"
        if kind == 3:
            return b" \t\r  " * chance.randrange(5)
        alphabet = chance.choice(alphabets)
        return "".join(chance.choices(alphabet, k=chance.randrange(1, 30))).encode()

    lines = [line(number) for number in range(LINES)]
    lines[5] = b"x" * 1_000_000
    lines[6] = b"the dog runs. " * 70_000
    lines[7] = ("é" * 400_000).encode()
    return lines


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_hostile_lines_go_through_one_for_one(model: Path, tmp_path: Path, end: bytes) -> None:
    lines = hostile_lines(seed=len(end))
    # A line that itself ends in a carriage return would read as one that ends in both.
    content = end.join(line.rstrip(b"\r") for line in lines) + end
    command = [sys.executable, "-m", "transduce", "translate", str(model), "--threads", "1"]
    result = subprocess.run(command, input=content, capture_output=True, check=False, timeout=900)
    assert result.returncode == 0, result.stderr.decode()[-2000:]
    output = result.stdout.decode("utf-8").split("\n")
    assert len(output) == LINES + 1
    assert output[-1] == ""
    assert all(len(line.splitlines()) <= 1 for line in output)
    alone = subprocess.run([*command, "--text", "the dog runs."], capture_output=True, check=True)
    expected = alone.stdout.decode("utf-8").rstrip("\n")
    assert {output[number] for number in range(0, LINES, MARKED)} == {expected}
    told = result.stderr.decode("utf-8")
    assert "line 6 is left empty: it holds a sentence of" in told
    assert "had bytes that are not UTF-8; they became U+FFFD" in told
    assert "Traceback" not in told


def test_json_says_the_same_as_text(model: Path) -> None:
    command = [sys.executable, "-m", "transduce", "translate", str(model), "--threads", "1"]
    content = b"\n".join([b"the dog runs.", b"", b"\xff\xfe", "a\u2028b".encode()]) + b"\n"
    text = subprocess.run(command, input=content, capture_output=True, check=True).stdout.decode("utf-8")
    lines = subprocess.run([*command, "--json"], input=content, capture_output=True, check=True).stdout.splitlines()
    assert [" ".join(json.loads(line)["text"].split("\u2028")) for line in lines] == text.split("\n")[:-1]
