"""The formats that can be imported: how each is recognised, and what reads it."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from transduce.errors import ModelError
from transduce.importing.argos import is_argos, read_argos
from transduce.importing.bert import is_bert, read_bert
from transduce.importing.ctranslate2 import is_ctranslate2, read_ctranslate2
from transduce.importing.fairseq import is_fairseq, read_fairseq
from transduce.importing.foreign_model import ForeignModel
from transduce.importing.gpt2 import is_gpt2, read_gpt2
from transduce.importing.huggingface import is_huggingface, read_huggingface
from transduce.importing.marian import is_marian, read_marian
from transduce.model_directory import Languages

Reader = Callable[[Path, Languages], ForeignModel]
FORMATS: Sequence[tuple[str, Callable[[Path], bool], Reader]] = (
    ("a folder of Hugging Face's MarianMT (config.json, source.spm)", is_huggingface, read_huggingface),
    ("a folder of GPT-2 (config.json, vocab.json, merges.txt)", is_gpt2, read_gpt2),
    ("a folder of BERT (config.json, tokenizer.json or vocab.txt)", is_bert, read_bert),
    ("a package of Argos Translate (.argosmodel, or its folder)", is_argos, read_argos),
    ("a folder of fairseq (a checkpoint *.pt, dict.*.txt)", is_fairseq, read_fairseq),
    ("a folder of Marian (.npz, or .bin as in Firefox)", is_marian, read_marian),
    ("a directory of CTranslate2 (model.bin)", is_ctranslate2, read_ctranslate2),
)


def import_model(source: Path, folder: Path, languages: Languages) -> ForeignModel:
    """Read the model at `source`, whatever its format, and write it to `folder` as a model directory."""
    if folder.exists():
        raise ModelError(f"{folder} exists already. Choose another name, or remove it first.")
    if not source.exists():
        raise ModelError(f"There is nothing at {source}. Give the folder or file of a model.")
    reader = next((reader for _, is_of_format, reader in FORMATS if is_of_format(source)), None)
    if reader is None:
        known = "; ".join(title for title, _, _ in FORMATS)
        raise ModelError(f"{source} is of no format that transduce imports. These are: {known}.")
    with np.errstate(all="ignore"):  # `save` refuses weights that are not finite
        model = reader(source, languages)
        model.save(folder, source=source.resolve())
    return model
