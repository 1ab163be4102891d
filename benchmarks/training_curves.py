"""Whether bf16 costs quality: the loss of bf16 and float32 over three seeds, on the same batches.

    python benchmarks/training_curves.py [--steps 475] [--data ../shared/data/multi30k]

Trains the tiny network (4+4 layers, width 128) on steps of 1,024 tokens in both precisions and writes the losses,
smoothed over 25 steps, to results/training_curves.json, .svg and .md next to this file. A seed decides the weights, the
order of the batches and the dropout, the same for both precisions.
"""

import argparse
import datetime
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "peers"))

from drawing import line_chart  # noqa: E402
from tasks import SIZES, read_corpus  # noqa: E402

from transduce.compute import configure_compute  # noqa: E402
from transduce.data.batch import Batch, pad_rows  # noqa: E402
from transduce.data.batching import BatchPlan  # noqa: E402
from transduce.machine import TrainingPrecision, processor_name  # noqa: E402
from transduce.model import ModelConfig, Transformer  # noqa: E402
from transduce.special_tokens import OWN_SPECIAL_TOKENS  # noqa: E402
from transduce.text.bpe_tokenizer import BpeTokenizer  # noqa: E402
from transduce.training.arithmetic import Arithmetic  # noqa: E402
from transduce.training.config import TrainingConfig  # noqa: E402
from transduce.training.distributed import World  # noqa: E402
from transduce.training.randomness import seed_weights  # noqa: E402
from transduce.training.step import Stepper  # noqa: E402

EOS = OWN_SPECIAL_TOKENS.end

SEEDS, WINDOW, BATCH_TOKENS = (1, 2, 3), 25, 1024


def losses(
    sides: list[list[list[int]]], vocabulary_size: int, *, seed: int, precision: TrainingPrecision, steps: int
) -> list[float]:
    """Train and return the unsmoothed loss per token of every step."""
    lengths = [np.array([len(ids) for ids in side]) for side in sides]
    plan = BatchPlan(lengths[0], lengths[1], tokens_per_step=BATCH_TOKENS, seed=seed).epoch(0)
    seed_weights(seed)
    model = Transformer(ModelConfig(vocabulary_size=vocabulary_size, dropout=0.1, **SIZES["tiny"]))
    config = TrainingConfig(seed=seed, schedule="inverse_sqrt", peak=2e-3, warmup_steps=100, label_smoothing=0.1)
    arithmetic = Arithmetic(torch.device("cpu"), precision)
    stepper = Stepper(model, config, arithmetic=arithmetic, world=World())
    found = []
    for number, step in enumerate(plan[:steps]):
        rows = [pad_rows([side[sentence] for sentence in step]) for side in sides]
        counts = stepper.take(number + 1, [Batch(rows[0], rows[1], step)]).counts
        found.append(counts.nll / counts.tokens)
    return found


def smoothed(values: list[float]) -> list[tuple[float, float]]:
    """Return means over windows, at the steps where they end."""
    ends = range(WINDOW, len(values) + 1, WINDOW)
    return [(float(end), float(np.mean(values[end - WINDOW : end]))) for end in ends]


def compared(curves: dict[str, list[tuple[float, float]]]) -> list[dict[str, float]]:
    """Return, for each point of the curves, how far the precisions' means lie apart, and how far the seeds."""
    points = []
    for index, (step, _) in enumerate(curves["float32 seed 1"]):
        exact, rounded = ([curves[f"{name} seed {seed}"][index][1] for seed in SEEDS] for name in ("float32", "bf16"))
        points.append(
            {
                "step": step,
                "float32": float(np.mean(exact)),
                "bf16": float(np.mean(rounded)),
                "range_of_seeds": max(exact) - min(exact),
                "largest_for_a_seed": max(abs(one - other) for one, other in zip(exact, rounded, strict=True)),
            }
        )
    return points


def report(points: list[dict[str, float]], *, corpus: str, steps: int) -> str:
    """Return the comparison as a page."""
    within = sum(abs(point["bf16"] - point["float32"]) <= point["range_of_seeds"] for point in points)
    rows = [
        f"| {point['step']:.0f} | {point['float32']:.3f} | {point['bf16']:.3f} | "
        f"{point['bf16'] - point['float32']:+.4f} | {point['range_of_seeds']:.3f} | {point['largest_for_a_seed']:.4f} |"
        for point in points[3::4]
    ]
    setting = (
        f"{corpus}, tiny network, {steps} steps of {BATCH_TOKENS:,} tokens, seeds {SEEDS}; unsmoothed loss per "
        f"token, means over {WINDOW} steps. {datetime.date.today().isoformat()}, {processor_name()}. At {within} "
        f"of {len(points)} points the means of the two precisions lie closer together than the seeds of float32."
    )
    return "\n".join(
        [
            "# Loss of bf16 and float32",
            "",
            setting,
            "",
            "![curves](training_curves.svg)",
            "",
            "| step | float32 | bf16 | difference | range of float32's seeds | largest difference of one seed |",
            "|---|---|---|---|---|---|",
            *rows,
            "",
            "Made by `python benchmarks/training_curves.py`.",
            "",
        ]
    )


def main() -> None:
    """Train six times and write the curves."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=475, help="at most an epoch, which is 475 or a few more")
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "data" / "multi30k")
    options = parser.parse_args()
    configure_compute(threads=1, precision="float32", device="cpu")
    with tempfile.TemporaryDirectory() as folder:
        name, source_lines, target_lines = read_corpus(options.data, Path(folder))
    tokenizer = BpeTokenizer.learn([*source_lines, *target_lines], vocabulary_size=8000)
    sides = [[[*ids, EOS] for ids in tokenizer.encode_all(lines)] for lines in (source_lines, target_lines)]
    curves = {}
    precisions: tuple[TrainingPrecision, ...] = ("float32", "bf16")
    for seed in SEEDS:
        for precision in precisions:
            found = losses(sides, tokenizer.vocabulary_size, seed=seed, precision=precision, steps=options.steps)
            curves[f"{precision} seed {seed}"] = smoothed(found)
            options.steps = min(options.steps, len(found))
            print(f"{precision} seed {seed}: {curves[f'{precision} seed {seed}'][-1][1]:.4f}", flush=True)
    (HERE / "results" / "training_curves.json").write_text(
        json.dumps({"corpus": name, "steps": options.steps, "window": WINDOW, "curves": curves}) + "\n",
        encoding="utf-8",
    )
    (HERE / "results" / "training_curves.md").write_text(
        report(compared(curves), corpus=name, steps=options.steps), encoding="utf-8"
    )
    chart = line_chart(
        curves, title="Loss of float32 and bf16, three seeds each", x="step", y="loss per token, unsmoothed"
    )
    (HERE / "results" / "training_curves.svg").write_text(chart, encoding="utf-8")


if __name__ == "__main__":
    main()
