"""What an operator copies fits together: the page of operations, the systemd unit, the options file, the Dockerfile."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from transduce.serving.config import gather_options, read_options

ROOT = Path(__file__).parents[2]
UNIT = (ROOT / "deploy/transduce.service").read_text(encoding="utf-8")
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def steps() -> list[list[str]]:
    """The commands under "As a service", in words."""
    page = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
    found = re.search(r"## As a service\n.*?```sh\n(.*?)```", page, re.DOTALL)
    assert found is not None
    return [shlex.split(line) for line in found[1].splitlines()]


def unit_value(key: str) -> str:
    (value,) = re.findall(rf"^{key}=(.*)$", UNIT, re.MULTILINE)
    return str(value)


def test_the_steps_make_what_the_unit_needs(steps: list[list[str]]) -> None:
    program, command, *options = shlex.split(unit_value("ExecStart"))
    assert ["python3", "-m", "venv", str(Path(program).parents[1])] in steps
    assert command == "serve"
    assert ["cp", "deploy/serve.toml", f"{Path(options[options.index('--config') + 1]).parent}/"] in steps
    assert any(step[0] == "useradd" and step[-1] == unit_value("User") == unit_value("Group") for step in steps)
    assert all((ROOT / step[1]).is_file() for step in steps if step[0] == "cp")


def test_the_options_file_is_valid_and_its_keys_are_made(steps: list[list[str]]) -> None:
    options = gather_options(file=read_options(ROOT / "deploy/serve.toml"), environment={}, flags={})
    assert any(step[-2:] == [">", str(options.api_key_file)] for step in steps)
    assert int(unit_value("LimitNOFILE")) > 2 * options.connection_limit


def test_the_extras_exist_and_are_the_same_everywhere(steps: list[list[str]]) -> None:
    known = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    (given,) = re.findall(r"^ARG EXTRAS=(.*)$", DOCKERFILE, re.MULTILINE)
    assert set(given.split(",")) <= known.keys()
    assert any(step[-1] == f".[{given}]" for step in steps)


def test_the_dockerfile_copies_what_exists() -> None:
    copied = [
        name
        for line in re.findall(r"^COPY (.*)$", DOCKERFILE, re.MULTILINE)
        for name in line.split()[:-1]
        if "--from" not in line
    ]
    assert copied
    assert all((ROOT / name).exists() for name in copied)
