"""A package of Argos Translate: a zip archive, or its folder, of a CTranslate2 model and a sentencepiece model.

translate-en_de/metadata.json · sentencepiece.model · model/{model.bin, config.json, …_vocabulary…} · README.md
"""

import tempfile
import zipfile
import zlib
from dataclasses import replace
from pathlib import Path

from transduce.errors import ModelError
from transduce.importing.ctranslate2 import read_ctranslate2
from transduce.importing.foreign_model import ForeignModel, licence_of, read_json, refuse
from transduce.model_directory import Languages

_ENDING = ".argosmodel"
_NAMES = ("metadata.json", "README.md", "sentencepiece.model", "bpe.model", "model/model.bin", "model/config.json")
_VOCABULARIES = tuple(
    f"model/{side}_vocabulary.{ending}" for side in ("shared", "source", "target") for ending in ("json", "txt")
)
_EXPANSION, _ROOM = 4, 32 << 20  # of all members together, over the size of the archive; weights hardly shrink
_CHUNK = 1 << 20


def is_argos(source: Path) -> bool:
    """Return whether a file or a folder is a package."""
    return source.suffix == _ENDING or all((source / name).exists() for name in ("metadata.json", "model"))


def read_argos(source: Path, languages: Languages) -> ForeignModel:
    """Return the model in a package; its metadata name the languages unless they are given."""
    if source.is_dir():
        return _read(source, languages, name=str(source))
    with tempfile.TemporaryDirectory() as folder:
        _unpack(source, Path(folder))
        return _read(Path(folder), languages, name=str(source))


def _read(folder: Path, languages: Languages, *, name: str) -> ForeignModel:
    metadata = read_json(folder / "metadata.json")
    if not isinstance(metadata, dict):
        raise ModelError(f"{name} is damaged: its metadata.json is not a JSON object.")
    refuse(metadata, {"type": ("translate",), "target_prefix": ("", None)}, name=f"{name}: metadata.json")
    if (folder / "bpe.model").is_file():
        raise ModelError(
            f"{name} has bpe.model, a tokenizer that transduce does not import; sentencepiece.model it does."
        )
    own = {key: metadata.get(f"{key}_code") for key in ("from", "to")}
    model = read_ctranslate2(
        folder / "model",
        Languages(
            source=languages.source or (own["from"] if isinstance(own["from"], str) else None),
            target=languages.target or (own["to"] if isinstance(own["to"], str) else None),
        ),
    )
    return replace(model, origin="Argos Translate", licence=licence_of(folder) or model.licence)


def _unpack(source: Path, folder: Path) -> None:
    """Write the members that matter into `folder`, under names of ours alone."""
    (folder / "model").mkdir()
    left = _EXPANSION * source.stat().st_size + _ROOM
    try:
        with zipfile.ZipFile(source) as archive:
            for member in archive.infolist():
                name = member.filename.partition("/")[2]
                if name not in _NAMES and name not in _VOCABULARIES:
                    continue
                left -= member.file_size
                if left < 0:
                    raise ModelError(f"{source} is damaged: {name} would have {member.file_size:,} bytes.")
                with archive.open(member) as packed, (folder / name).open("wb") as file:
                    while chunk := packed.read(_CHUNK):  # never more than the size that was checked
                        file.write(chunk)
    except (zipfile.BadZipFile, OSError, EOFError, ValueError, RuntimeError, NotImplementedError, zlib.error):
        raise ModelError(f"{source} is damaged or is not a package of Argos Translate.") from None
