"""Translation on a real local Ray cluster: the bytes of one process, after killed workers and on a full disk, too."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from transduce.bulk.parts import finished_parts, merge
from transduce.bulk.translation import MapTranslation
from transduce.translator import Translator

pytestmark = [
    pytest.mark.extended,
    pytest.mark.skipif(sys.platform != "linux", reason="finds Ray's processes as Linux shows them"),
]
ACTOR = "ray::MapWorker(MapBatches(PartActor))"
PARTS, LINES = 12, 20


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files of sentences that are all different."""
    pytest.importorskip("ray")
    folder = tmp_path_factory.mktemp("corpus")
    for number in range(2):
        lines = [f"Train {number}{line:03d} leaves at nine.\n" for line in range(PARTS // 2 * LINES)]
        (folder / f"{number}.txt").write_text("".join(lines), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def expected(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What one process translates."""
    output = tmp_path_factory.mktemp("expected") / "output"
    files = sorted(map(str, corpus.glob("*.txt")))
    subprocess.run([*command(), *files, "--output", str(output)], check=True, capture_output=True)
    return output.read_bytes()


def command(*options: str) -> list[str]:
    return [sys.executable, "-m", "transduce", "translate", "en-de", "--threads", "1", *options]


def started(corpus: Path, output: Path, *options: str, before: str = "") -> "subprocess.Popen[str]":
    parts = ("--runner", "ray", "--workers", "2", "--part-lines", str(LINES), "--output", str(output))
    words = command(f"{corpus}/*.txt", *parts, *options)
    environment = {**os.environ, "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}
    shell = ["sh", "-c", f'{before} exec "$@"', "sh", *words]
    return subprocess.Popen(shell, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def descendants(process: int) -> Iterator[tuple[int, str]]:
    """Yield the processes that a process started, directly or not, with their command lines."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            words = (folder / "cmdline").read_text().replace("\0", " ")
        except (OSError, ValueError):
            continue
        if parent == process:
            yield int(folder.name), words
            yield from descendants(int(folder.name))


def translated(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.txt")))


def wait_for_parts(folder: Path, count: int, process: "subprocess.Popen[str]") -> None:
    while len(list(folder.glob("*.txt"))) < count:
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.05)


def test_killed_workers_cost_nothing_but_time(corpus: Path, expected: bytes, tmp_path: Path) -> None:
    process, killed = started(corpus, tmp_path / "out"), set[int]()
    for count in (1, 4):
        wait_for_parts(tmp_path / "out", count, process)
        actors = {one for one, words in descendants(process.pid) if words.startswith(ACTOR)} - killed
        assert actors
        for actor in actors:
            os.kill(actor, signal.SIGKILL)
        killed |= actors
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    assert f"{PARTS * LINES} lines in" in output
    assert len(finished_parts(tmp_path / "out")) == PARTS
    merge(tmp_path / "out", tmp_path / "merged")
    assert (tmp_path / "merged").read_bytes() == translated(tmp_path / "out") == expected
    journal = (tmp_path / "out" / "shards" / "1-of-1.jsonl").read_text().splitlines()
    assert len(journal) == 1 + PARTS + 1  # no part is written twice


def test_killed_itself_it_continues(corpus: Path, expected: bytes, tmp_path: Path) -> None:
    process = started(corpus, tmp_path / "out")
    wait_for_parts(tmp_path / "out", 3, process)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    assert "the same command continues" in output
    times = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("*.txt")}
    assert 3 <= len(times) < PARTS
    process = started(corpus, tmp_path / "out")
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    assert translated(tmp_path / "out") == expected
    kept = {name: (tmp_path / "out" / name).stat().st_mtime_ns for name in times}
    assert kept == times


def test_a_full_disk_is_one_line_and_costs_nothing(corpus: Path, expected: bytes, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32k", "tmpfs", str(disk)], check=False)
    if mounted.returncode:
        pytest.skip("only the administrator can make a disk that is soon full")
    try:
        output, _ = (process := started(corpus, disk / "out")).communicate(timeout=300)
        assert process.returncode == 2, output
        assert "No space left on device. Free some space" in output
        assert "Traceback" not in output
        times = {path.name: path.stat().st_mtime_ns for path in (disk / "out").glob("*.txt")}
        assert 0 < len(times) < PARTS
        subprocess.run(["mount", "-o", "remount,size=10m", str(disk)], check=True)
        output, _ = (process := started(corpus, disk / "out")).communicate(timeout=300)
        assert process.returncode == 0, output
        assert translated(disk / "out") == expected
        assert {name: (disk / "out" / name).stat().st_mtime_ns for name in times} == times
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_damaged_file_is_one_line(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "cut.gz").write_bytes(b"\x1f\x8b\x08\0cut")
    output, _ = (process := started(corpus, tmp_path / "out", str(tmp_path / "cut.gz"))).communicate(timeout=300)
    assert process.returncode == 2, output
    assert "cut.gz" in output.splitlines()[-1]
    assert "Traceback" not in output


def test_a_cluster_loses_a_machine(corpus: Path, expected: bytes, tmp_path: Path) -> None:
    """Two machines, as far as Ray can tell, in RAY_ADDRESS; the second, with the actors, dies at work."""
    words = command(f"{corpus}/*.txt", "--runner", "ray", "--part-lines", str(LINES), "--output", str(tmp_path / "out"))
    script = f"""
import os, pathlib, subprocess, time
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
from ray.cluster_utils import Cluster
cluster = Cluster(initialize_head=True, head_node_args=dict(num_cpus=1, include_dashboard=False))
machine = cluster.add_node(num_cpus=2)
work = subprocess.Popen({words!r}, env=dict(os.environ, RAY_ADDRESS=cluster.address))
while len(list(pathlib.Path({str(tmp_path / "out")!r}).glob("*.txt"))) < 2 and work.poll() is None:
    time.sleep(0.05)
assert work.poll() is None, work.poll()
cluster.remove_node(machine, allow_graceful=False)
code = work.wait()
cluster.shutdown()
raise SystemExit(code)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False, text=True, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
    assert translated(tmp_path / "out") == expected
    assert len(finished_parts(tmp_path / "out")) == PARTS


def test_map_batches_keeps_rows_together(corpus: Path, expected: bytes, tmp_path: Path) -> None:
    script = f"""
import os; os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
import ray
from transduce.bulk.translation import MapTranslation
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
rows = [dict(n=n, english=line) for n, line in enumerate(open({str(corpus / "0.txt")!r}).read().splitlines())]
made = ray.data.from_items(rows).map_batches(
    MapTranslation, fn_constructor_kwargs=dict(model="en-de", source="english", target="german"),
    compute=ray.data.ActorPoolStrategy(size=2), batch_size=7, num_cpus=1)
for row in sorted(made.take_all(), key=lambda row: row["n"]):
    print(row["german"])
"""
    made = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True)
    lines = expected.decode().splitlines()[: PARTS // 2 * LINES]
    assert [line for line in made.stdout.splitlines() if line in set(lines)] == lines


def test_a_batch_gets_the_translators_output() -> None:
    texts = ["Where is the train?", "It rains."]
    batch = MapTranslation("en-de", target="german", beam=2)({"text": texts, "n": [1, 2]})
    assert batch["german"] == [one.text for one in Translator.load("en-de", threads=1).translate(texts, beam=2)]
    assert batch["n"] == [1, 2]
