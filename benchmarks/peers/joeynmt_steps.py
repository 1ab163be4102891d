"""JoeyNMT's own model, loss, optimizer and training step, on the batches that everybody gets.

    python joeynmt_steps.py TASK_FOLDER

It trains in float32: on a processor it switches reduced precision off. Its one dropout is applied to attention weights
and inside the feed-forward network as well. Its ids for padding and unknown words are the other way round, so they are
exchanged here.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from rounds import Task, one_core, read_batches, read_task, serve

one_core()

import torch  # noqa: E402 - after the core is chosen
from joeynmt.batch import Batch  # noqa: E402
from joeynmt.config import parse_global_args  # noqa: E402
from joeynmt.model import build_model  # noqa: E402
from joeynmt.training import TrainManager  # noqa: E402
from joeynmt.vocabulary import Vocabulary  # noqa: E402

PAD, BOS, EOS = 1, 2, 3


def configuration(task: Task, model_directory: str) -> dict[str, Any]:
    """Return what stands in a configuration file of JoeyNMT."""
    stack = {
        "type": "transformer",
        "num_layers": task.layers,
        "num_heads": task.heads,
        "embeddings": {"embedding_dim": task.d_model, "scale": True, "dropout": task.dropout},
        "hidden_size": task.d_model,
        "ff_size": task.d_ff,
        "dropout": task.dropout,
        "layer_norm": "post",
    }
    return {
        "name": "benchmark",
        "model_dir": model_directory,
        "use_cuda": False,
        "data": {},
        "training": {
            "random_seed": 1,
            "optimizer": "adam",
            "adam_betas": [task.beta1, task.beta2],
            "learning_rate": task.rate,
            "learning_rate_min": 0.0,
            "scheduling": "exponential",
            "decrease_factor": 1.0,
            "normalization": "tokens",
            "label_smoothing": task.label_smoothing,
            "loss": "crossentropy",
            "batch_size": 4096,
            "batch_type": "token",
        },
        "testing": {},
        "model": {"tied_embeddings": True, "tied_softmax": True, "encoder": stack, "decoder": dict(stack)},
    }


def main(folder: Path) -> None:
    """Load the model, then train on request."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    task = read_task(folder)
    with tempfile.TemporaryDirectory() as model_directory:
        settings = parse_global_args(configuration(task, model_directory), rank=0, mode="train")
        pieces = [f"p{piece}" for piece in range(4, task.vocabulary_size)]
        vocabulary = Vocabulary(pieces, settings.data["special_symbols"])
        model = build_model(settings.model, src_vocab=vocabulary, trg_vocab=vocabulary)
        model.loss_function = (settings.train.loss, settings.train.label_smoothing)
        manager = TrainManager(
            rank=0,
            model=model,
            model_dir=settings.model_dir,
            device=settings.device,
            autocast=settings.autocast,
            train_args=settings.train,
            dev_args=settings.test,
        )
        batches = [[exchanged(side) for side in sides] for sides in read_batches(folder)]

        def step(index: int) -> float:
            source, labels = batches[index]
            target = torch.cat([torch.full((labels.size(0), 1), BOS), labels], dim=1)
            batch = Batch(
                src=source,
                src_length=(source != PAD).sum(dim=1),
                src_prompt_mask=None,
                trg=target,
                trg_prompt_mask=None,
                indices=torch.arange(source.size(0)),
                device=settings.device,
                pad_index=PAD,
                eos_index=EOS,
            )
            # What TrainManager.train_and_validate does with a batch.
            loss, _ = manager._train_step(batch)
            manager.optimizer.step()
            manager.model.zero_grad()
            return loss

        serve(step)


def exchanged(ids: np.ndarray) -> torch.Tensor:
    """Return ids in which 0 is the unknown word and 1 is padding."""
    return torch.from_numpy(np.where(ids < 2, 1 - ids, ids))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
