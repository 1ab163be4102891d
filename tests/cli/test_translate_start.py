"""What one short text has to wait for: nothing is imported that it does not need."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
from transduce.cli.application import app
app(["translate", sys.argv[1], "--text", "a red dog runs", "--threads", "1"], standalone_mode=False)
unneeded = ("rich.progress", "transduce.documents", "torch._dynamo", "transduce.training")
print("imported", [name for name in unneeded if name in sys.modules])
"""


@pytest.mark.slow
def test_one_text_imports_no_more_than_it_needs(small_model: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src"), "PYTHONIOENCODING": "utf-8"}
    for _ in range(2):  # the first may compile kernels
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(small_model)],
            env=environment,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["ein roter Hund läuft", "imported []"]
