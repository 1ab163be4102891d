"""Eole's own model, loss, optimizer and training step, on the batches that everybody gets.

    python eole_steps.py TASK_FOLDER {bf16|float32}

The encoder is post-norm as the paper's; its decoder has pre-norm alone, which costs the same.
"""

import sys
import tempfile
from pathlib import Path

from rounds import Task, one_core, read_batches, read_task, serve

one_core()

import eole.utils  # noqa: E402 - after the core is chosen
import torch  # noqa: E402
from eole.config.run import TrainConfig  # noqa: E402
from eole.inputters.inputter import build_vocab  # noqa: E402
from eole.models.model import get_model_class  # noqa: E402
from eole.trainer import build_trainer  # noqa: E402
from eole.utils.optimizers import Optimizer  # noqa: E402

BOS = 2


def configuration(task: Task, folder: Path, *, precision: str) -> TrainConfig:
    """Return what stands in a configuration file of Eole."""
    names = ["<blank>", "<unk>", "<s>", "</s>", *(f"p{piece}" for piece in range(4, task.vocabulary_size))]
    (folder / "vocabulary.txt").write_text("\n".join(names) + "\n", encoding="utf-8")
    return TrainConfig(
        src_vocab=str(folder / "vocabulary.txt"),
        share_vocab=True,
        pad_token="<blank>",
        src_vocab_size=task.vocabulary_size,
        tgt_vocab_size=task.vocabulary_size,
        data={},
        seed=1,
        model={
            "architecture": "transformer",
            "layers": task.layers,
            "heads": task.heads,
            "hidden_size": task.d_model,
            "word_vec_size": task.d_model,
            "transformer_ff": task.d_ff,
            "mlp_activation_fn": "relu",
            "add_ffnbias": True,
            "add_qkvbias": True,
            "add_final_linear_bias": True,
            "share_embeddings": True,
            "share_decoder_embeddings": True,
            "embeddings": {"position_encoding": True, "position_encoding_type": "SinusoidalInterleaved"},
            "encoder": {"encoder_type": "transformer", "encoder_layer_style": "postnorm"},
            "decoder": {"decoder_type": "transformer"},
        },
        training={
            "model_path": str(folder / "model"),
            "world_size": 0,
            "gpu_ranks": [],
            "compute_dtype": "bf16" if precision == "bf16" else "fp32",
            "batch_type": "tokens",
            "batch_size": 4096,
            "normalization": "tokens",
            "max_grad_norm": 0,
            "optim": "adam",
            "adam_beta1": task.beta1,
            "adam_beta2": task.beta2,
            "adam_eps": task.epsilon,
            "learning_rate": task.rate,
            "param_init_method": "xavier_uniform",
            "dropout": [task.dropout],
            "attention_dropout": [0.0],
            "label_smoothing": task.label_smoothing,
            "log_attention_entropy": False,
        },
    )


def main(folder: Path, precision: str) -> None:
    """Load the model, then train on request."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    task, batches = read_task(folder), read_batches(folder)
    with tempfile.TemporaryDirectory() as scratch:
        config = configuration(task, Path(scratch), precision=precision)
        vocabs = build_vocab(config, {"src": [], "tgt": []})
        assert len(vocabs["src"]) == task.vocabulary_size
        assert vocabs["src"]["p4"] == 4
        model = get_model_class(config.model).for_training(config.model, vocabs, config.training, device_id=-1)
        optimizer = Optimizer.from_config(model, config)
        trainer = build_trainer(config, -1, model, vocabs, optimizer)

        def step(index: int) -> float:
            source, labels = (torch.from_numpy(side) for side in batches[index])
            batch = {
                "src": source,
                "srclen": (source != 0).sum(dim=1),
                "tgt": torch.cat([torch.full((labels.size(0), 1), BOS), labels], dim=1),
                "tgtlen": (labels != 0).sum(dim=1) + 1,
                "images": None,
                "prefix_len": None,
                "cid": ["train"] * len(source),
                "cid_line_number": list(range(len(source))),
            }
            tokens = int((labels != 0).sum())
            counts = eole.utils.Statistics()
            trainer._process_accumulated_batches([batch], tokens, counts, eole.utils.Statistics())
            return counts.loss / tokens

        serve(step)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
