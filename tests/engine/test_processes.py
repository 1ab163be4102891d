"""The C++ core in processes of their own: each instruction set that the environment forces, and a fork."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from transduce.core import has_core, instructions

pytestmark = pytest.mark.skipif(not has_core(), reason="the C++ core was not built")

TRANSLATE = """
import transduce
from transduce.translator import searching

searching._WORTH_A_THREAD = 8  # so that two threads get a batch each
texts = ["It rains.", "Where is the nearest pharmacy?", "Tom gave me 3 red apples."]
for precision in ("int8", "float32"):
    for threads in (1, 2):
        translator = transduce.load("en-de", precision=precision, threads=threads)
        assert translator.stepper.instructions == INSTRUCTIONS
        together = translator.translate(texts, beam=2)
        for found in [together, [translator.translate(text, beam=2) for text in texts]]:
            best = [translation.alternatives[0] for translation in found]
            print(precision, [(one.tokens, one.score.hex(), one.log_probability.hex()) for one in best])
"""


def output_of(program: str, **environment: str) -> str:
    variables = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src"), **environment}
    done = subprocess.run([sys.executable, "-c", program], env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.slow
def test_every_instruction_set_number_of_threads_and_batch_gives_the_same_bits() -> None:
    lines: set[str] = set()
    for name in instructions():
        lines |= set(output_of(f"INSTRUCTIONS = {name!r}\n{TRANSLATE}", TRANSDUCE_INSTRUCTIONS=name).splitlines())
    assert sorted(line.split()[0] for line in lines) == ["float32", "int8"]


def test_an_instruction_set_that_the_processor_lacks_is_refused() -> None:
    with pytest.raises(AssertionError, match="no instructions sse9 here"):
        output_of("import transduce; transduce.load('en-de')", TRANSDUCE_INSTRUCTIONS="sse9")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_translates_with_threads_of_its_own() -> None:
    program = """
import os, transduce
from transduce.translator import searching

searching._WORTH_A_THREAD = 8
texts = ["It rains.", "Where is the nearest pharmacy?"]
translator = transduce.load("en-de", precision="int8", threads=2)
before = [translation.text for translation in translator.translate(texts)]
child = os.fork()
after = [translation.text for translation in translator.translate(texts)]
if child == 0:
    os._exit(0 if after == before else 1)
assert after == before
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert output_of(program) == "0\n"


def test_a_daemon_thread_that_holds_a_network_at_exit_is_not_reported() -> None:
    program = """
import threading, transduce
translator = transduce.load("en-de", precision="int8")
threading.Thread(target=lambda own: threading.Event().wait(), args=[translator], daemon=True).start()
"""
    assert output_of(program) == ""
