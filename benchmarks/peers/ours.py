"""transduce itself, through the same `Stepper` that `transduce train` uses.

python ours.py TASK_FOLDER {bf16|float32}
"""

import sys
from pathlib import Path

import numpy as np
from rounds import one_core, read_batches, read_task, serve

one_core()

import torch  # noqa: E402 - after the core is chosen

from transduce.compute import configure_compute  # noqa: E402
from transduce.data.batch import Batch  # noqa: E402
from transduce.model import ModelConfig, Transformer  # noqa: E402
from transduce.training.arithmetic import Arithmetic  # noqa: E402
from transduce.training.config import TrainingConfig  # noqa: E402
from transduce.training.distributed import World  # noqa: E402
from transduce.training.randomness import seed_weights  # noqa: E402
from transduce.training.step import Stepper  # noqa: E402


def main(folder: Path, precision: str) -> None:
    """Load the model, then train on request."""
    compute = configure_compute(threads=1, precision="bf16" if precision == "bf16" else "float32", device="cpu")
    task, batches = read_task(folder), read_batches(folder)
    seed_weights(1)
    model = Transformer(
        ModelConfig(
            vocabulary_size=task.vocabulary_size,
            layers=task.layers,
            d_model=task.d_model,
            d_ff=task.d_ff,
            heads=task.heads,
            dropout=task.dropout,
        )
    )
    config = TrainingConfig(
        schedule="constant",
        peak=task.rate,
        warmup_steps=0,
        label_smoothing=task.label_smoothing,
        beta1=task.beta1,
        beta2=task.beta2,
        epsilon=task.epsilon,
    )
    stepper = Stepper(model, config, arithmetic=Arithmetic(torch.device("cpu"), compute.precision), world=World())
    taken = 0

    def step(index: int) -> float:
        nonlocal taken
        taken += 1
        source, target = (torch.from_numpy(side) for side in batches[index])
        report = stepper.take(taken, [Batch(source, target, np.arange(source.size(0)))])
        return report.counts.objective / report.counts.tokens

    serve(step)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
