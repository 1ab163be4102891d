"""Documents stay true: links lead somewhere, the plan is that of the house, commands and versions exist."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "transduce"
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        return tomllib.load(file)


def anchors_of(text: str) -> set[str]:
    """Return the anchors of a page's headings, as hosting sites make them."""
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(document: Path) -> None:
    text = re.sub(r"```.*?```", "", document.read_text(encoding="utf-8"), flags=re.DOTALL)
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        name, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        file = (document.parent / name).resolve() if name else document
        is_whole = file.exists() and (not anchor or anchor in anchors_of(file.read_text(encoding="utf-8")))
        if not is_whole:
            broken.append(target)
    assert broken == []


class TestArchitecture:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")

    def rooms(self, *, planned: bool) -> set[str]:
        rows = re.findall(r"^\| `(\w+)(?:/|\.py)` \| (.+) \|$", self.text, flags=re.MULTILINE)
        return {name for name, meaning in rows if meaning.startswith("*planned*") == planned}

    def test_names_every_room_and_no_other(self) -> None:
        there = {entry.stem for entry in PACKAGE.iterdir()} - {"__pycache__", "py"}  # py.typed is no room
        assert self.rooms(planned=False) == there
        assert not self.rooms(planned=True) & there

    def test_names_files_that_exist(self) -> None:
        files = re.findall(r"`([a-z_]+/[\w/]+\.py)`", self.text)
        assert len(files) > 10
        assert [name for name in files if not (PACKAGE / name).is_file()] == []

    def test_has_the_floors_of_the_contract(self, project: dict[str, Any]) -> None:
        layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
        floors = [re.sub(r"[()]", "", layer) for layer in layers]
        assert "```\n" + "\n".join(floors) + "\n```" in self.text


def test_every_dependency_has_been_weighed(project: dict[str, Any]) -> None:
    record = (ROOT / "docs" / "decisions" / "0001-dependencies.md").read_text(encoding="utf-8")
    settings = project["project"]
    lines = settings["dependencies"] + [line for extra in settings["optional-dependencies"].values() for line in extra]
    names = [re.split(r"[<>=\[]", line)[0] for line in lines if not line.startswith("transduce[")]
    rows = " ".join(line.split("|")[1] for line in record.splitlines() if line.startswith("|"))
    assert [name for name in names if name not in re.split(r"[ ,]+", rows)] == []


def test_every_dependency_is_pinned_for_tests(project: dict[str, Any]) -> None:
    pins = re.findall(r"^([\w.-]+)==", (ROOT / "constraints.txt").read_text(encoding="utf-8"), flags=re.MULTILINE)
    pinned = {re.sub(r"[-_.]+", "-", name).lower() for name in pins}
    settings = project["project"]
    lines = [
        *settings["dependencies"],
        *(line for extra in settings["optional-dependencies"].values() for line in extra),
    ]
    names = {re.sub(r"[-_.]+", "-", re.split(r"[<>=\[; ]", line)[0]).lower() for line in lines}
    assert names - pinned - {"transduce"} == set()


def test_decisions_are_numbered_and_listed() -> None:
    folder = ROOT / "docs" / "decisions"
    names = sorted(file.name for file in folder.glob("*.md") if file.name != "README.md")
    assert [name[:5] for name in names] == [f"{number:04d}-" for number in range(1, len(names) + 1)]
    contents = (folder / "README.md").read_text(encoding="utf-8")
    assert [name for name in names if f"({name})" not in contents] == []


def test_commands_for_contributors_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    commands = set(re.findall(r"make (setup|check|test|format)\b", text))
    assert {"setup", "check", "test"} <= commands
    for command in commands:
        assert re.search(rf"^{command}:", makefile, flags=re.MULTILINE)


def test_hooks_are_local_and_use_the_tools_of_make_check() -> None:
    text = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert re.findall(r"repo: (\S+)", text) == ["local"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    tools = re.findall(r"entry: \.venv/bin/(\S+)", text)
    assert tools == ["ruff", "ruff", "mypy", "lint-imports"]
    assert all(f"$(BIN)/{tool}" in makefile for tool in tools)
