"""What a run loses when it is interrupted: nothing."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from transduce.training.interruption import stopping_on_signals

PROGRAM = Path(__file__).with_name("train_numbers.py")


def start(folder: Path, *settings: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, str(PROGRAM), str(folder), *settings],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def finish(process: "subprocess.Popen[str]") -> list[str]:
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    return output.split()


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="Windows has no SIGHUP")
def test_a_closed_terminal_asks_to_stop_unless_nohup_ignores_it() -> None:
    before = signal.signal(signal.SIGHUP, lambda number, frame: pytest.fail("the handler was not replaced"))
    try:
        with stopping_on_signals() as stop:
            signal.raise_signal(signal.SIGHUP)
            assert stop.signal == signal.SIGHUP
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        with stopping_on_signals() as stop:
            signal.raise_signal(signal.SIGHUP)
            assert not stop
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_second_request_stops_at_once() -> None:
    with stopping_on_signals() as stop:
        assert not stop
        signal.raise_signal(signal.SIGINT)
        assert stop
        assert stop.signal == signal.SIGINT
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a process there cannot be sent these signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_and_the_next_start_goes_on_to_the_same_weights(tmp_path: Path, number: signal.Signals) -> None:
    *_, ending, _, _, expected = finish(start(tmp_path / "whole"))
    assert ending == "STEPS"
    process = start(tmp_path / "stopped", "steps=100000")
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    while not list((tmp_path / "stopped").glob("run/checkpoints/step-00000006")):
        time.sleep(0.02)
    process.send_signal(number)
    ending, step, received, _ = finish(process)
    assert (ending, received) == ("STOPPED", str(int(number)))
    assert 6 < int(step) < 90
    newest = max((tmp_path / "stopped" / "run" / "checkpoints").iterdir())
    assert newest.name == f"step-{int(step):08d}"
    assert finish(start(tmp_path / "stopped"))[-1] == expected


FORKS = """
import os, random, signal, sys
from pathlib import Path
import train_numbers as program
folder, kills, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
generator = random.Random(seed)
config = program.configured([])

def child(name, killed_after=0.0):
    process = os.fork()
    if process == 0:
        # SIGPROF ends a process without a handler at once, as SIGKILL does. Its timer counts processor time, so that
        # kills strike alike on a busy and on a quiet machine.
        signal.setitimer(signal.ITIMER_PROF, killed_after)
        try:
            program.train(folder / name, config, stop=program.StopRequest(), world=program.World())
            os._exit(0)
        except BaseException as fault:
            print(repr(fault), flush=True)
            os._exit(1)
    return process

for name in ("whole", "killed"):
    program.prepare(folder / name)
_, status, used = os.wait4(child("whole"), 0)
assert status == 0
duration = used.ru_utime + used.ru_stime
resumed_from = []
for _ in range(kills):
    resumed_from.append(program.newest_step(folder / "killed"))
    status = os.waitpid(child("killed", generator.uniform(0.001, 4 * duration / kills)), 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "a resumed run failed"
assert os.waitpid(child("killed"), 0)[1] == 0
print(program.weights_hash(folder / "whole"), program.weights_hash(folder / "killed"), *resumed_from)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_at_random_moments_a_run_ends_with_the_weights_of_one_never_killed(tmp_path: Path) -> None:
    seed = random.randrange(1 << 30)
    print("seed", seed)
    result = subprocess.run(
        [sys.executable, "-c", FORKS, str(tmp_path), "12", str(seed)],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([str(PROGRAM.parent), *sys.path])},
    )
    assert result.returncode == 0, result.stdout + result.stderr
    whole, killed, *resumed_from = result.stdout.split()
    print("resumed from", resumed_from)
    assert len(set(resumed_from)) >= 4, "too few of the kills struck between checkpoints"
    assert killed == whole
