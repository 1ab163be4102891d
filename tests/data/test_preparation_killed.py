"""Preparation killed with SIGKILL's effect at its own file operations, then run again: the same bytes every time."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import transduce
from transduce.data.config import DataConfig
from transduce.data.preparation import prepare

# Ends the process, with no chance to clean up, just before the n-th operation on the folder that changes something.
KILLED = """
import os, sys
from pathlib import Path

folder, corpus, last = sys.argv[1], sys.argv[2], int(sys.argv[3])
count = 0

def watch(event, arguments):
    global count
    writes = event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wa+")
    if writes or event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate"):
        if folder in str(arguments[0]):
            count += 1
            if count == last:
                os._exit(9)

from transduce.data.config import DataConfig
from transduce.data.preparation import prepare

sys.addaudithook(watch)
prepare(DataConfig(train=(corpus,)), Path(folder), vocabulary_size=400)
print(count)
"""


def run(folder: Path, corpus: Path, *, last: int) -> "subprocess.CompletedProcess[str]":
    environment = os.environ | {"PYTHONPATH": str(Path(transduce.__file__).parents[1])}
    command = [sys.executable, "-c", KILLED, str(folder), str(corpus), str(last)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


def check(corpus: Path, folder: Path, *, moments: list[int]) -> None:
    prepare(DataConfig(train=(str(corpus),)), folder / "whole", vocabulary_size=400)
    for moment in moments:
        killed = run(folder / "p", corpus, last=moment)
        assert killed.returncode == 9, killed.stderr
        prepare(DataConfig(train=(str(corpus),)), folder / "p", vocabulary_size=400)
        assert digests(folder / "p") == digests(folder / "whole"), f"killed at operation {moment}"
        (folder / "p" / "prepared.json").unlink()


def test_killed_a_few_times(corpus: Path, tmp_path: Path) -> None:
    check(corpus, tmp_path, moments=[9, 38])


@pytest.mark.slow
@pytest.mark.extended
def test_killed_at_every_operation(corpus: Path, tmp_path: Path) -> None:
    operations = int(run(tmp_path / "counted", corpus, last=-1).stdout)
    assert operations > 50
    check(corpus, tmp_path, moments=list(range(2, operations + 1)))


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="names of open folders are read there")
def test_what_other_text_left_is_gone_for_good_before_new_text_is_written(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut must not bring the old tokenizer back beside new text: its removal is flushed before any write."""
    folder = tmp_path / "p"
    prepare(DataConfig(train=(str(corpus),)), folder, vocabulary_size=400)
    names: list[set[str] | str] = []

    def fsync(descriptor: int) -> None:
        flushed = Path(f"/proc/self/fd/{descriptor}").readlink()
        names.append({path.name for path in flushed.iterdir()} if flushed == folder else flushed.name)

    monkeypatch.setattr(os, "fsync", fsync)
    corpus.write_bytes(b"".join(corpus.read_bytes().splitlines(keepends=True)[:-9]))
    prepare(DataConfig(train=(str(corpus),)), folder, vocabulary_size=400)
    first = names[0]
    assert isinstance(first, set), f"{first} was written first"
    assert not first & {"prepared.json", "tokenizer.model", "train", "valid", "test", "text"}
