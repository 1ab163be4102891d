"""Model directories and checkpoints as an attacker would send them: each file mutated, its manifest made to fit.

Whatever comes must be refused with a clear error, or read; and what is read must be usable or be refused then.
"""

import hashlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tests.faults.mutations import Mutator, bytewise, header_of_tensors, protobuf, structural
from tests.text.foreign_pieces import imported, trained_pieces

from transduce.data.shortlist import Shortlist
from transduce.files import MANIFEST, sha256_of_file
from transduce.model.config import ModelConfig
from transduce.model.transformer import Transformer
from transduce.model_directory import Description, Languages, Storage, load_model, save_model
from transduce.progress import Silent
from transduce.text.bpe_tokenizer import BpeTokenizer
from transduce.text.character_tokenizer import CharacterTokenizer
from transduce.text.tokenizer_pair import TokenizerPair
from transduce.training.arithmetic import Arithmetic
from transduce.training.checkpoint import Checkpoint
from transduce.training.config import TrainingConfig
from transduce.training.distributed import World
from transduce.training.resumption import Resumption
from transduce.training.state import CheckpointState, Machine, TrainingProgress
from transduce.training.step import Stepper
from transduce.translator import Translator
from transduce.translator.calibration import CALIBRATION, Calibration, read_calibration, write_calibration
from transduce.translator.confidence import ConfidenceModel

_TEXT = "Das Haus ist alt, und der Baum davor ist jung. The house is old, and the tree before it is young."
_MACHINE = Machine(device="cpu", threads=1, precision="float32", ranks=1)


