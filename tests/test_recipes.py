"""Every recipe is a valid experiment, the paper's have the paper's sizes, and each starts on stand-in text."""

import gzip
import tomllib
from pathlib import Path

import pytest

from transduce.data.formats import paths_of
from transduce.errors import DataError
from transduce.experiment import ExperimentConfig, resolve_experiment, validate_experiment
from transduce.model.config import ModelConfig
from transduce.networks.cost import parameter_count
from transduce.pipeline.planning import Choice, TrainRequest, choose_experiment
from transduce.pipeline.run import opened_run
from transduce.progress import Silent
from transduce.training.trainer import Ending

RECIPES = Path(__file__).parents[1] / "recipes"
PAPER = sorted((RECIPES / "paper").glob("wmt*.toml"))
TINY = [
    "model.layers=1",
    "model.d_model=16",
    "model.d_ff=16",
    "model.heads=2",
    "model.vocabulary_size=300",
    "training.steps=2",
    "training.batch_tokens=200",
    "training.micro_batch_tokens=200",
    "training.threads=1",
]

by_name = pytest.mark.parametrize("recipe", sorted(RECIPES.rglob("*.toml")), ids=lambda path: path.stem)


@by_name
def test_a_recipe_says_how_much_text_each_of_its_files_holds(recipe: Path) -> None:
    data = resolve_experiment(recipe).data
    sources = {paths_of(name)[0].name for name in (*data.train, *data.valid, *data.test)}
    assert set(data.expected_pairs) == sources


@pytest.mark.parametrize("recipe", PAPER, ids=lambda path: path.stem)
def test_the_papers_recipes_are_table_3_and_sections_5_and_6(recipe: Path) -> None:
    experiment = resolve_experiment(recipe)
    is_big, is_french = "big" in recipe.stem, "en-fr" in recipe.stem
    model, training = experiment.model, experiment.training
    assert isinstance(model, ModelConfig)
    assert (model.layers, model.d_model, model.d_ff, model.heads) == (
        (6, 1024, 4096, 16) if is_big else (6, 512, 2048, 8)
    )
    assert model.vocabulary_size == (32_000 if is_french else 37_000)
    assert model.dropout == (0.3 if is_big and not is_french else 0.1)
    assert (training.steps, training.average_last) == ((300_000, 20) if is_big else (100_000, 5))
    assert (training.schedule, training.warmup_steps, training.label_smoothing) == ("paper", 4000, 0.1)
    assert (training.beta1, training.beta2, training.epsilon, training.batch_tokens) == (0.9, 0.98, 1e-9, 25_000)
    assert (experiment.decoding.beam, experiment.decoding.length_penalty, experiment.decoding.extra_length) == (
        4,
        0.6,
        50,
    )
    if not is_french and not is_big:
        assert parameter_count(model) == 63_045_632


def test_the_papers_parser_is_section_6_3() -> None:
    experiment = resolve_experiment(RECIPES / "paper" / "wsj.parsing.toml")
    model, decoding = experiment.model, experiment.decoding
    assert isinstance(model, ModelConfig)
    assert (model.layers, model.d_model, model.d_ff, model.heads) == (4, 1024, 2048, 8)
    assert (model.vocabulary_size, model.source_vocabulary_size) == (16_000, 16_000)
    assert (decoding.beam, decoding.length_penalty, decoding.extra_length) == (21, 0.3, 300)


def stand_in(recipe: Path, folder: Path, *, pairs: int) -> ExperimentConfig:
    """Write text of our own under the names that the recipe wants, and return the recipe at this folder, made tiny."""
    experiment = resolve_experiment(recipe, overrides=TINY)
    content = experiment.model_dump(mode="json", exclude_none=True)
    lines = [f"sentence number {n} of a stand-in" for n in range(pairs)]
    named = [(content["data"], split) for split in ("train", "valid", "test")]
    for entry, key in [*named, *((corpus, "files") for corpus in content["data"].get("corpora", []))]:
        moved = []
        for name in entry[key]:
            places = [folder / path.name for path in paths_of(name)]
            for place, side in zip(places, ("source", "target"), strict=False):
                written = [f"{line} {Path(name).name} {side}" for line in lines]
                if experiment.data.has_trees:
                    written = [f"(S {' '.join(f'(NN {word})' for word in line.split())})" for line in written]
                if len(places) == 1 and not experiment.data.has_trees:
                    written = [f"{line}\t{line} turned" for line in written]
                text = "".join(f"{line}\n" for line in written).encode()
                place.write_bytes(gzip.compress(text) if place.suffix == ".gz" else text)
            moved.append(",".join(map(str, places)))
        entry[key] = moved
    if experiment.training.teacher_steps is not None:
        content["training"]["teacher_steps"] = experiment.training.warmup_steps + 1  # the fewest that a cosine may have
    return validate_experiment(content, where=str(recipe))


@by_name
def test_a_download_that_is_not_whole_is_refused(recipe: Path, tmp_path: Path) -> None:
    experiment = stand_in(recipe, tmp_path, pairs=30)
    choice = Choice(experiment=experiment, preset=None, reason="", resumes=False)
    with (
        pytest.raises(DataError, match=r"holds 30 pairs, but data.expected_pairs says"),
        opened_run(choice, tmp_path / "run", progress=Silent()),
    ):
        pass


@pytest.mark.slow
@by_name
def test_a_recipe_starts(recipe: Path, tmp_path: Path) -> None:
    experiment = stand_in(recipe, tmp_path, pairs=60)
    whole = experiment.model_copy(update={"data": experiment.data.model_copy(update={"expected_pairs": {}})})
    choice = Choice(experiment=whole, preset=None, reason="", resumes=False)
    with opened_run(choice, tmp_path / "run", progress=Silent()) as run:
        assert run.train(stop_requested=lambda: False).ending is not Ending.STOPPED


def test_a_recipe_takes_other_files_from_the_command_line(tmp_path: Path) -> None:
    request = TrainRequest(
        file=PAPER[0], sections={"data": {"train": ["other.tsv"], "valid": [], "test": []}}, overrides=TINY
    )
    experiment = choose_experiment(request, tmp_path, progress=Silent()).experiment
    assert experiment.data.train == (str(Path("other.tsv").absolute()),)
    assert (
        experiment.data.expected_pairs == tomllib.loads(PAPER[0].read_text(encoding="utf-8"))["data"]["expected_pairs"]
    )
