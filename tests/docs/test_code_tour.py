"""The tour takes an hour, at a speed one can read at, and every name it points at is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "code_tour.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
STOPS = re.findall(r"^## (\d+\. [^\n·]+) · (\d+) minutes?\n(.*?)(?=^## )", TEXT, re.MULTILINE | re.DOTALL)
VISITS = re.findall(r"^- (Read|Skim) \[\S+\]\((\S+)\)(.*?)(?=^- |\n\n|\Z)", TEXT, re.MULTILINE | re.DOTALL)

FASTEST = 50  # lines a minute
TO_SKIM = 0.3  # minutes
OPTIONS = {
    "neighbourhood.py",
    "normalization.py",
    "ssru.py",
    "language_model.py",
    "language_model_config.py",
    "text_encoder.py",
    "text_encoder_config.py",
}  # alternatives to parts of the paper's network


def lines_of(link: str) -> int:
    return len((PAGE.parent / link).read_text(encoding="utf-8").splitlines())


def test_it_takes_an_hour() -> None:
    assert 55 <= sum(int(minutes) for _, minutes, _ in STOPS) <= 65


@pytest.mark.parametrize(("name", "minutes", "text"), STOPS, ids=[name for name, _, _ in STOPS])
def test_no_stop_asks_for_more_than_one_can_read(name: str, minutes: str, text: str) -> None:
    visits = re.findall(r"^- (Read|Skim) \[\S+\]\((\S+)\)", text, re.MULTILINE)
    assert visits, name
    needed = sum(lines_of(link) / FASTEST if how == "Read" else TO_SKIM for how, link in visits)
    assert needed <= int(minutes)


@pytest.mark.parametrize(("how", "link", "text"), VISITS, ids=[link.rsplit("/", 1)[-1] for _, link, _ in VISITS])
def test_what_is_pointed_at_is_there(how: str, link: str, text: str) -> None:
    code = (PAGE.parent / link).read_text(encoding="utf-8")
    missing = [name for name in re.findall(r"`(\w+)`", text) if not re.search(rf"\b{name}\b", code)]
    assert missing == []


def test_every_room_that_carries_the_paper_is_visited() -> None:
    rooms = {Path(link).parts[3] for _, link, _ in VISITS if link.startswith("../src/transduce/")}
    assert {"text", "data", "model", "training", "decoding", "evaluation", "cli"} <= rooms


def test_every_file_of_the_papers_own_network_is_read() -> None:
    read = {Path(link).name for how, link, _ in VISITS if how == "Read" and "/model/" in link}
    files = {path.name for path in (ROOT / "src" / "transduce" / "model").glob("*.py")}
    assert files - read == {"__init__.py", "cost.py", "parameters.py", *OPTIONS}


def test_its_blocks_run_in_order() -> None:
    names: dict[str, object] = {}
    for block in BLOCK.finditer(TEXT):
        line = TEXT.count("\n", 0, block.start(1))
        exec(compile("\n" * line + block[1], str(PAGE), "exec"), names)
