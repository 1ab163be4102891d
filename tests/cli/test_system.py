"""What `transduce system` says is what the machine says."""

import json
import os
import platform
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch

from transduce.cli.system import FEATURES, LIBRARIES, OPTIONAL, as_lines, software_bill_of_materials
from transduce.version import __version__

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def facts() -> dict[str, Any]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "transduce", "system", "--json"]
    loaded: dict[str, Any] = json.loads(
        subprocess.run(command, env=environment, capture_output=True, check=True).stdout
    )
    return loaded


def test_every_dependency_is_reported_with_its_version(facts: dict[str, Any]) -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        dependencies = tomllib.load(file)["project"]["dependencies"]
    declared = {dependency.partition(">")[0].partition("=")[0].strip() for dependency in dependencies}
    assert set(LIBRARIES) == declared
    optional = {name: version(name) if find_spec(name) else None for name in OPTIONAL}
    assert facts["libraries"] == {**{name: version(name) for name in declared}, **optional}
    assert facts["transduce"] == __version__
    assert facts["python"].startswith(platform.python_version())


def test_machine_is_reported_as_torch_and_the_system_see_it(facts: dict[str, Any]) -> None:
    assert facts["platform"] == platform.platform()
    assert facts["processor"]["torch_uses"] == torch.backends.cpu.get_cpu_capability()
    assert facts["chosen"]["threads"] == facts["processor"]["cores_available"]
    assert 1 <= facts["chosen"]["threads"] <= (os.cpu_count() or 1)
    assert facts["disk_free_bytes"] > 0


@pytest.mark.skipif(sys.platform != "linux", reason="reads what Linux says of itself")
def test_features_and_memory_are_those_of_linux(facts: dict[str, Any]) -> None:
    information = Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
    expected = [name for name, flags in FEATURES.items() if any(flag in information for flag in flags)]
    assert facts["processor"]["features"] == expected
    memory = facts["memory_bytes"]
    assert memory["total"] == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < memory["available"] <= memory["total"]


def test_lines_carry_the_same_facts(facts: dict[str, Any]) -> None:
    lines = dict(re.split(r" {2,}", line) for line in as_lines(facts).splitlines())
    assert lines["torch"] == facts["libraries"]["torch"]
    assert lines["threads"] == str(facts["chosen"]["threads"])
    train, translate = facts["chosen"]["precision"], facts["chosen"]["translation"]
    assert lines["precision"] == f"{train} to train, {translate} to translate (auto)"
    assert lines["processor"] == facts["processor"]["name"]
    assert lines["disk"].endswith("GB free here")


def test_the_bill_of_materials_has_every_dependency_and_names_only_what_it_lists() -> None:
    bill = software_bill_of_materials()
    names = {component["name"] for component in bill["components"]}
    assert {"numpy", "pydantic", "pydantic-core", "typer", "sentencepiece"} <= names
    assert bill["metadata"]["component"]["name"] == "transduce"
    listed = {bill["metadata"]["component"]["bom-ref"], *(own["bom-ref"] for own in bill["components"])}
    assert {own["ref"] for own in bill["dependencies"]} == listed
    assert {need for own in bill["dependencies"] for need in own["dependsOn"]} <= listed
    numpy = next(own for own in bill["components"] if own["name"] == "numpy")
    assert numpy["purl"] == f"pkg:pypi/numpy@{version('numpy')}"
