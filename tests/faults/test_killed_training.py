"""kill -9 at random moments of a whole run, from preparation to averaging: the final weights are the same.

The full campaign is `make faults`; this is the part that every change must pass.
"""

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")]

SETTINGS = {
    "training.steps": 24,
    "training.validate_every": 8,
    "training.checkpoint_every": 4,
    "training.batch_tokens": 400,
    "training.micro_batch_tokens": 150,
    "training.bpe_dropout": 0.1,
    "training.average_last": 3,
    "training.report_every": 2,
    "model.dropout": 0.2,
    "model.d_model": 16,
    "model.d_ff": 32,
    "model.heads": 2,
    "model.layers": 1,
    "model.vocabulary_size": 500,
}
KILLS = 4


def command(corpus: Path, output: Path) -> list[str]:
    settings = [f"--set={key}={value}" for key, value in SETTINGS.items()]
    return [
        *(sys.executable, "-m", "transduce", "train", "--preset", "tiny", "--threads", "1"),
        *("--train", str(corpus), "--output", str(output)),
        *settings,
    ]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src"), "OMP_NUM_THREADS": "1"}


def finish(arguments: list[str]) -> float:
    started = time.monotonic()
    result = subprocess.run(arguments, env=environment(), capture_output=True, encoding="utf-8", check=False)
    assert result.returncode == 0, result.stderr
    return time.monotonic() - started


def fingerprint(run: Path) -> dict[str, str]:
    files = [run / "model/weights.safetensors", *sorted((run / "checkpoints").glob("step-*/*.safetensors"))]
    return {str(file.relative_to(run)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def test_killed_at_random_moments_a_run_ends_with_the_same_weights(tmp_path: Path) -> None:
    from transduce.demo import write_corpus

    write_corpus(tmp_path / "corpus", pairs=300, held_out=20)
    corpus = tmp_path / "corpus" / "train.tsv"
    whole = tmp_path / "whole"
    duration = finish(command(corpus, whole))
    seed = random.randrange(10**6)
    chance = random.Random(seed)
    killed = tmp_path / "killed"
    survived = 0
    for _ in range(KILLS):
        process = subprocess.Popen(command(corpus, killed), env=environment(), stderr=subprocess.DEVNULL)
        try:
            process.wait(timeout=chance.uniform(0.3, 1.0) * duration)
            survived += 1
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
    finish(command(corpus, killed))
    assert fingerprint(killed) == fingerprint(whole), f"seed {seed}, {KILLS - survived} kills"


def test_ctrl_c_saves_and_tells_how_to_go_on(tmp_path: Path) -> None:
    from transduce.demo import write_corpus

    write_corpus(tmp_path / "corpus", pairs=300, held_out=20)
    corpus, output = tmp_path / "corpus" / "train.tsv", tmp_path / "run"
    arguments = [*command(corpus, output), "--set=training.steps=100000"]
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        process = subprocess.Popen(arguments, env=environment(), stderr=subprocess.PIPE, encoding="utf-8")
        deadline = time.monotonic() + 120
        before = _steps(output)
        while _steps(output) <= before and time.monotonic() < deadline:
            time.sleep(0.2)
        process.send_signal(number)
        _, told = process.communicate(timeout=120)
        assert process.returncode == code, told
        assert "and saved. Go on with: transduce train --output" in told
        assert _steps(output) > before


def _steps(run: Path) -> int:
    return max((int(path.name[5:]) for path in (run / "checkpoints").glob("step-????????")), default=0)


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    from transduce.demo import write_corpus
    from transduce.files import locked

    write_corpus(tmp_path / "corpus", pairs=50, held_out=5)
    with locked(tmp_path / "run" / "run.lock", purpose="training"):
        arguments = command(tmp_path / "corpus" / "train.tsv", tmp_path / "run")
        result = subprocess.run(arguments, env=environment(), capture_output=True, encoding="utf-8", check=False)
    assert result.returncode == 2
    assert "is in use by another process" in result.stderr
    assert "Traceback" not in result.stderr
