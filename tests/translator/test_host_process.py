"""Loading a model and translating leave the threads and the allocator of the host process as they were."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tests.translator.test_translator import make_model

import transduce
from transduce.networks.torch_stepper import TorchStepper

PROGRAM = """
import sys
opened = []
sys.addaudithook(lambda event, arguments: event == "ctypes.dlopen" and opened.append(arguments[0]))
import torch, transduce
torch.set_num_threads(3)
for precision in ("int8", "float32"):
    for threads in (None, 1, 2):
        translator = transduce.load(sys.argv[1], precision=precision, threads=threads)
        translator.translate("the dog runs.")
        translator.likelihood([("a cat", "eine Katze")])
        translator.attention("a cat")
        assert torch.get_num_threads() == 3, (precision, threads)
print("libc.so.6" in opened)
"""


def test_a_fresh_process_keeps_its_threads_and_its_allocator(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(make_model(tmp_path / "model"))],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr


def test_a_search_with_torch_computes_with_the_threads_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = torch.get_num_threads() + 1
    translator = transduce.load(make_model(tmp_path / "model"), precision="bf16", threads=threads)
    seen: list[int] = []
    start = TorchStepper.start

    def watched(*arguments: object, **options: object) -> object:
        seen.append(torch.get_num_threads())
        return start(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(TorchStepper, "start", watched)
    translator.translate("the dog runs.")
    assert set(seen) == {threads}
    assert translator.threads == threads
