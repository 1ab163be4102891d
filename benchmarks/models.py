"""Models of base size for benchmarks, made in minutes from a small trained one.

    python benchmarks/models.py SOURCE DEST [--vocabulary 32000 --text FILE...] [--noise 0.002]

A base model cannot be trained in minutes, and random weights never end a sentence. So a small model (heads 64 wide) is
widened: every dimension, head and hidden unit twice, what reads them halved, so that each layer's mean and variance,
and the outputs, stay what they were. Layers are added that add nothing; in post-norm they normalise what is normalised
already, and the last of them takes over the scale and shift of the small model's last. Sinusoids of another width have
other frequencies, so the small model's positions become a learned table. With `--noise` the twins are told apart a
little, in pairs that cancel; train on (`transduce train --start-from DEST`) to let them become different.

With `--vocabulary` a larger tokenizer is learned from `--text`, and each new piece begins as the mean of the pieces
that it used to be.
"""

import argparse
import gzip
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from transduce.data.shortlist import Shortlist
from transduce.model.config import ModelConfig
from transduce.model.positional_encoding import sinusoidal_positions
from transduce.model_directory import Description, ModelDirectory, find_model, load_model, save_model
from transduce.text.bpe_tokenizer import BpeTokenizer
from transduce.text.normalization import WORD_MARK
from transduce.text.tokenizer import Tokenizer
from transduce.text.tokenizer_pair import TokenizerPair
from transduce.text.vocabulary import FIRST_LEARNED

POSITIONS = 1024


def widened(model: ModelDirectory, *, layers: int = 6, noise: float = 0.0) -> tuple[ModelConfig, dict[str, Tensor]]:
    """Return a network twice as wide with `layers` layers that computes what `model` does."""
    old = model.description.architecture
    assert (old.tied, old.positions) == ("all", "sinusoidal"), "made for tied models"
    config = old.model_copy(
        update={
            "layers": layers,
            "encoder_layers": None,
            "decoder_layers": None,
            "d_model": 2 * old.d_model,
            "d_ff": 2 * old.d_ff,
            "heads": 2 * old.heads,
            "positions": "learned",
            "learned_positions": POSITIONS,
        }
    )
    generator = torch.Generator().manual_seed(1)
    parameters = {}
    weights = tensors_of(model)
    for name, shape in config.parameter_shapes().items():
        if name.endswith("table_TD"):
            parameters[name] = _twice(sinusoidal_positions(POSITIONS, old.d_model).float(), axis=1)
        elif name.startswith("embeddings."):  # twice as many summands, a factor √2 larger: both sides see what they saw
            parameters[name] = _twice(weights[name], axis=1) / math.sqrt(2.0)
        elif "norm." in name:
            parameters[name] = _norm(name, weights, old, layers=layers)
        else:
            parameters[name] = _weight(name, weights, old, noise=noise, generator=generator)
        assert parameters[name].shape == shape, name
    return config, parameters


def _norm(name: str, weights: Mapping[str, Tensor], old: ModelConfig, *, layers: int) -> Tensor:
    """Return a norm's scale or shift: its own; 1 or 0 where the norm that follows an added layer has taken it over."""
    stack, _, place = name.partition(".")
    is_last = place.startswith("final_norm")
    if place.startswith("layers."):
        number = int(place.split(".")[1])
        depth = old.encoder_depth if stack == "encoder" else old.decoder_depth
        ends_layer = old.norm == "post" and "feed_forward_residual" in place
        is_last = ends_layer and number == layers - 1
        is_between = old.norm == "post" and not is_last and (number >= depth or (ends_layer and number == depth - 1))
        if is_between:
            return torch.full((2 * old.d_model,), 1.0 if name.endswith("weight") else 0.0)
        own = depth - 1 if is_last else number % depth
        name = name.replace(f"layers.{number}.", f"layers.{own}.")
    value = _twice(weights[name], axis=0)
    return value / math.sqrt(2.0) if is_last and stack == "decoder" else value


def _weight(
    name: str, weights: Mapping[str, Tensor], old: ModelConfig, *, noise: float, generator: torch.Generator
) -> Tensor:
    """Return a matrix or a bias of some layer; what an added layer writes is nothing, or next to nothing."""
    stack, _, number, *_ = name.split(".")
    depth = old.encoder_depth if stack == "encoder" else old.decoder_depth
    is_added = int(number) >= depth
    value = weights[name.replace(f"layers.{number}.", f"layers.{int(number) % depth}.")]
    if value.dim() == 1:
        return torch.zeros(2 * len(value)) if is_added and "W_2" in name else _twice(value, axis=0)
    wide = _twice(value, axis=0)
    difference = torch.randn(value.shape[0] * 2, value.shape[1], generator=generator) * noise
    wide = torch.cat([wide / 2 + difference, wide / 2 - difference], dim=1)
    return wide * (0.01 if is_added and ("W_O" in name or "W_2" in name) else 1.0)


def tensors_of(model: ModelDirectory) -> dict[str, Tensor]:
    """Return the model's weights as torch tensors."""
    return {name: torch.from_numpy(array) for name, array in model.parameters.items()}


def _twice(tensor: Tensor, *, axis: int) -> Tensor:
    return torch.cat([tensor, tensor], dim=axis)


