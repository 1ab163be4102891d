"""Packages of Argos Translate: what our exporter packs comes back, as an archive and as a folder."""

import json
import zipfile
from pathlib import Path

import pytest
from tests.export.test_ctranslate2 import make
from tests.importing.marian_native import write_student
from tests.importing.test_ctranslate2 import largest_difference

from transduce.errors import ModelError
from transduce.export.argos import export_argos
from transduce.importing.formats import import_model
from transduce.model_directory import Languages, load_model


def test_a_package_comes_back_with_its_languages(tmp_path: Path) -> None:
    original = make(tmp_path / "original")
    export_argos(original, tmp_path / "en_de.argosmodel", weights="float32")
    with zipfile.ZipFile(tmp_path / "en_de.argosmodel") as archive:
        archive.extractall(tmp_path / "installed")
    for number, source in enumerate((tmp_path / "en_de.argosmodel", tmp_path / "installed/translate-en_de")):
        import_model(source, tmp_path / f"model{number}", Languages())
        model = load_model(tmp_path / f"model{number}")
        assert model.description.languages == Languages(source="en", target="de")
        assert model.description.training["imported"] == "Argos Translate"
        folder = tmp_path / "installed/translate-en_de/model"
        assert largest_difference(model, folder, original) < 1e-4


def test_a_folder_of_firefox_with_metadata_is_none_of_argos(tmp_path: Path) -> None:
    write_student(tmp_path / "student")
    (tmp_path / "student/metadata.json").write_text(json.dumps({"architecture": "base", "sourceLanguage": "en"}))
    import_model(tmp_path / "student", tmp_path / "model", Languages())
    assert load_model(tmp_path / "model").description.training["imported"] == "Marian"


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_members_that_are_there_often_cannot_fill_the_disk(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "own.argosmodel", "w", zipfile.ZIP_DEFLATED) as archive:
        for _ in range(8):
            archive.writestr("en_de/model/model.bin", bytes(5_000_000))
    with pytest.raises(ModelError, match=r"model\.bin would have 5,000,000 bytes"):
        import_model(tmp_path / "own.argosmodel", tmp_path / "model", Languages())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"metadata.json": json.dumps({"target_prefix": "__de__"})}, "target_prefix = "),
        ({"metadata.json": "[]"}, "not a JSON object"),
        ({"bpe.model": "a b"}, "bpe.model"),
        ({"sentencepiece.model": None}, "no sentencepiece model"),
        ({"model/model.bin": "0" * 40_000_000}, "model.bin would have 40,000,000 bytes"),
    ],
)
def test_what_cannot_be_expressed_is_refused(tmp_path: Path, change: dict[str, str | None], words: str) -> None:
    export_argos(make(tmp_path / "original"), tmp_path / "own.argosmodel")
    with zipfile.ZipFile(tmp_path / "own.argosmodel") as archive:
        contents: dict[str, bytes | str | None] = {name: archive.read(name) for name in archive.namelist()}
    contents |= {f"translate-en_de/{name}": content for name, content in change.items()}
    with zipfile.ZipFile(tmp_path / "changed.argosmodel", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            if content is not None:
                archive.writestr(name, content)
    with pytest.raises(ModelError, match=words):
        import_model(tmp_path / "changed.argosmodel", tmp_path / "model", Languages())
