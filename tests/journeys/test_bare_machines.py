"""Commands of a user without a home and without an entry in the list of users, and where nothing can be written.

`sitecustomize`, which Python imports at each start, stands for such a machine.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.faults.small_run import SETTINGS, SOURCE

pytestmark = pytest.mark.skipif(os.name == "nt", reason="speaks of users of POSIX systems")
MACHINE = """
import errno, os, pwd, sys

def no_entry(*_):
    raise KeyError("uid not found")

pwd.getpwuid = pwd.getpwnam = no_entry
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

def refuse(event, arguments):
    writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING
    is_file = isinstance(arguments[0] if arguments else 0, str) and not arguments[0].startswith("/dev/")
    if (writes and is_file) or event in ("os.mkdir", "os.rename", "os.remove"):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(arguments[0]))

if "READ_ONLY" in os.environ:
    sys.addaudithook(refuse)
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "machine").mkdir()
    (tmp_path / "machine" / "sitecustomize.py").write_text(MACHINE, encoding="utf-8")
    # Without coverage's variables: it would write a file of its own beside each process.
    left_out = ("HOME", "XDG_", "COVERAGE_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    return {**kept, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([str(tmp_path / "machine"), str(SOURCE)])}


def run(environment: dict[str, str], *arguments: str | Path, given: str = "") -> tuple[int, str, str]:
    command = [sys.executable, "-m", "transduce", *map(str, arguments)]
    done = subprocess.run(
        command, env=environment, input=given, capture_output=True, encoding="utf-8", timeout=300, check=False
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout, done.stderr


def test_nothing_needs_to_be_written_to_translate_and_to_list(environment: dict[str, str], tmp_path: Path) -> None:
    page = tmp_path / "x.html"
    page.write_text("<p>The cat sleeps.</p>", encoding="utf-8")
    bare = {**environment, "READ_ONLY": "1"}
    assert run(bare, "translate", "en-de", given="The cat sleeps.\n")[:2] == (0, "Die Katze schläft.\n")
    assert run(bare, "translate", "en-de", page)[1] == "<p>Die Katze schläft.</p>"
    assert "en-de (bundled)" in run(bare, "models")[1]
    code, _, error = run(bare, "translate", "en-de", page, "--output", tmp_path / "y.html")
    assert (code, "Read-only file system" in error) == (2, True)
    code, _, error = run(bare, "serve", "en-de", "--port", "0")  # py3langid unpacks its table into a temporary file
    assert (code, "Set TMPDIR" in error) == (2, True)


@pytest.mark.slow
def test_training_works_without_a_home_and_names_what_it_cannot_write(
    environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "c.tsv").write_text("".join(f"a cat {n}\teine Katze {n}\n" for n in range(60)), encoding="utf-8")
    settings = [f"--set={key}={value}" for key, value in {**SETTINGS, "training.steps": 2}.items()]
    command: list[str | Path] = [
        "train",
        "--preset",
        "tiny",
        "--train",
        tmp_path / "c.tsv",
        "--output",
        tmp_path / "run",
        *settings,
    ]
    code, _, error = run({**environment, "READ_ONLY": "1"}, *command)
    assert (code, "Set TMPDIR" in error) == (2, True)
    assert run(environment, *command)[0] == 0
    assert "~nobody/x.tsv does not exist" in run(environment, "evaluate", "en-de", "~nobody/x.tsv")[2]
