"""What translates, scores, fills in documents and serves, from the wheel, in an environment without torch.

The environment holds what the wheel declares (`transduce[serve]`) and nothing else: a dependency that is not declared
is missing there.
"""

import importlib.metadata
import json
import os
import re
import subprocess
import sys
import urllib.request
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from tests.journeys.conftest import ROOT

from transduce.model_directory import find_model, load_model

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory, installed: Path) -> Path:
    """Return the interpreter of the environment, made of links to what is installed here."""
    folder = tmp_path_factory.mktemp("without-torch")
    venv.create(folder, with_pip=False, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    for path in installed.iterdir():
        (packages / path.name).symlink_to(path)
    (wheel,) = importlib.metadata.distributions(path=[str(installed)])
    for name in closure(wheel.requires or [], extra="serve"):
        distribution = importlib.metadata.distribution(name)
        for top in {file.parts[0] for file in distribution.files or [] if file.parts[0] != ".."}:
            if not (packages / top).exists():
                (packages / top).symlink_to(Path(str(distribution.locate_file(top))))
    return folder / "bin" / "python"


def closure(requirements: list[str], *, extra: str) -> set[str]:
    """Return the distributions that these requirements bring, and what those bring."""
    found: set[str] = set()
    wanted = [(Requirement(text), extra) for text in requirements]
    while wanted:
        requirement, own = wanted.pop()
        if requirement.name in found or (requirement.marker and not requirement.marker.evaluate({"extra": own})):
            continue
        found.add(requirement.name)
        below = importlib.metadata.requires(requirement.name) or []
        wanted += [(Requirement(text), each) for text in below for each in (*requirement.extras, "")]
    return found


def run(
    python: Path, *arguments: str, folder: Path, exit_code: int = 0, path: Path | str = ""
) -> subprocess.CompletedProcess[str]:
    # An empty PYTHONPATH: only what the environment holds can be imported.
    environment = {**os.environ, "PYTHONPATH": str(path)}
    command = [str(python), "-m", "transduce", *arguments]
    result = subprocess.run(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert result.returncode == exit_code, f"{result.stdout}\n{result.stderr}"
    return result


def test_there_is_no_torch_and_what_needs_it_says_what_to_type(python: Path, tmp_path: Path) -> None:
    assert subprocess.run([python, "-c", "import torch"], capture_output=True, check=False).returncode == 1
    for command in (
        ["train", "--train", "mine.tsv", "--output", "run"],
        ["demo", "--output", "demo"],
        ["attention", "en-de", "It rains."],
        ["translate", "en-de", "--text", "It rains.", "--precision", "bf16"],
    ):
        message = run(python, *command, folder=tmp_path, exit_code=2).stderr
        assert re.fullmatch(r"transduce: .*torch.*: pip install 'transduce\[train\]'\n", message), command
    program = "import transduce; transduce.train('mine.tsv', output='run')"
    result = subprocess.run([python, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert "ConfigError: Training needs torch" in result.stderr


def test_text_is_translated_models_listed_and_described(python: Path, tmp_path: Path) -> None:
    answer = run(python, "translate", "en-de", "--text", "Where is the nearest pharmacy?", folder=tmp_path)
    assert "Apotheke" in answer.stdout
    for model in json.loads(run(python, "models", "--json", folder=tmp_path).stdout):
        parameters = load_model(find_model(model["name"])).parameters.values()
        assert model["parameters"] == sum(parameter.size for parameter in parameters)
    for command in (["describe", "en-de"], ["describe", "rnnsearch"], ["settings", "model"], ["system"]):
        assert run(python, *command, folder=tmp_path).stdout


def test_without_a_compiler_it_is_installed_and_says_what_to_do(python: Path, tmp_path: Path) -> None:
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", f"-Cbuild-dir={tmp_path / 'build'}"]
    command = [sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", str(tmp_path), str(ROOT)]
    environment = {**os.environ, "CC": "/bin/false", "CXX": "/bin/false", "TRANSDUCE_REQUIRE_CORE": ""}
    required = {**environment, "TRANSDUCE_REQUIRE_CORE": "1"}
    assert subprocess.run(command, env=required, capture_output=True, check=False).returncode == 1
    subprocess.run(command, env=environment, capture_output=True, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    assert not list((tmp_path / "installed").glob("transduce/core/*.so"))
    message = run(
        python, "translate", "en-de", "--text", "It rains.", folder=tmp_path, exit_code=2, path=tmp_path / "installed"
    ).stderr
    assert re.fullmatch(r"transduce: .* Install a compiler .*pip install 'transduce\[train\]', and torch.*\n", message)


@pytest.mark.skipif(sys.platform != "linux", reason="reads memory in Linux's unit")
def test_translating_takes_less_than_80_megabytes(python: Path) -> None:
    program = (
        "import transduce; transduce.load('en-de', threads=1).translate('Where is the nearest pharmacy?')\n"
        "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    )
    environment = {**os.environ, "PYTHONPATH": ""}
    peak = subprocess.run([python, "-c", program], env=environment, capture_output=True, text=True, check=True).stdout
    assert int(peak) < 80_000


def test_a_model_and_given_output_are_scored(python: Path, tmp_path: Path) -> None:
    (tmp_path / "test.tsv").write_text("I am hungry.\tIch habe Hunger.\nIt rains.\tEs regnet.\n", encoding="utf-8")
    (tmp_path / "output.txt").write_text("Ich habe Hunger.\nEs regnet.\n", encoding="utf-8")
    record = json.loads(run(python, "evaluate", "en-de", "test.tsv", "--json", folder=tmp_path).stdout)
    assert record["precision"] == "float32"
    assert 1 < record["perplexity_per_piece"] < 20
    given = run(python, "evaluate", "test.tsv", "--hypotheses", "output.txt", "--json", folder=tmp_path)
    scores = {score["name"]: score["value"] for score in json.loads(given.stdout)["scores"]}
    assert scores["chrF2"] == 100
    assert run(python, "likelihood", "en-de", "test.tsv", folder=tmp_path).stdout.startswith("-")


def test_a_document_is_filled_in(python: Path, tmp_path: Path) -> None:
    (tmp_path / "menu.po").write_text('msgid "It rains."\nmsgstr ""\n', encoding="utf-8")
    run(python, "translate", "en-de", "menu.po", "--output", "de.po", folder=tmp_path)
    assert 'msgstr "Es regnet."' in (tmp_path / "de.po").read_text(encoding="utf-8")


@pytest.fixture
def address(python: Path, tmp_path: Path) -> Iterator[str]:
    command = [str(python), "-m", "transduce", "serve", "en-de", "--port", "0"]
    environment = {**os.environ, "PYTHONPATH": ""}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        said = re.search(r"http://\S+", server.stdout.readline())
        assert said is not None
        yield said.group()
        server.terminate()


def test_it_is_served(address: str) -> None:
    body = json.dumps({"q": "It rains.", "source": "en", "target": "de"}).encode()
    request = urllib.request.Request(f"{address}/translate", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert json.load(answer)["translatedText"] == "Es regnet."
    asked = urllib.request.Request(
        f"{address}/v1/attention", json.dumps({"text": "It rains."}).encode(), {"Content-Type": "application/json"}
    )
    with pytest.raises(urllib.error.HTTPError) as refusal:
        urllib.request.urlopen(asked, timeout=60)
    assert refusal.value.code == 400
    assert "pip install 'transduce[train]'" in refusal.value.read().decode()
