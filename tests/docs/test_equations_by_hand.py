"""The page's Python blocks run, in order; its links and figures lead somewhere."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest
import torch

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "equations_by_hand.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_every_block_of_the_page_runs_in_order() -> None:
    torch.manual_seed(0)
    text = PAGE.read_text(encoding="utf-8")
    names: dict[str, object] = {}
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start(1))
        # Blank lines in front give a failing assert the line number that it has in the page.
        exec(compile("\n" * line + block[1], str(PAGE), "exec"), names)


def test_every_block_claims_something() -> None:
    idle = [block[1] for block in BLOCK.finditer(PAGE.read_text(encoding="utf-8")) if not claims(block[1])]
    assert idle == []


def claims(code: str) -> bool:
    return "assert " in code or "near(" in code


def drawing_script() -> ModuleType:
    path = DOCS / "figures" / "make_figures.py"
    spec = importlib.util.spec_from_file_location("make_figures", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["architecture", "positions", "masks", "schedule", "saturation"])
def test_a_figure_is_what_its_script_draws(name: str) -> None:
    drawn = drawing_script().FIGURES[f"{name}.svg"]().svg()
    assert (DOCS / "figures" / f"{name}.svg").read_bytes() == drawn.encode(), "run docs/figures/make_figures.py"


def test_every_figure_is_shown_and_described() -> None:
    shown = dict(re.findall(r"!\[([^\]]+)\]\(figures/([^)]+)\)", PAGE.read_text(encoding="utf-8")))
    assert sorted(shown.values()) == sorted(drawing_script().FIGURES)


def test_every_box_of_the_architecture_leads_to_its_file() -> None:
    root = ElementTree.parse(DOCS / "figures" / "architecture.svg").getroot()
    targets = [link.get("href") for link in root.iter("{http://www.w3.org/2000/svg}a")]
    assert len(targets) == 19
    assert all(target and (DOCS / "figures" / target).is_file() for target in targets)
