"""Marian's own trainer, as pymarian packs it: a command that plans its own batches and trains until told to stop.

It cannot be asked for a step, so it is stopped between its turns and let go on for a number of updates, which it
reports as it makes them. Its batches hold as many tokens as everybody's, of sentences of its own choice; its float32
is the only precision in which it trains on a processor.
"""

import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

from driving import Broken
from rounds import Task, one_core

_UPDATE = re.compile(r" : Up\. \d+ .* Cost ([\d.]+) .* after ([\d,]+) :")


def command(task: Task, *, folder: Path, work: Path, python: Path) -> list[str | Path]:
    """Return how Marian is started on the corpus in pieces that is in `work`."""
    names = ["</s>", "<unk>", *(work / "pieces.txt").read_text(encoding="utf-8").split()]
    (folder / "vocabulary.yml").write_text("".join(f'"{name}": {number}\n' for number, name in enumerate(names)))
    found: list[str | Path] = [python, python.parent / "pymarian", "--model", folder / "model.npz"]
    found += ["--type", "transformer", "--train-sets", work / "train.source", work / "train.target"]
    found += ["--vocabs", folder / "vocabulary.yml", folder / "vocabulary.yml", "--tied-embeddings-all"]
    found += ["--enc-depth", str(task.layers), "--dec-depth", str(task.layers), "--dim-emb", str(task.d_model)]
    found += ["--transformer-heads", str(task.heads), "--transformer-dim-ffn", str(task.d_ff)]
    found += ["--transformer-dropout", str(task.dropout), "--label-smoothing", str(task.label_smoothing)]
    found += ["--mini-batch", "1000", "--mini-batch-words", "4096", "--max-length", "100", "--maxi-batch", "100"]
    found += ["--optimizer-params", str(task.beta1), str(task.beta2), str(task.epsilon), "--seed", "1"]
    found += ["--learn-rate", str(task.rate), "--disp-freq", "1", "--disp-label-counts"]
    return [*found, "--cpu-threads", "1", "--sync-sgd", "--workspace", "2000"]


class Marian:
    """Marian as a system that trains on request, like those of driving.py."""

    def __init__(self, task: Task, *, folder: Path, work: Path, python: Path) -> None:
        folder.mkdir()
        single = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
        self.printed: list[str] = []
        self.process = subprocess.Popen(
            [str(part) for part in command(task, folder=folder, work=work, python=python)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            env=os.environ | single,
            preexec_fn=one_core,
        )
        self.seconds, self.tokens = 0.0, 0

    def ask(self, request: dict[str, Any] | None = None) -> dict[str, Any]:
        """Let it train for as many updates as there are batches asked for; it takes the first one to get ready."""
        if request is not None:
            self.process.send_signal(signal.SIGCONT)
        loss = 0.0
        for _ in range(1 if request is None else len(request["batches"])):
            loss, tokens = self._next_update()
        seconds, before = self._processor_seconds(), (self.seconds, self.tokens)
        self.process.send_signal(signal.SIGSTOP)
        self.seconds, self.tokens = seconds, tokens
        return {
            "processor_seconds": seconds - before[0],
            "tokens": tokens - before[1],
            "loss": loss,
            "peak_memory_bytes": self._peak_memory(),
        }

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()

    def _next_update(self) -> tuple[float, int]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.printed.append(line)
            found = _UPDATE.search(line)
            if found:
                return float(found[1]), int(found[2].replace(",", ""))
        raise Broken("".join(self.printed[-8:]).strip())

    def _processor_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _peak_memory(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) * 1024