def with_vocabulary(model: ModelDirectory, tokenizer: Tokenizer) -> dict[str, Tensor]:
    """Return the parameters for another tokenizer: a new piece's embedding is the mean of its old pieces'."""
    old_VD = tensors_of(model)["embeddings.source_VD"]
    new_VD = old_VD[:1].expand(tokenizer.vocabulary_size, -1).clone()
    new_VD[:FIRST_LEARNED] = old_VD[:FIRST_LEARNED]
    for token in range(FIRST_LEARNED, tokenizer.vocabulary_size):
        piece = tokenizer.piece(token)
        ids = model.tokenizers.target.encode(piece.removeprefix(WORD_MARK))
        # Inside a word the old tokenizer would not put a mark in front either.
        ids = ids if piece.startswith(WORD_MARK) else _without_mark(model.tokenizers.target, ids)
        new_VD[token] = old_VD[ids].mean(dim=0)
    return {**tensors_of(model), "embeddings.source_VD": new_VD}


def with_fillers(model: ModelDirectory, size: int) -> tuple[BpeTokenizer, dict[str, Tensor]]:
    """Return a tokenizer of `size` pieces, the new ones in no text, and embeddings for them that never win.

    What costs time is the size of the vocabulary, not its pieces: this needs no training and says what `model` says.
    """
    known = [
        model.tokenizers.target.piece(token) for token in range(FIRST_LEARNED, model.tokenizers.target.vocabulary_size)
    ]
    fillers = [f"{WORD_MARK}Ω{number:05d}Ω" for number in range(model.tokenizers.target.vocabulary_size, size)]
    old_VD = tensors_of(model)["embeddings.source_VD"]
    generator = torch.Generator().manual_seed(2)
    noise_VD = torch.randn(len(fillers), old_VD.size(1), generator=generator) * old_VD.std() * 0.5
    new_VD = torch.cat([old_VD, old_VD.mean(dim=0) + noise_VD])
    return BpeTokenizer([*known, *fillers]), {**tensors_of(model), "embeddings.source_VD": new_VD}


def _without_mark(tokenizer: Tokenizer, ids: list[int]) -> list[int]:
    return [i for i in ids if tokenizer.piece(i) != WORD_MARK] or ids


def learn_tokenizer(files: list[Path], size: int) -> BpeTokenizer:
    """Learn a vocabulary from text files, packed or plain."""

    def lines() -> Iterator[str]:
        for file in files:
            with (gzip.open if file.suffix == ".gz" else open)(file, "rt", encoding="utf-8") as opened:
                yield from (line.rstrip("\n") for line in opened)

    return BpeTokenizer.learn(lines(), vocabulary_size=size)


def main() -> None:
    """Read the command line, write the model directory."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", help="a small trained model: directory, run, or bundled name")
    parser.add_argument("destination", type=Path)
    parser.add_argument("--vocabulary", type=int, help="learn a tokenizer of this size from --text")
    parser.add_argument("--text", type=Path, nargs="+", default=[])
    parser.add_argument("--noise", type=float, default=0.002)
    parser.add_argument("--layers", type=int, default=6)
    arguments = parser.parse_args()
    model = load_model(find_model(arguments.source))
    if arguments.vocabulary:
        tokenizer = learn_tokenizer(arguments.text, arguments.vocabulary)
        config = model.description.architecture.model_copy(update={"vocabulary_size": tokenizer.vocabulary_size})
        parameters = with_vocabulary(model, tokenizer)
    else:
        tokenizer = model.tokenizers.target
        config, parameters = widened(model, layers=arguments.layers, noise=arguments.noise)
    save(model, arguments.destination, config, parameters, tokenizer=tokenizer)
    print(f"wrote {arguments.destination}: {sum(p.numel() for p in parameters.values()):,} parameters")


def save(
    model: ModelDirectory, folder: Path, config: ModelConfig, parameters: dict[str, Tensor], *, tokenizer: Tokenizer
) -> None:
    """Write a model directory that tells where its weights come from."""
    description = Description(
        architecture=config,
        languages=model.description.languages,
        longest_sentence=model.description.longest_sentence,
        training={"made_from": model.description.training, "how": "benchmarks/models.py"},
    )
    card = "Made by benchmarks/models.py.\n"
    shortlist = _with_rows(model.shortlist(), tokenizer.vocabulary_size) if _begins_alike(model, tokenizer) else None
    save_model(
        folder, description, parameters, tokenizers=TokenizerPair.shared(tokenizer), card=card, shortlist=shortlist
    )


def _begins_alike(model: ModelDirectory, tokenizer: Tokenizer) -> bool:
    old = model.tokenizers.target
    return all(tokenizer.piece(token) == old.piece(token) for token in range(old.vocabulary_size))


def _with_rows(shortlist: Shortlist | None, size: int) -> Shortlist | None:
    """Return a shortlist in which pieces that were added have no candidates."""
    if shortlist is None:
        return None
    added = size - len(shortlist.candidates_VK)
    return replace(shortlist, candidates_VK=np.pad(shortlist.candidates_VK, ((0, added), (0, 0))))


if __name__ == "__main__":
    main()
