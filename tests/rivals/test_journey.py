"""A network of another kind through the whole frame: teachers, Muon, a stop, resume, model directory, ensemble."""

import json
from pathlib import Path

import pytest
from pydantic import JsonValue
from safetensors.torch import load_file
from tests.faults import small_run

import transduce
from transduce.errors import ConfigError, ModelError
from transduce.export.ctranslate2 import export_ctranslate2
from transduce.model_directory import load_model
from transduce.training.trainer import Ending

SIZES: dict[str, dict[str, JsonValue]] = {
    "lstm": {"model.d_model": 16, "model.layers": 2, "model.vocabulary_size": 400},
    "rnnsearch": {
        "model.d_model": 16,
        "model.embedding_width": 12,
        "model.alignment_width": 16,
        "model.output_width": 12,
        "model.vocabulary_size": 400,
    },
    "luong": {"model.d_model": 16, "model.layers": 2, "model.vocabulary_size": 400},
    "gnmt": {"model.d_model": 16, "model.layers": 3, "model.alignment_width": 16, "model.vocabulary_size": 400},
    "convs2s": {
        "model.d_model": 16,
        "model.output_width": 16,
        "model.encoder": [[16, 3], [24, 3]],
        "model.decoder": [[16, 3]],
        "model.vocabulary_size": 400,
    },
    "bytenet": {"model.d_model": 16, "model.sets": 1, "model.vocabulary_size": 400},
    "neural-gpu": {
        "model.d_model": 16,
        "model.layers": 1,
        "model.length_factor": 2.0,
        "model.vocabulary_size": 400,
        "training.bpe_dropout": 0.0,
        "data.max_length": 60,
    },
    "memory-network": {"model.d_model": 16, "model.hops": 2, "model.vocabulary_size": 400},
}
WITHOUT_ATTENTION = {"lstm", "bytenet", "neural-gpu"}
FRAME = {key: value for key, value in small_run.SETTINGS.items() if not key.startswith("model.")}


@pytest.fixture(scope="module", params=SIZES)
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """One run that was never stopped, and one that was stopped among its teachers and among its own steps."""
    folder = tmp_path_factory.mktemp("kind")
    settings = {**FRAME, **SIZES[request.param], "training.teacher_steps": 4, "training.optimizer": "muon"}
    corpus, whole, stopped = small_run.write_text(folder), folder / "whole", folder / "stopped"
    transduce.train(corpus, output=whole, preset=request.param, threads=1, settings=settings)
    for steps in (2, 9):
        stop = small_run.stop_after(steps)
        found = transduce.train(
            corpus, output=stopped, preset=request.param, threads=1, settings=settings, stop_requested=stop
        )
        assert found.ending is Ending.STOPPED
    assert transduce.train(output=stopped).ending is Ending.STEPS
    return whole, stopped


@pytest.mark.slow
def test_a_stopped_run_ends_with_the_weights_of_one_that_was_not(runs: tuple[Path, Path]) -> None:
    whole, stopped = runs
    assert not small_run.difference(stopped, small_run.fingerprint(whole))


@pytest.mark.slow
def test_its_directory_is_format_2_and_everything_reads_it(runs: tuple[Path, Path]) -> None:
    whole, stopped = runs
    content = json.loads((whole / "model/config.json").read_text(encoding="utf-8"))
    assert content["format_version"] == 2
    kind = content["architecture"]["kind"]
    alone, both = transduce.load(whole), transduce.load(whole, stopped)
    assert both.translate("A dog runs.", beam=3).text == alone.translate("A dog runs.", beam=3).text
    (likelihood,) = alone.likelihood([("A dog runs.", "Ein Hund läuft.")])
    assert likelihood.log_probability < 0.0
    if kind in WITHOUT_ATTENTION:
        with pytest.raises(ModelError, match="no attention to show"):
            alone.attention("A dog runs.")
    else:
        assert list(alone.attention("A dog runs.").blocks) == ["memory" if kind == "memory-network" else "cross"]
    with pytest.raises(ConfigError, match=f'There is no int8 form of kind = "{kind}"'):
        transduce.load(whole, precision="int8")
    with pytest.raises(ModelError, match=f'kind = "{kind}"'):
        export_ctranslate2(load_model(whole / "model"), whole / "exported")


@pytest.mark.slow
def test_running_means_of_batch_normalisation_survive_a_stop(tmp_path: Path) -> None:
    settings = {key: value for key, value in small_run.SETTINGS.items() if key != "training.micro_batch_tokens"}
    settings |= {"model.normalization": "batch", "model.norm": "pre"}
    corpus, whole, stopped = small_run.write_text(tmp_path), tmp_path / "whole", tmp_path / "stopped"
    transduce.train(corpus, output=whole, preset="tiny", threads=1, settings=settings)
    stop = small_run.stop_after(5)
    found = transduce.train(corpus, output=stopped, preset="tiny", threads=1, settings=settings, stop_requested=stop)
    assert found.ending is Ending.STOPPED
    transduce.train(output=stopped)
    assert not small_run.difference(stopped, small_run.fingerprint(whole))
    means = [
        weight for name, weight in load_file(whole / "model/weights.safetensors").items() if name.endswith("mean_D")
    ]
    assert means
    assert all(float(abs(mean).max()) > 0 for mean in means)
