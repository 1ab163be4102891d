"""A model that copies no placeholders, whatever the bundled model learned."""

import pytest

from transduce.files import sha256_of_file
from transduce.model_directory import WEIGHTS, find_model, load_model, save_model
from transduce.translator import Translator
from transduce.translator.calibration import Calibration, read_calibration, write_calibration


@pytest.fixture(scope="session")
def forgetful(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    """The bundled model with the vector of the unknown token, which no text has, for all symbols of placeholders."""
    model = load_model(find_model("en-de"))
    embeddings_VD = model.parameters["embeddings.source_VD"].copy()
    embeddings_VD[list(model.tokenizers.target.symbols)] = embeddings_VD[model.tokenizers.special.unknown]
    parameters = {**model.parameters, "embeddings.source_VD": embeddings_VD}
    folder = tmp_path_factory.mktemp("models") / "forgetful"
    save_model(folder, model.description, parameters, tokenizers=model.tokenizers, card="", shortlist=model.shortlist())
    own = read_calibration(model.folder)
    assert own is not None
    changed = {"weights": sha256_of_file(folder / WEIGHTS), "stand_ins": ("Boston", "Hawaii", "Tom", "London", "Japan")}
    write_calibration(folder, Calibration.model_validate({**own.model_dump(), **changed}))
    return Translator.load(folder, threads=1)
