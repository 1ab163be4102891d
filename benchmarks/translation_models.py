"""What benchmarks/translation.py translates, and with which models: given ones, or ones that are made here.

A fresh checkout is enough: the bundled model is widened to base size, and its vocabulary filled up to 8,000 and 32,000
pieces with ones that occur in no text.
"""

import argparse
import gzip
import json
from pathlib import Path

import models
import torch
from safetensors.torch import save_file

from transduce.demo.corpus import corpus
from transduce.export.huggingface import LONGEST, marian_config, marian_weights
from transduce.model.positional_encoding import sinusoidal_positions
from transduce.model_directory import ModelDirectory, find_model, load_model, read_description
from transduce.tensor_file import write_tensors

SIZES = {"base_8k": 8_000, "base_32k": 32_000}
BUNDLED = "en-de"


def test_sentences(arguments: argparse.Namespace) -> tuple[list[str], list[str]]:
    """Return source sentences and their references."""
    shared = Path(__file__).parent.parent.parent / "shared" / "data" / "multi30k"
    if arguments.test is not None:
        pairs = [line.split("\t")[:2] for line in arguments.test.read_text(encoding="utf-8").splitlines()]
        return [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    if shared.exists():
        sides = [f"test_2016_flickr.{side}.gz" for side in ("en", "de")]
        read = [gzip.decompress((shared / side).read_bytes()).decode() for side in sides]
        return read[0].splitlines(), read[1].splitlines()
    held_out = corpus(pairs=1).test
    return [source for source, _ in held_out], [target for _, target in held_out]


def make_models(arguments: argparse.Namespace, folder: Path) -> tuple[dict[str, Path], dict[str, str]]:
    """Return the models by name, and what their weights are."""
    paths: dict[str, Path] = {}
    weights: dict[str, str] = {}
    source = find_model(arguments.source or BUNDLED)
    if arguments.base_8k is not None:
        paths["base_8k"], weights["base_8k"] = find_model(arguments.base_8k), "given"
    else:
        model = load_model(source)
        config, parameters = models.widened(model, noise=0.002)
        models.save(model, folder / "base", config, parameters, tokenizer=model.tokenizers.target)
        paths["base_8k"] = _filled(load_model(folder / "base"), folder, "base_8k")
        weights["base_8k"] = f"{_told(source)}, widened to base size, not trained further"
    if arguments.base_32k is not None:
        paths["base_32k"], weights["base_32k"] = find_model(arguments.base_32k), "given"
    else:
        paths["base_32k"] = _filled(load_model(paths["base_8k"]), folder, "base_32k")
        weights["base_32k"] = "base_8k with pieces added that occur in no text"
    paths["small"], weights["small"] = source, _told(source)
    return paths, weights


def write_marian(model: ModelDirectory, folder: Path) -> bool:
    """Write what translation_worker.py's Hugging Face loads; whether Marian has a place for such a network.

    `transduce export --format huggingface` refuses learned positions, which `transformers` would overwrite with its own
    when it loads them. The worker puts them back.
    """
    config = model.description.architecture
    if config.norm != "post" or config.tied != "all":
        return False
    order = torch.cat([torch.arange(0, config.d_model, 2), torch.arange(1, config.d_model, 2)])
    learned = [torch.from_numpy(array) for name, array in model.parameters.items() if name.endswith("table_TD")]
    table_TD = learned[0] if learned else sinusoidal_positions(LONGEST, config.d_model).float()
    folder.mkdir()
    write_tensors(folder / "model.safetensors", marian_weights(model.parameters, config), metadata={"format": "pt"})
    save_file({"table_TD": table_TD[:, order].contiguous()}, folder / "positions.safetensors")
    (folder / "config.json").write_text(json.dumps(marian_config(config)), encoding="utf-8")
    (folder / "sentencepiece.model").write_bytes(model.tokenizers.target.to_bytes())
    return True


def write_vmap(model: ModelDirectory, folder: Path) -> None:
    """Give an exported model our shortlist in CTranslate2's form: what each piece can become, and what is common."""
    shortlist = model.shortlist()
    assert shortlist is not None, "ask whether there is one"
    piece = model.tokenizers.target.piece
    lines = ["\t" + " ".join(map(piece, shortlist.common_C.tolist()))]
    for token, candidates in enumerate(shortlist.candidates_VK.tolist()):
        lines.append(f"{piece(token)}\t{' '.join(piece(own) for own in (token, *candidates) if own)}")
    (folder / "vmap.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _told(source: Path) -> str:
    description = read_description(source)
    config, steps = description.architecture, description.training.get("step", "?")
    shape = f"{config.encoder_depth}+{config.decoder_depth} layers, width {config.d_model}, {config.norm}-norm"
    return f"a small model ({shape}) trained for {steps} steps"


def _filled(model: ModelDirectory, folder: Path, name: str) -> Path:
    """Return the model with as many pieces as its name says, if it has fewer."""
    if model.tokenizers.target.vocabulary_size >= SIZES[name]:
        return model.folder
    tokenizer, parameters = models.with_fillers(model, SIZES[name])
    config = model.description.architecture.model_copy(update={"vocabulary_size": tokenizer.vocabulary_size})
    models.save(model, folder / name, config, parameters, tokenizer=tokenizer)
    return folder / name
