"""An imported model goes back to the formats of other programs, and comes in again as the same model."""

from pathlib import Path

import pytest
import torch
from tests.importing import fairseq_folder, marian_folder, marian_native
from tests.importing.test_huggingface import TEXTS, log_probabilities
from tests.text.foreign_pieces import trained_pieces

from transduce.errors import ModelError
from transduce.export.argos import export_argos
from transduce.export.ctranslate2 import export_ctranslate2
from transduce.export.huggingface import export_huggingface
from transduce.importing.formats import import_model
from transduce.model_directory import Languages, ModelDirectory, load_model

LANGUAGES = Languages(source="en", target="de")


def imported(source: Path, destination: Path) -> ModelDirectory:
    import_model(source, destination, LANGUAGES)
    return load_model(destination)


def require_equal(first: ModelDirectory, second: ModelDirectory, *, atol: float = 1e-4) -> None:
    for source, target in zip(TEXTS, reversed(TEXTS), strict=True):
        assert first.tokenizers.encode_source(source) == second.tokenizers.encode_source(source)
        ours, theirs = (log_probabilities(model, source, target) for model in (first, second))
        torch.testing.assert_close(ours, theirs, atol=atol, rtol=0)


def test_to_hugging_face(tmp_path: Path) -> None:
    marian_folder.write_folder(tmp_path / "marian")
    model = imported(tmp_path / "marian", tmp_path / "model")
    export_huggingface(model, tmp_path / "back")
    require_equal(model, imported(tmp_path / "back", tmp_path / "again"))
    for name in ("source.spm", "target.spm"):
        assert (tmp_path / "back" / name).read_bytes() == (tmp_path / "marian" / name).read_bytes()


def test_to_ctranslate2_and_argos(tmp_path: Path) -> None:
    """The exporter compares CTranslate2's log-probabilities with ours; each side has a sentencepiece model."""
    pytest.importorskip("ctranslate2")
    marian_folder.write_folder(tmp_path / "marian")
    (tmp_path / "marian/target.spm").write_bytes(trained_pieces(["der Hund läuft."] * 9, size=60))
    model = imported(tmp_path / "marian", tmp_path / "model")
    assert not model.tokenizers.is_shared
    assert export_ctranslate2(model, tmp_path / "back") < 1e-4
    again = imported(tmp_path / "back", tmp_path / "again")
    require_equal(model, again)
    assert again.tokenizers.encode_targets(TEXTS) == model.tokenizers.encode_targets(TEXTS)
    assert again.description.training["imported"] == "CTranslate2"
    export_argos(model, tmp_path / "back.argosmodel", weights="float32")
    third = imported(tmp_path / "back.argosmodel", tmp_path / "third")
    assert third.tokenizers.encode_source(TEXTS[0]) == model.tokenizers.encode_source(TEXTS[0])


def test_what_another_program_lacks_is_named(tmp_path: Path) -> None:
    marian_native.write_student(tmp_path / "student")
    student = imported(tmp_path / "student", tmp_path / "model")
    with pytest.raises(ModelError, match='decoder_mixer = "ssru"'):
        export_ctranslate2(student, tmp_path / "back")
    fairseq_folder.write_folder(tmp_path / "fairseq", fairseq_folder.TorchTransformer())
    model = imported(tmp_path / "fairseq", tmp_path / "other")
    with pytest.raises(ModelError, match="cut by codes, not by a sentencepiece model"):
        export_ctranslate2(model, tmp_path / "back")
