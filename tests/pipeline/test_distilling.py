"""Distillation and back-translation: pairs as the models write them, and runs that are stopped anywhere.

The stages' own laws are in `test_stages.py`, parts of a text in `tests/bulk`.
"""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.faults import small_run

from transduce.bulk.parts import LargeText
from transduce.data.mixture import corpus_sizes
from transduce.data.token_store import TokenStore
from transduce.errors import DataError
from transduce.files import sha256_of_file
from transduce.pipeline.back_translation import TAG, BackTranslation, back_translation_stages
from transduce.pipeline.command import request_of
from transduce.pipeline.distilling import Distillation, distillation_stages
from transduce.pipeline.divided_pairs import SPLITS
from transduce.pipeline.made_pairs import PairsStage, PartsStage, ScoringModel, WritingModel
from transduce.pipeline.planning import read_kept_experiment
from transduce.pipeline.stages import RunStage, StageContext, run_stages, unfinished
from transduce.progress import Silent
from transduce.training.distributed import World
from transduce.translator import Translator

CONTEXT = StageContext(World(), Silent())


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Real pairs, and text in either language that has some of their sentences."""
    folder = tmp_path_factory.mktemp("corpus")
    lines = small_run.write_text(folder).read_text(encoding="utf-8").splitlines()
    (folder / "mine.tsv").write_text("".join(f"{line}\n" for line in lines[:80]), encoding="utf-8")
    for side, name in enumerate(("en", "de")):
        text = "".join(f"{line.split(chr(9))[side]}\n" for line in lines[40:])
        (folder / f"mono.{name}.gz").write_bytes(gzip.compress(text.encode()))
    return folder


def run(stages: Sequence[RunStage], *, stop_after: int | None = None) -> RunStage | None:
    stop = (lambda: False) if stop_after is None else small_run.stop_after(stop_after)
    return run_stages(stages, context=CONTEXT, stop_requested=stop)


def pairs_of(path: Path) -> list[tuple[str, str]]:
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    return [(source, target) for source, target in rows]


def lines_of(path: Path) -> list[str]:
    return gzip.decompress(path.read_bytes()).decode().splitlines()


@pytest.fixture
def text(corpus: Path) -> LargeText:
    return LargeText((corpus / "mono.en.gz",), 7)


def written(text: LargeText, folder: Path) -> PartsStage:
    return PartsStage("writing", folder / "written", WritingModel(("en-de",), {"beam": 1}, 1), text, (), CONTEXT)


@pytest.mark.parametrize("text_is_target", [False, True])
def test_pairs_are_the_text_and_what_the_model_writes(text: LargeText, tmp_path: Path, text_is_target: bool) -> None:
    one = written(text, tmp_path)
    pairs = PairsStage(tmp_path / "pairs", text, one, CONTEXT, text_is_target)
    stages: list[RunStage] = [one, pairs]
    assert run(stages) is None
    own = lines_of(text.files[0])
    expected = Translator.load("en-de", threads=1).translate(own, beam=1, keep_placeholders="report", keep_form=False)
    rows = [(line, other.text) for line, other in zip(own, expected, strict=True)]
    assert pairs_of(pairs.result) == [row[::-1] if text_is_target else row for row in rows]
    assert pairs.record().kept == len(rows)
    assert unfinished(stages, world=World()) == []
    assert all((stage.folder / "README.md").read_text() for stage in stages)


def test_the_pairs_with_the_lowest_scores_are_left_out(text: LargeText, tmp_path: Path) -> None:
    one = written(text, tmp_path)
    scores = PartsStage("scoring", tmp_path / "scores", ScoringModel("en-de", 1), text, (one,), CONTEXT, one)
    pairs = PairsStage(tmp_path / "pairs", text, one, CONTEXT, scores=scores, worst=0.25)
    assert run([one, scores, pairs]) is None
    rows = list(zip(lines_of(text.files[0]), one.lines(), strict=True))
    found = Translator.load("en-de", threads=1).likelihood([(target, source) for source, target in rows])
    expected = [sum(each.log_probabilities) / len(each.log_probabilities) for each in found]
    assert np.allclose([float(line) for line in scores.lines()], expected, atol=1e-4)
    limit = sorted(expected)[len(rows) // 4]
    assert pairs_of(pairs.result) == [row for row, score in zip(rows, expected, strict=True) if score >= limit - 1e-4]
    assert 0 < len(rows) - pairs.record().kept <= len(rows) // 4


def test_given_output_is_paired_line_by_line(corpus: Path, text: LargeText, tmp_path: Path) -> None:
    given = LargeText((corpus / "mono.de.gz",))
    pairs = PairsStage(tmp_path / "pairs", text, given, CONTEXT)
    assert run([pairs]) is None
    assert pairs_of(pairs.result) == list(zip(lines_of(text.files[0]), lines_of(given.files[0]), strict=True))
    (tmp_path / "short").write_text("eins\n", encoding="utf-8")
    pairs = PairsStage(tmp_path / "others", text, LargeText((tmp_path / "short",)), CONTEXT)
    with pytest.raises(DataError, match=r"more or fewer lines than .*mono\.en\.gz"):
        run([pairs])
    assert not pairs.result.exists()
    (tmp_path / "empty").write_text("\n \n", encoding="utf-8")
    empty = LargeText((tmp_path / "empty",))
    with pytest.raises(DataError, match=r"No pair is left of .*: 2 left out without text on a side"):
        run([PairsStage(tmp_path / "none", empty, empty, CONTEXT)])


def test_another_model_or_text_makes_other_parts(text: LargeText, corpus: Path, tmp_path: Path) -> None:
    one = written(text, tmp_path)
    assert run([one]) is None
    assert one.is_done()
    other = PartsStage("writing", one.result, WritingModel(("en-de",), {"beam": 2}, 1), text, (), CONTEXT)
    assert not other.is_done()
    next(one.result.glob("*.txt")).unlink()
    assert not PartsStage("scoring", tmp_path / "new", ScoringModel("en-de"), text, (), CONTEXT, one).is_done()


def distillation(corpus: Path, *, real: bool = True) -> Distillation:
    return Distillation(
        text=(corpus / "mono.en.gz",),
        real=request_of(overrides=small_run.overrides(), training={"threads": 1}),
        corpora={"train": [str(corpus / "mine.tsv")]} if real else {},
        languages=("en", "de"),
        teachers=("en-de",),
        reverse_model="en-de",
        student="tiny",
        beam=1,
        threads=1,
    )


def back_translation(corpus: Path) -> BackTranslation:
    return BackTranslation(
        text=(corpus / "mono.de.gz",),
        corpora={"train": [str(corpus / "mine.tsv")]},
        real=request_of(preset="tiny", overrides=small_run.overrides(), training={"threads": 1}),
        languages=("en", "de"),
        search={"beam": 1},
        threads=1,
    )


@pytest.fixture(scope="module")
def better(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("better")
    assert run(back_translation_stages(back_translation(corpus), folder, CONTEXT)) is None
    return folder


@pytest.mark.slow
def test_a_student_stopped_again_and_again_ends_the_same(corpus: Path, tmp_path: Path) -> None:
    asked, stops = distillation(corpus), 0
    whole = distillation_stages(asked, tmp_path / "whole", CONTEXT)
    assert run(whole) is None
    while run(distillation_stages(asked, tmp_path / "out", CONTEXT), stop_after=2 + stops) is not None:
        stops += 1
        assert stops < 30
    assert stops > 2
    weights = [sha256_of_file(tmp_path / name / "model" / "weights.safetensors") for name in ("whole", "out")]
    assert weights[0] == weights[1]
    experiment = read_kept_experiment(tmp_path / "whole")
    assert (experiment.model.decoder_mixer, experiment.decoding.shortlist) == ("ssru", True)  # type: ignore[union-attr]
    assert (tmp_path / "whole" / "model" / "shortlist.safetensors").is_file()
    sizes = corpus_sizes(experiment.data, TokenStore.open(tmp_path / "whole" / "data" / "train"))
    assert all(sizes)
    assert unfinished(whole, world=World()) == []


@pytest.mark.slow
def test_what_no_unfinished_stage_needs_may_be_deleted(better: Path, corpus: Path) -> None:
    stages = back_translation_stages(back_translation(corpus), better, CONTEXT)
    assert unfinished(stages, world=World()) == []
    (better / "pairs" / "pairs.tsv").rename(better / "elsewhere")
    assert unfinished(stages, world=World()) == []
    (better / "mixed" / "finished.json").rename(better / "finished-mixed")
    assert unfinished(stages, world=World()) == []
    (better / "finished.json").rename(better / "finished-last")
    assert [stage.name for stage in unfinished(stages, world=World())] == [
        "collecting pairs",
        "training on both",
        "ending on real pairs",
    ]
    for name, place in (("elsewhere", "pairs/pairs.tsv"), ("finished-mixed", "mixed/finished.json")):
        (better / name).rename(better / place)
    (better / "finished-last").rename(better / "finished.json")


@pytest.mark.slow
def test_no_training_has_seen_what_is_held_out(better: Path, corpus: Path) -> None:
    splits = {split: pairs_of(better / "divided" / f"{split}.tsv") for split in SPLITS}
    assert sorted(pair for own in splits.values() for pair in own) == sorted(pairs_of(corpus / "mine.tsv"))
    held_out = {side for split in ("valid", "test") for pair in splits[split] for side in pair}
    assert held_out & set(lines_of(corpus / "mono.de.gz"))  # else this test shows nothing
    for place in ("reverse", "without", "mixed", "."):
        store = TokenStore.open(better / place / "data" / "train")
        seen = {side.removeprefix(f"{TAG} ") for n in range(len(store)) for side in store.text(n)}
        assert not seen & held_out, place
    assert json.loads((better / "pairs" / "pairs.json").read_text())["left_out"]


@pytest.mark.slow
def test_a_tag_marks_the_sources_that_the_reverse_model_wrote(better: Path) -> None:
    store = TokenStore.open(better / "mixed" / "data" / "train")
    sources = [store.text(number)[0] for number in range(len(store))]
    real, made = corpus_sizes(read_kept_experiment(better / "mixed").data, store)
    assert [source.startswith(f"{TAG} ") for source in sources] == [False] * real + [True] * made
    assert made > 0
    reverse = Translator.load(better / "reverse", threads=1)
    texts = [target for _, target in pairs_of(better / "pairs" / "pairs.tsv")]
    written = reverse.translate(texts, beam=1, keep_placeholders="report", keep_form=False)
    assert [one.text for one in written] == [source for source, _ in pairs_of(better / "pairs" / "pairs.tsv")]


@pytest.mark.slow
def test_it_ends_on_real_pairs_alone_from_the_weights_of_the_mixture(better: Path) -> None:
    last, mixed = read_kept_experiment(better), read_kept_experiment(better / "mixed")
    assert last.training.start_from == str(better / "mixed" / "model")
    assert last.data.corpora == ()
    assert last.data.train == mixed.data.train == read_kept_experiment(better / "without").data.train
    assert last.data.test == mixed.data.test
    turned = read_kept_experiment(better / "reverse").data
    assert (turned.source_language, turned.target_language) == ("de", "en")
