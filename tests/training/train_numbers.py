"""A program that trains a small model on spelled numbers, with dropout and BPE-dropout on: to be interrupted by tests.

    python train_numbers.py FOLDER [plain | exact] [recurrent] [key=value ...]

`plain` trains without dropout, `exact` in float64 too; `recurrent` trains RNNsearch in place of the Transformer.

It prints `begun` once training is about to begin, the ending, and the SHA-256 of the final weights.
"""

import hashlib
import sys
from pathlib import Path

import torch

from transduce.data.token_store import TokenStore, token_store_written
from transduce.machine import Compute
from transduce.model.config import ModelConfig
from transduce.networks.config import NetworkConfig
from transduce.rivals.rnnsearch_config import RnnSearchConfig
from transduce.special_tokens import OWN_SPECIAL_TOKENS
from transduce.text.bpe_tokenizer import BpeTokenizer
from transduce.text.tokenizer_pair import TokenizerPair
from transduce.torch_networks import new_network
from transduce.training.arithmetic import Arithmetic
from transduce.training.averaging import average_last
from transduce.training.batches import TrainingBatches
from transduce.training.checkpoint import Checkpoints
from transduce.training.config import TrainingConfig
from transduce.training.distributed import World, join_world
from transduce.training.interruption import StopRequest, stopping_on_signals
from transduce.training.randomness import seed_weights
from transduce.training.trainer import Outcome, Trainer, TrainerContext
from transduce.training.validation import measure_loss

EOS = OWN_SPECIAL_TOKENS.end

ENGLISH = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
GERMAN = ["null", "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun"]


def pairs() -> list[tuple[str, str]]:
    numbers = [f"{n * 7919 % 100_000}" for n in range(300)]
    return [
        (" ".join(ENGLISH[int(digit)] for digit in number), " ".join(GERMAN[int(digit)] for digit in number))
        for number in numbers
    ]


def prepare(folder: Path) -> None:
    """Learn a tokenizer and write the store, unless that is done."""
    if (folder / "store").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    texts = pairs()
    tokenizer = BpeTokenizer.learn([side for pair in texts for side in pair], vocabulary_size=340)
    (folder / "tokenizer.model").write_bytes(tokenizer.to_bytes())
    with token_store_written(folder / "store", vocabulary_size=tokenizer.vocabulary_size) as writer:
        writer.append(
            [[*tokenizer.encode(source), EOS] for source, _ in texts],
            [[*tokenizer.encode(target), EOS] for _, target in texts],
            texts=texts,
        )


def configured(settings: list[str]) -> TrainingConfig:
    values: dict[str, object] = {
        "steps": 90,
        "batch_tokens": 200,
        "micro_batch_tokens": 120,
        "schedule": "inverse_sqrt",
        "peak": 3e-3,
        "warmup_steps": 10,
        "checkpoint_every": 3,
        "validate_every": 10,
        "report_every": 5,
        "bpe_dropout": 0.1,
        "precision": "float32",
        "threads": 1,
        "rank_timeout": "60s",
    }
    return TrainingConfig.model_validate(values | dict(setting.split("=", 1) for setting in settings))


def train(
    folder: Path,
    config: TrainingConfig,
    *,
    stop: StopRequest,
    world: World,
    dropout: float = 0.1,
    dtype: torch.dtype = torch.float32,
    is_recurrent: bool = False,
) -> Outcome:
    """Train, or go on with, the run in `folder`."""
    torch.set_num_threads(1)
    tokenizer = BpeTokenizer.from_bytes((folder / "tokenizer.model").read_bytes())
    store = TokenStore.open(folder / "store")
    seed_weights(config.seed)
    size = tokenizer.vocabulary_size
    sizes: NetworkConfig = ModelConfig(vocabulary_size=size, layers=1, d_model=16, d_ff=32, heads=2, dropout=dropout)
    if is_recurrent:
        sizes = RnnSearchConfig(
            vocabulary_size=size, d_model=16, embedding_width=8, alignment_width=8, output_width=8, dropout=dropout
        )
    model = new_network(sizes)
    model = model.to(dtype)
    arithmetic = Arithmetic(torch.device("cpu"), "float32")
    context = TrainerContext(
        folder=folder / "run",
        compute=Compute(device="cpu", threads=1, precision="float32"),
        validate=lambda: measure_loss(model, store, tokens_at_once=1000, arithmetic=arithmetic, world=world),
        stop_requested=lambda: bool(stop),
        world=world,
    )
    return Trainer(
        model,
        TrainingBatches(store, config, tokenizers=TokenizerPair.shared(tokenizer)),
        config,
        context=context,
    ).run()


def weights_hash(folder: Path, *, last: int = 3) -> str:
    """Return the SHA-256 of the averaged weights."""
    averaged = average_last(folder / "run", last=last)
    digest = hashlib.sha256(repr(averaged.steps).encode())
    for name, tensor in sorted(averaged.weights.items()):
        digest.update(name.encode() + tensor.numpy().tobytes())
    return digest.hexdigest()


def newest_step(folder: Path) -> int:
    """Return the step of the newest checkpoint, or 0."""
    return max((checkpoint.step for checkpoint in Checkpoints(folder / "run" / "checkpoints").all()), default=0)


def main() -> None:
    folder, settings = Path(sys.argv[1]), [argument for argument in sys.argv[2:] if "=" in argument]
    config = configured(settings)
    with join_world(timeout=config.rank_timeout) as world, stopping_on_signals() as stop:
        if world.is_main:
            prepare(folder)
        world.wait_for_all()
        print("begun", flush=True)
        dropout = 0.0 if {"exact", "plain"} & set(sys.argv) else 0.1
        dtype = torch.float64 if "exact" in sys.argv else torch.float32
        outcome = train(
            folder,
            config,
            stop=stop,
            world=world,
            dropout=dropout,
            dtype=dtype,
            is_recurrent="recurrent" in sys.argv,
        )
        print(f"{outcome.ending.name} {outcome.progress.step} {stop.signal}\n", end="", flush=True)
        if world.is_main:
            print(weights_hash(folder), flush=True)


if __name__ == "__main__":
    main()
