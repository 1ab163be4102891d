"""The work that every system is given: one corpus, one vocabulary, the same batches, three sizes of a network."""

import gzip
import json
from pathlib import Path

import numpy as np
from rounds import Task

from transduce.data.batch import pad_rows
from transduce.data.batching import BatchPlan
from transduce.demo import write_corpus
from transduce.special_tokens import OWN_SPECIAL_TOKENS
from transduce.text.bpe_tokenizer import BpeTokenizer

EOS = OWN_SPECIAL_TOKENS.end

VOCABULARY = 8000
BATCH_TOKENS = 4096
SIZES = {
    "base": {"layers": 6, "d_model": 512, "d_ff": 2048, "heads": 8},
    "small": {"layers": 3, "d_model": 256, "d_ff": 1024, "heads": 4},
    "tiny": {"layers": 4, "d_model": 128, "d_ff": 256, "heads": 4},
}


def task(size: str, *, vocabulary_size: int = VOCABULARY) -> Task:
    """Return the settings of one size; all but the sizes are the paper's base model's."""
    return Task(
        vocabulary_size=vocabulary_size,
        **SIZES[size],
        dropout=0.1,
        label_smoothing=0.1,
        rate=3e-4,
        beta1=0.9,
        beta2=0.98,
        epsilon=1e-9,
    )


def read_corpus(data: Path, scratch: Path) -> tuple[str, list[str], list[str]]:
    """Return the corpus' name and its two sides: Multi30k where it is there, else the demo's."""
    if (data / "train.en.gz").is_file():
        files = [data / f"train.{code}.gz" for code in ("en", "de")]
        sides = [gzip.decompress(file.read_bytes()).decode("utf-8") for file in files]
        return "Multi30k English-German", sides[0].splitlines(), sides[1].splitlines()
    write_corpus(scratch / "corpus", pairs=30_000)
    lines = (scratch / "corpus" / "train.tsv").read_text(encoding="utf-8").splitlines()
    first, second = ([line.split("\t")[side] for line in lines] for side in (0, 1))
    return "the demo corpus", first, second


def write_tasks(folder: Path, *, data: Path) -> str:
    """Write a folder for each size, all with the same batches, and the corpus in pieces; return the corpus' name."""
    name, source_lines, target_lines = read_corpus(data, folder)
    tokenizer = BpeTokenizer.learn([*source_lines, *target_lines], vocabulary_size=VOCABULARY)
    sides = [[[*ids, EOS] for ids in tokenizer.encode_all(lines)] for lines in (source_lines, target_lines)]
    lengths = [np.array([len(ids) for ids in side]) for side in sides]
    plan = BatchPlan(lengths[0], lengths[1], tokens_per_step=BATCH_TOKENS, seed=1)
    # One step of every length there is, rather than whichever come first.
    steps = sorted(plan.epoch(0), key=lambda step: int(lengths[1][step].max()))
    chosen = [steps[place] for place in np.linspace(0, len(steps) - 1, 12)[2:-2].astype(int)]
    batches = {}
    for index, step in enumerate(chosen):
        for side_name, side in zip(("source", "target"), sides, strict=True):
            batches[f"{side_name}{index}"] = pad_rows([side[sentence] for sentence in step]).numpy()
    for size in SIZES:
        (folder / size).mkdir(parents=True, exist_ok=True)
        np.savez(folder / size / "batches.npz", **batches)
        settings = vars(task(size, vocabulary_size=tokenizer.vocabulary_size))
        (folder / size / "task.json").write_text(json.dumps(settings), encoding="utf-8")
    write_pieces(folder, sides, tokenizer)
    return name


def write_pieces(folder: Path, sides: list[list[list[int]]], tokenizer: BpeTokenizer) -> None:
    """Write both sides as pieces with spaces between them, and the vocabulary, for systems that read files.

    A piece is written as `p` and its id: no system can then take a piece for anything else.
    """
    for name, side in zip(("source", "target"), sides, strict=True):
        lines = (" ".join(f"p{piece}" for piece in ids[:-1]) for ids in side)
        (folder / f"train.{name}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    pieces = [f"p{piece}" for piece in range(4, tokenizer.vocabulary_size)]
    (folder / "pieces.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")


def operations(task: Task, source: np.ndarray, target: np.ndarray) -> float:
    """Return the operations of a training step: matrix products on tokens, none on padding; backward costs twice."""
    d, source_lengths, target_lengths = task.d_model, (source != 0).sum(axis=1), (target != 0).sum(axis=1)
    source_tokens, target_tokens = int(source_lengths.sum()), int(target_lengths.sum())
    projection, feed_forward = 2 * d * d, 4 * d * task.d_ff
    encoder = source_tokens * (4 * projection + feed_forward) + 4 * d * int((source_lengths**2).sum())
    decoder = target_tokens * (6 * projection + feed_forward) + source_tokens * 2 * projection
    decoder += 4 * d * int((target_lengths**2 + source_lengths * target_lengths).sum())
    output = target_tokens * 2 * d * task.vocabulary_size
    return 3.0 * (task.layers * (encoder + decoder) + output)
