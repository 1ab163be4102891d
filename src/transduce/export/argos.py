"""Writes a package for Argos Translate and LibreTranslate: a zip archive of a CTranslate2 model and its tokenizer.

    translate-en_de/metadata.json  README.md  sentencepiece.model  model/

The package contains no sentence splitter. Argos Translate uses its own, which it downloads at the first translation.
"""

import io
import json
import tempfile
import zipfile
from pathlib import Path

from transduce.errors import ModelError
from transduce.export.ctranslate2 import (
    SHARED_PIECES,
    SOURCE_PIECES,
    TARGET_PIECES,
    CTranslate2Weights,
    export_ctranslate2,
)
from transduce.files import write_atomically
from transduce.model_directory import ModelDirectory
from transduce.text.language_names import language_name

ENDING = ".argosmodel"
_ARGOS_VERSION = "1.9"  # the first version that accepts packages without a sentence splitter
_EPOCH = (1980, 1, 1, 0, 0, 0)  # a fixed date, so that equal models make equal packages


def export_argos(model: ModelDirectory, path: Path, *, weights: CTranslate2Weights = "int8") -> float:
    """Write a package to `path`, which must not exist.

    Return the largest difference between CTranslate2's and our log-probability of a token.
    """
    languages = model.description.languages
    if path.suffix != ENDING:
        raise ModelError(f"{path} must end in {ENDING}: Argos Translate accepts no other ending.")
    if path.exists():
        raise ModelError(f"{path} exists already. Choose another name, or remove it first.")
    if languages.source is None or languages.target is None:
        raise ModelError(
            f"{model.folder} does not name its languages, and Argos Translate needs them. Add them to its "
            'config.json: "languages": {"source": "en", "target": "de"}.'
        )
    source, target = (code.partition("-")[0] for code in (languages.source, languages.target))
    with tempfile.TemporaryDirectory() as folder:
        inside = Path(folder) / "model"
        difference = export_ctranslate2(model, inside, weights=weights)
        contents = {f"model/{file.name}": file.read_bytes() for file in sorted(inside.iterdir())}
    if f"model/{SHARED_PIECES}" in contents:
        contents[SHARED_PIECES] = contents.pop(f"model/{SHARED_PIECES}")
    else:  # Argos Translate cuts sources only, and joins the pieces of targets
        contents[SHARED_PIECES] = contents.pop(f"model/{SOURCE_PIECES}")
        del contents[f"model/{TARGET_PIECES}"]
    contents["README.md"] = contents.pop("model/README.md")
    contents["metadata.json"] = json.dumps(
        {
            "package_version": "1.0",
            "argos_version": _ARGOS_VERSION,
            "from_code": source,
            "from_name": language_name(source),
            "to_code": target,
            "to_name": language_name(target),
        },
        indent=2,
    ).encode()
    write_atomically(path, _packed(contents, root=f"translate-{source}_{target}"))
    return difference


def _packed(contents: dict[str, bytes], *, root: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(contents.items()):
            entry = zipfile.ZipInfo(f"{root}/{name}", date_time=_EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content)
    return packed.getvalue()
