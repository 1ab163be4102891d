"""The page's blocks run in order, and its table states the losses that they claim."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "build_gpt.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_every_block_runs_and_reaches_its_loss() -> None:
    names: dict[str, object] = {}
    for block in BLOCK.finditer(TEXT):
        line = TEXT.count("\n", 0, block.start(1))
        # Blank lines in front give a failing assert the line number that it has in the page.
        exec(compile("\n" * line + block[1], str(PAGE), "exec"), names)


def test_the_table_states_the_losses_of_the_blocks() -> None:
    table = [float(loss) for loss in re.findall(r"^\| \d \| .+ \| ([\d.]+) \|$", TEXT, re.MULTILINE)]
    claimed = re.findall(r"^near\((?:math\.log|loss_of|learn)\(.*\), ([\d.]+), within=", TEXT, re.MULTILINE)
    assert len(table) == 7
    assert table == [float(loss) for loss in claimed]
    # Step 2 finds the table of step 1 by another way; each other step is better than the one before.
    assert all(later < earlier for earlier, later in pairwise(table[2:]))
    assert table[0] > table[1]
