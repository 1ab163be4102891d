"""A corpus larger than the memory that the process may have is prepared all the same."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import transduce

PAIRS = 30_000
ALLOWED = 48 << 20

# Memory that is the process' own is limited by the system to what it has after importing and 48 MiB more.
LIMITED = """
import resource, sys
from pathlib import Path
from transduce.data.config import DataConfig
from transduce.data.preparation import prepare

status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
limit = int(status["VmData"].split()[0]) * 1024 + int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
try:
    bytearray(int(sys.argv[3]) + (1 << 20))
except MemoryError:
    prepared = prepare(DataConfig(train=(sys.argv[1],), max_length=4000), Path(sys.argv[2]), vocabulary_size=600)
    print(sum(split.pairs for split in prepared.report.splits.values()))
"""


@pytest.mark.slow
@pytest.mark.extended
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits a process' own memory without its mapped files")
def test_a_corpus_larger_than_the_memory_allowed(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.tsv"
    with corpus.open("w", encoding="utf-8") as file:
        for number in range(PAIRS):
            words = [f"w{(number * 7 + place * place) % 997}" for place in range(240)]
            file.write(f"{number} {' '.join(words)}\t{number} {' '.join(reversed(words))}\n")
    assert corpus.stat().st_size > 1.3 * ALLOWED
    environment = os.environ | {"PYTHONPATH": str(Path(transduce.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", LIMITED, str(corpus), str(tmp_path / "p"), str(ALLOWED)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == PAIRS
