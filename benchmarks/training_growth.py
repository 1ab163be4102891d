"""How the cost of training grows with the length of sentences, the vocabulary and the batch.

    python benchmarks/training_growth.py [--brief]

One step of the small network (3+3 layers, width 256) in bf16 on made-up tokens, one core, best of three, seconds of
processor time per 1,000 target tokens. Beside each measured length stands what Table 1 allows: the products of section
3, with attention's n² term. Writes results/training_growth.json, .svg and .md next to this file.
"""

import argparse
import datetime
import json
import os
import sys
import time
from pathlib import Path

import numpy as np
import torch

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "peers"))

from drawing import line_chart  # noqa: E402
from rounds import one_core  # noqa: E402
from tasks import operations, task  # noqa: E402

from transduce.compute import configure_compute  # noqa: E402
from transduce.data.batch import Batch  # noqa: E402
from transduce.machine import processor_name  # noqa: E402
from transduce.model import ModelConfig, Transformer  # noqa: E402
from transduce.training.arithmetic import Arithmetic  # noqa: E402
from transduce.training.config import TrainingConfig  # noqa: E402
from transduce.training.distributed import World  # noqa: E402
from transduce.training.step import Stepper  # noqa: E402


def seconds(*, length: int, vocabulary_size: int, tokens: int, times: int) -> tuple[float, float]:
    """Return the processor seconds and the operations of a step, both per 1,000 target tokens."""
    what = task("small", vocabulary_size=vocabulary_size)
    sizes = {"layers": what.layers, "d_model": what.d_model, "d_ff": what.d_ff, "heads": what.heads}
    model = Transformer(ModelConfig(vocabulary_size=vocabulary_size, dropout=0.1, **sizes))
    arithmetic = Arithmetic(torch.device("cpu"), "bf16")
    stepper = Stepper(model, TrainingConfig(), arithmetic=arithmetic, world=World())
    rows = torch.randint(4, vocabulary_size, (tokens // length, length))
    batch, found = Batch(rows, rows, np.arange(len(rows))), []
    for number in range(times + 1):
        started = time.process_time()
        stepper.take(number + 1, [batch])
        found.append(time.process_time() - started)
    share = rows.numel() / 1000
    return min(found[1:]) / share, operations(what, rows.numpy(), rows.numpy()) / share


def report(found: dict[str, list[dict[str, float]]]) -> str:
    """Return the points as a page."""
    setting = (
        f"Small network (3+3 layers, width 256), bf16, one core. {datetime.date.today().isoformat()}, "
        f"{processor_name()}, load average {os.getloadavg()[0]:.1f}. Growth is against the first row of a kind."
    )
    lines = [
        "# How the cost of training grows",
        "",
        setting,
        "",
        "![cost against length](training_growth.svg)",
        "",
        "| what | value | seconds per 1,000 tokens | grew | operations grew | GFLOP/s |",
        "|---|---|---|---|---|---|",
    ]
    for kind, points in found.items():
        for point in points:
            grew, allowed = (point[key] / points[0][key] for key in ("seconds", "operations"))
            speed = point["operations"] / point["seconds"] / 1e9
            growth = f"{grew:.2f} × | {allowed:.2f} ×"
            lines.append(f"| {kind} | {point['value']:,} | {point['seconds']:.3f} | {growth} | {speed:.0f} |")
    return "\n".join([*lines, "", "Made by `python benchmarks/training_growth.py`.", ""])


def main() -> None:
    """Measure all points and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--brief", action="store_true", help="once instead of the best of three")
    times = 1 if parser.parse_args().brief else 3
    one_core()
    configure_compute(threads=1, precision="bf16", device="cpu")
    points = [
        *(
            ("length", length, {"length": length, "vocabulary_size": 8000, "tokens": 4096})
            for length in (16, 32, 64, 128, 256, 512, 1024)
        ),
        *(("vocabulary", size, {"length": 16, "vocabulary_size": size, "tokens": 4096}) for size in (8000, 37000)),
        *(
            ("batch", tokens, {"length": 16, "vocabulary_size": 8000, "tokens": tokens})
            for tokens in (1024, 4096, 16384)
        ),
    ]
    found: dict[str, list[dict[str, float]]] = {}
    for kind, value, settings in points:
        took, needed = seconds(**settings, times=times)
        found.setdefault(kind, []).append({"value": value, "seconds": took, "operations": needed})
        print(f"{kind} {value:,}: {took:.3f} s, {needed / took / 1e9:.0f} GFLOP/s", flush=True)
    first = found["length"][0]
    lines = {
        "measured, 4,096 tokens, V 8,000": [(point["value"], point["seconds"]) for point in found["length"]],
        "allowed by Table 1": [
            (point["value"], point["operations"] / first["operations"] * first["seconds"]) for point in found["length"]
        ],
    }
    chart = line_chart(
        lines,
        title="Cost of training against length",
        x="tokens in a sentence (both axes logarithmic)",
        y="processor seconds per 1,000 tokens",
        logarithmic=True,
    )
    (HERE / "results" / "training_growth.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    (HERE / "results" / "training_growth.md").write_text(report(found), encoding="utf-8")
    (HERE / "results" / "training_growth.svg").write_text(chart, encoding="utf-8")


if __name__ == "__main__":
    main()
