"""Models of other programs as an attacker would send them: folders of MarianMT with each file mutated.

What comes must be refused with a clear error, or become weights and tokenizers that can be used.
"""

import gc
import io
import random
import zipfile
from collections.abc import Callable
from pathlib import Path

import torch
from tests.faults.mutated_models import Mutated
from tests.faults.mutations import bytewise, header_of_tensors, protobuf, structural
from tests.importing.marian_folder import write_folder

from transduce.importing.huggingface import read_huggingface
from transduce.model_directory import Languages

_JSON = ("config.json", "vocab.json", "tokenizer_config.json", "generation_config.json")


def in_archive(content: bytes, chance: random.Random) -> bytes:
    """Return a file of PyTorch with one member mutated, most often the program; its checksums fit."""
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(packed, "w") as new:
        names = old.namelist()
        program = next(name for name in names if name.endswith("data.pkl"))
        chosen = program if chance.random() < 0.8 else chance.choice(names)
        for name in names:
            own = old.read(name)
            new.writestr(name, bytewise(own, chance) if name == chosen else own)
    return packed.getvalue()


def _reader(folder: Path) -> Callable[[random.Random], None]:
    def read(chance: random.Random) -> None:
        model = read_huggingface(folder, Languages(target="de"))
        model.checked_weights(folder)
        ids = model.tokenizers.encode_source("the dog " * chance.choice((1, 200)))
        assert all(0 <= token < model.tokenizers.source.vocabulary_size for token in ids)
        model.tokenizers.target.decode(range(0, model.tokenizers.vocabulary_size, 7))
        if chance.random() < 0.005:
            gc.collect()  # tokenizers' caches refer to them: else the figure of memory counts those of many cases

    return read


def cases(folder: Path, *, seed: int) -> Callable[[int], str]:
    """Return the function that makes and reads the mutated file of a number."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name in ("plain", "pickled"):
        place = folder / name
        weights = write_folder(place, tags=(">>deu<<", ">>nld<<"), share_encoder_decoder_embeddings=name == "plain")
        (place / "generation_config.json").write_text('{"num_beams": 3, "length_penalty": 0.9}', encoding="utf-8")
        read = _reader(place)
        if name == "pickled":
            (place / "model.safetensors").unlink()
            torch.save({key: torch.from_numpy(array) for key, array in weights.items()}, place / "pytorch_model.bin")
            files += [Mutated(place / "pytorch_model.bin", (in_archive, in_archive, bytewise), read)] * 4
        else:
            files += [Mutated(place / "model.safetensors", (header_of_tensors, bytewise), read)]
            files += [Mutated(place / own, (protobuf, bytewise), read) for own in ("source.spm", "target.spm")]
        files += [Mutated(place / own, (structural, structural, bytewise), read) for own in _JSON]
        read(random.Random(0))

    def case(number: int) -> str:
        mutated = files[number % len(files)]
        mutated(random.Random(f"{seed}-{number}"))
        return f"{mutated.file.parent.name}/{mutated.file.name}"

    return case
