"""What benchmarks/translation.py translates, and with which models: given ones, or ones that are made here.

A fresh checkout is enough: a small model is trained for two minutes on the demonstration's corpus, widened to base
size, and its vocabulary filled up to 8,000 and 32,000 pieces with ones that occur in no text.
"""

import argparse
import gzip
import subprocess
import sys
from pathlib import Path

import models

from transduce.model_directory import ModelDirectory, find_model, load_model, read_description

SIZES = {"base_8k": 8_000, "base_32k": 32_000}
# The demonstration's recipe for a network that is half as wide as base, and for as long as `--quick` can wait.
RECIPE = {
    "model.layers": 3,
    "model.d_model": 256,
    "model.d_ff": 1024,
    "model.vocabulary_size": 8000,
    "training.time": "2m",
    "training.warmup_steps": 100,
    "training.decay_steps": 500,
    "training.peak": 2e-3,
}


def test_sentences(arguments: argparse.Namespace, folder: Path) -> tuple[list[str], list[str]]:
    """Return source sentences and their references, of the kind that the models have learned."""
    shared = Path(__file__).parent.parent.parent / "shared" / "data" / "multi30k"
    if arguments.test is None and shared.exists() and not _corpus(folder).exists():
        sides = [f"test_2016_flickr.{side}.gz" for side in ("en", "de")]
        read = [gzip.decompress((shared / side).read_bytes()).decode() for side in sides]
        return read[0].splitlines(), read[1].splitlines()
    file = arguments.test or (_corpus(folder) if _corpus(folder).exists() else _write_corpus(folder)) / "test.tsv"
    pairs = [line.split("\t")[:2] for line in file.read_text(encoding="utf-8").splitlines()]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def make_models(arguments: argparse.Namespace, folder: Path) -> tuple[dict[str, Path], dict[str, str]]:
    """Return the models of base size by name, and what their weights are."""
    paths: dict[str, Path] = {}
    weights: dict[str, str] = {}
    if arguments.base_8k is not None:
        paths["base_8k"], weights["base_8k"] = find_model(arguments.base_8k), "given"
    else:
        source, origin = _small_model(arguments, folder)
        model = load_model(source)
        config, parameters = models.widened(model, noise=0.002)
        models.save(model, folder / "base", config, parameters, tokenizer=model.tokenizer)
        paths["base_8k"] = _filled(load_model(folder / "base"), folder, "base_8k")
        weights["base_8k"] = f"{origin}, widened to base size, not trained further"
    if arguments.base_32k is not None:
        paths["base_32k"], weights["base_32k"] = find_model(arguments.base_32k), "given"
    else:
        paths["base_32k"] = _filled(load_model(paths["base_8k"]), folder, "base_32k")
        weights["base_32k"] = "base_8k with pieces added that occur in no text"
    return paths, weights


def _filled(model: ModelDirectory, folder: Path, name: str) -> Path:
    """Return the model with as many pieces as its name says, if it has fewer."""
    if model.tokenizer.vocabulary_size >= SIZES[name]:
        return model.folder
    tokenizer, parameters = models.with_fillers(model, SIZES[name])
    config = model.description.architecture.model_copy(update={"vocabulary_size": tokenizer.vocabulary_size})
    models.save(model, folder / name, config, parameters, tokenizer=tokenizer)
    return folder / name


def _small_model(arguments: argparse.Namespace, folder: Path) -> tuple[Path, str]:
    """Return a small trained model and where it comes from: given, or trained here."""
    if arguments.source is not None:
        given = find_model(arguments.source)
        description = read_description(given)
        config, steps = description.architecture, description.training.get("step", "?")
        layers = f"{config.encoder_depth}+{config.decoder_depth} layers"
        return given, f"a small model ({layers}, width {config.d_model}) trained for {steps} steps"
    corpus = _write_corpus(folder)
    files = ["--train", str(corpus / "train.tsv"), "--valid", str(corpus / "valid.tsv"), "--from", "en", "--to", "de"]
    settings = [part for key, value in RECIPE.items() for part in ("--set", f"{key}={value}")]
    transduce = [sys.executable, "-m", "transduce", "train", *files, "--preset", "demo", *settings]
    subprocess.run([*transduce, "--output", str(folder / "run")], check=True)
    return folder / "run" / "model", "a small model trained for two minutes on the demonstration's corpus"


def _corpus(folder: Path) -> Path:
    return folder / "corpus"


def _write_corpus(folder: Path) -> Path:
    from transduce.demo.corpus import write_corpus

    write_corpus(_corpus(folder), pairs=20_000)
    return _corpus(folder)
