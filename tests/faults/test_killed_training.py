"""Ctrl-C, SIGTERM, and a second process on the same run; what kill -9 leaves is tested by `test_campaign.py`."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.faults.small_run import command, environment

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")]


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
        assert "and saved. Resume with: transduce train --output" in told
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