class Mutated:
    """A file of a folder that is mutated, read in its folder, and put back."""

    def __init__(self, file: Path, mutators: tuple[Mutator, ...], read: Callable[[random.Random], None]) -> None:
        self.file, self.mutators, self.read = file, mutators, read
        self.content = file.read_bytes()
        self.manifest = file.parent / MANIFEST
        self.sums = self.manifest.read_bytes() if self.manifest.exists() else b""

    def __call__(self, chance: random.Random) -> None:
        """Read the folder with this file mutated."""
        content = chance.choice(self.mutators)(self.content, chance)
        self.file.write_bytes(content)
        if self.sums and self.file != self.manifest and chance.random() < 0.97:
            sums = json.loads(self.sums)
            sums["files"][self.file.name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            self.manifest.write_text(json.dumps(sums), encoding="utf-8")
        try:
            self.read(chance)
        finally:
            self.file.write_bytes(self.content)
            if self.sums:
                self.manifest.write_bytes(self.sums)


def tiny_network(tokenizers: TokenizerPair, **options: Any) -> Transformer:  # noqa: ANN401
    """Return a network that is as small as the tokenizers allow."""
    torch.manual_seed(1)
    sizes = {"vocabulary_size": tokenizers.vocabulary_size, "layers": 1, "d_model": 8, "d_ff": 8, "heads": 2}
    return Transformer(ModelConfig.model_validate({**sizes, **options}))


def _save(place: Path, storage: Storage, tokenizers: TokenizerPair, shortlist: Shortlist | None = None) -> None:
    options: dict[str, Any] = {}
    if not tokenizers.is_shared:
        options = {"source_vocabulary_size": tokenizers.source.vocabulary_size, "tied": "decoder"}
    network = tiny_network(tokenizers, **options)
    description = Description(
        architecture=network.config,
        languages=Languages(source="de", target="en"),
        weights=storage,
        longest_sentence=40,
        decoding={"beam": 2, "length_penalty": 0.5},
        training={"step": 7, "averaged": [5, 7]},
    )
    save_model(
        place,
        description,
        dict(network.named_parameters()),
        tokenizers=tokenizers,
        card="# A model",
        training_hashes=np.arange(5, dtype=np.uint64),
        shortlist=shortlist,
    )


def model_files(folder: Path) -> list[Mutated]:
    """Return the files of model directories of each storage and each kind of tokenizer, to be mutated."""
    bpe = BpeTokenizer.learn([_TEXT], vocabulary_size=310)
    characters = CharacterTokenizer.learn([_TEXT], vocabulary_size=310)
    foreign = imported(trained_pieces([_TEXT] * 20, size=60), tag=">>deu<<", extra=[">>deu<<"])
    lists = Shortlist(np.arange(9, dtype=np.int32), np.zeros((310, 2), np.int32), bpe.special, copies_sources=True)
    shared = TokenizerPair.shared
    models: dict[str, tuple[Storage, TokenizerPair, Shortlist | None]] = {
        "float32": ("float32", shared(bpe), lists),
        "bf16": ("bf16", TokenizerPair(characters, bpe, True), None),
        "int8": ("int8", shared(foreign), None),
    }
    files = []
    for name, (storage, tokenizers, shortlist) in models.items():
        place = folder / name
        _save(place, storage, tokenizers, shortlist)
        read = _model_reader(place)
        mutators = {"bpe": (protobuf, protobuf, bytewise)}.get(tokenizers.target.kind, (bytewise,))
        files += [
            Mutated(place / "config.json", (structural, structural, bytewise), read),
            Mutated(place / "tokenizer.model", mutators, read),
            Mutated(place / "weights.safetensors", (header_of_tensors, header_of_tensors, bytewise), read),
            Mutated(place / "training_hashes.safetensors", (header_of_tensors,), read),
            Mutated(place / MANIFEST, (structural, bytewise), read),
        ]
        if shortlist is not None:
            files.append(Mutated(place / "shortlist.safetensors", (header_of_tensors, bytewise), read))
            write_calibration(place, _calibration(place))
            files.append(Mutated(place / CALIBRATION, (structural, bytewise), read))
        if not tokenizers.is_shared:
            files.append(Mutated(place / "source_tokenizer.model", (bytewise,), read))
    return files


def _calibration(folder: Path) -> Calibration:
    eight = (1.0,) * 8
    model = ConfidenceModel(means=eight, deviations=eight, weights=eight, bias=0.0, pairs=10)
    return Calibration(weights=sha256_of_file(folder / "weights.safetensors"), stand_ins=("x",), confidence=model)


def _model_reader(folder: Path) -> Callable[[random.Random], None]:
    def read(chance: random.Random) -> None:
        model = load_model(folder)
        model.training_hashes()
        model.shortlist()
        read_calibration(folder)
        tokenizer = model.tokenizers.target
        text = tokenizer.decode(tokenizer.encode("Das Haus ist alt."))
        assert text == "Das Haus ist alt." or tokenizer.kind == "imported"
        if chance.random() < 0.2:
            Translator([model], threads=1).translate("Das Haus.")

    return read


def checkpoint_files(folder: Path) -> list[Mutated]:
    """Return every file of a checkpoint, to be mutated."""
    tokenizers = TokenizerPair.shared(BpeTokenizer.learn([_TEXT], vocabulary_size=310))
    config = TrainingConfig(steps=10)
    arithmetic = Arithmetic(torch.device("cpu"), "float32")
    stepper = Stepper(tiny_network(tokenizers), config, arithmetic=arithmetic, world=World())
    resumption = Resumption(stepper, folder / "run", Silent())
    state = CheckpointState(progress=TrainingProgress(step=4), machine=_MACHINE, is_regular=True, identity={"a": 1})
    checkpoint = resumption.save(state, keep=3)

    def read(chance: random.Random) -> None:
        found = Checkpoint(checkpoint.folder, checkpoint.step)
        if found.fault() is None:
            resumption._load(found, _MACHINE, {"a": 1})

    place = checkpoint.folder
    return [
        Mutated(place / "state.json", (structural, structural, bytewise), read),
        Mutated(place / "model.safetensors", (header_of_tensors, header_of_tensors, bytewise), read),
        Mutated(place / "optimizer.safetensors", (header_of_tensors, bytewise), read),
        Mutated(place / MANIFEST, (structural, bytewise), read),
    ]


def cases(folder: Path, *, seed: int) -> Callable[[int], str]:
    """Return the function that makes and reads the mutated file of a number."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [*model_files(folder / "models"), *checkpoint_files(folder)]
    for storage in ("float32", "bf16", "int8"):  # what reading and translating import, they import now
        Translator([load_model(folder / "models" / storage)], threads=1).translate("Das Haus.")

    def case(number: int) -> str:
        mutated = files[number % len(files)]
        mutated(random.Random(f"{seed}-{number}"))
        return mutated.file.name

    return case
