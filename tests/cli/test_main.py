"""What every command has in common: help, version, exit codes, pipes, encodings."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from transduce.version import __version__

SOURCE = str(Path(__file__).parents[2] / "src")
FAILING_COMMAND = """
import sys
sys.path.insert(0, {source!r})
from transduce import errors
from transduce.cli import main
from transduce.cli.application import app

@app.command()
def fail() -> None:
    {body}

sys.argv = ["transduce", "fail"]
main()
"""


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "transduce", *arguments]
    return subprocess.run(
        command, env={**os.environ, "PYTHONPATH": SOURCE, **environment}, capture_output=True, check=False
    )


def run_command(body: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run the real command line with one more command, `fail`, whose body is given."""
    program = FAILING_COMMAND.format(source=SOURCE, body=body)
    return subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **environment}, capture_output=True, check=False
    )


def test_version_is_the_one_of_the_package() -> None:
    result = run("--version")
    assert (result.returncode, result.stdout, result.stderr) == (0, f"transduce {__version__}\n".encode(), b"")


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_lists_the_commands(flag: str) -> None:
    result = run(flag)
    assert result.returncode == 0
    assert b"Usage: python -m transduce" in result.stdout
    assert b"system" in result.stdout


def test_a_wrong_option_is_one_cause_and_exit_code_2() -> None:
    result = run("--no-such-option")
    assert result.returncode == 2
    assert b"--no-such-option" in result.stderr
    assert b"Traceback" not in result.stderr


@pytest.mark.parametrize(
    "kind", ["TransduceError", "ConfigError", "DataError", "ModelError", "RunError", "TrainingError"]
)
def test_what_a_user_can_cure_is_one_line_and_exit_code_2(kind: str) -> None:
    result = run_command(f"raise errors.{kind}('train.de:7 is empty. Remove the line.')")
    assert (result.returncode, result.stdout) == (2, b"")
    assert result.stderr == b"transduce: train.de:7 is empty. Remove the line.\n"


def test_a_bug_of_ours_is_a_traceback_and_exit_code_1() -> None:
    result = run_command("raise ZeroDivisionError('our bug')")
    assert result.returncode == 1
    assert result.stderr.startswith(b"Traceback")
    assert result.stderr.endswith(b"ZeroDivisionError: our bug\n")


def test_text_is_utf_8_with_plain_line_ends_whatever_the_system_says() -> None:
    result = run_command("print('Grüße ▁'); raise errors.DataError('Größe \\udcff')", PYTHONIOENCODING="latin-1:strict")
    assert result.stdout == "Grüße ▁\n".encode()
    assert result.stderr == "transduce: Größe \\udcff\n".encode()


@pytest.mark.skipif(os.name == "nt", reason="a closed pipe is reported differently there")
@pytest.mark.parametrize("lines", [1, 100_000])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_goes_away_is_met_in_silence(lines: int, unbuffered: str) -> None:
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    program = FAILING_COMMAND.format(source=SOURCE, body=f"input(); print('line\\n' * {lines})")
    with subprocess.Popen(
        [sys.executable, "-c", program],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stdin.write(b"go\n")
        process.stdin.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


@pytest.mark.parametrize(
    "body", ["bytearray(1 << 60)", 'raise RuntimeError("DefaultCPUAllocator: can\'t allocate memory")']
)
def test_without_memory_the_error_says_what_to_lower(body: str) -> None:
    result = run_command(body)
    assert result.returncode == 2
    assert result.stderr.startswith(b"transduce: memory ran out. To train with less, lower model.d_model")
    assert run_command('raise RuntimeError("a bug")').returncode == 1
