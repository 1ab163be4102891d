"""Teachers: their experiments, their translations, the corpus of both, and runs with them that are stopped anywhere.

Kills are tested in `tests/faults`; a teacher's training is a stage like any other, tested in `test_run.py`.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.faults import small_run

from transduce.data.config import DataConfig
from transduce.data.preparation import Prepared, prepare
from transduce.data.token_store import TokenStore
from transduce.errors import ConfigError, ModelError
from transduce.experiment import ExperimentConfig, validate_experiment
from transduce.model_directory import WEIGHTS, read_description
from transduce.pipeline import estimate, teaching, translating
from transduce.pipeline.estimate import announcement, disk_bytes
from transduce.pipeline.run import opened_run
from transduce.pipeline.stages import StageContext, run_stages
from transduce.pipeline.teaching import DIRECTIONS, Direction, TeachersCorpus, teacher
from transduce.pipeline.translating import Translations, TranslationStage
from transduce.progress import Silent
from transduce.special_tokens import OWN_SPECIAL_TOKENS
from transduce.text.placeholders import RESERVED
from transduce.text.tokenizer_files import TOKENIZER
from transduce.text.tokenizer_pair import TokenizerPair
from transduce.training.batches import TrainingBatches
from transduce.training.checkpoint import Checkpoints
from transduce.training.distributed import World
from transduce.training.trainer import Ending
from transduce.translator.translator import Translator

EOS = OWN_SPECIAL_TOKENS.end

SETTINGS: small_run.Settings = {"training.teacher_steps": 8, "data.source_language": "en", "data.target_language": "de"}


@pytest.fixture(autouse=True, scope="module")
def few_sentences_at_once() -> Iterator[None]:
    """Let the small corpus be translated in several parts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(translating, "_SENTENCES_AT_ONCE", 25)
        yield


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_run.write_text(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def run(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("with-teachers") / "run"
    small_run.train(corpus, output, settings=SETTINGS)
    return output


@pytest.mark.slow
def test_every_pair_becomes_three(run: Path) -> None:
    """The oracle is the teachers' models, loaded like any model, and the rule of the module's docstring."""
    given, found = TokenStore.open(run / "data/train"), TokenStore.open(run / "teachers/corpus")
    forward, backward = (
        Translator.load(run / "teachers" / direction, threads=1, precision="auto") for direction in DIRECTIONS
    )
    pairs = [given.text(number) for number in range(len(given))]
    search = teaching._SEARCH
    there = forward.translate_all([source for source, _ in pairs], search)
    back = backward.translate_all([target for _, target in pairs], search)
    expected = [
        *pairs,
        *((source, output.text) for (source, _), output in zip(pairs, there, strict=True)),
        *((output.text, target) for (_, target), output in zip(pairs, back, strict=True)),
    ]
    longest = max(given.source_lengths.max(), given.target_lengths.max())
    length = {text: len(forward.tokenizers.target.encode(text)) + 1 for pair in expected for text in pair}
    expected = [pair for pair in expected if all(text and length[text] <= longest for text in pair)]
    assert [found.text(number) for number in range(len(found))] == expected
    assert len(given) < len(found) <= 3 * len(given)
    for number in (0, len(given), len(found) - 1):
        source, target = found.text(number)
        assert found.source(number).tolist() == [*forward.tokenizers.target.encode(source), EOS]
        assert found.target(number).tolist() == [*forward.tokenizers.target.encode(target), EOS]


@pytest.mark.slow
def test_the_run_learns_from_all_of_them(run: Path, corpus: Path) -> None:
    """The oracle is the number of tokens in the first steps over each of the two stores."""
    settings = small_run.chosen(corpus, run, settings=SETTINGS).experiment.training
    state = Checkpoints(run / "checkpoints").all()[-1].state()
    tokenizers = TokenizerPair.read(run / "data" / TOKENIZER)

    def tokens_seen(store: TokenStore) -> int:
        batches = TrainingBatches(store, settings, tokenizers=tokenizers)
        steps = batches.steps(0)[: state.progress.step]
        dealt = (batch for step in steps for batch in batches.deal(step, epoch=0, rank=0, ranks=1))
        return sum(int((batch.target_BT != batch.padding).sum()) for batch in dealt)

    store = TokenStore.open(run / "teachers/corpus")
    assert state.identity["data.written_by_teachers"] == store.notes["written"]
    assert state.progress.tokens == tokens_seen(store) != tokens_seen(TokenStore.open(run / "data/train"))


@pytest.mark.slow
def test_stopped_again_and_again_it_ends_the_same(run: Path, corpus: Path, tmp_path: Path) -> None:
    output, stops, ending = tmp_path / "run", 0, Ending.STOPPED
    while ending is Ending.STOPPED:
        choice = small_run.chosen(corpus, output, settings=SETTINGS)
        with opened_run(choice, output, progress=Silent()) as one:
            ending = one.train(stop_requested=small_run.stop_after(4 + 2 * stops)).ending
        stops += 1
        assert stops < 30
    assert stops > 3
    assert not small_run.difference(output, small_run.fingerprint(run))


class Scene:
    """Teachers whose translations are already there, as a test says, with weights of no meaning."""

    def __init__(self, folder: Path, prepared: Prepared) -> None:
        self.folder, self.prepared, self.size = folder, prepared, translating._SENTENCES_AT_ONCE

    def write(self, direction: Direction, texts: Sequence[str]) -> None:
        model = self.folder / direction / "model" / WEIGHTS
        model.parent.mkdir(parents=True, exist_ok=True)
        model.write_bytes(b"weights")
        (self.folder / direction / "written").mkdir(exist_ok=True)
        for start in range(0, len(texts), self.size):
            part = Translations(
                model=hashlib.sha256(b"weights").hexdigest(),
                search=teaching._SEARCH,
                seconds=1.0,
                outputs=tuple((text,) if text else () for text in texts[start : start + self.size]),
            )
            self.file(direction, start).write_text(part.model_dump_json(), encoding="utf-8")

    def file(self, direction: Direction, start: int) -> Path:
        return self.folder / direction / "written" / f"{start:010d}.json"

    def corpus(self, **training: int) -> list[tuple[str, str]]:
        context = StageContext(World(), Silent())
        translations = {direction: self.translation(direction, context) for direction in DIRECTIONS}
        corpus = TeachersCorpus(experiment(**training), self.prepared, self.folder, translations, context)
        assert run_stages([*translations.values(), corpus], context=context, stop_requested=lambda: False) is None
        store = corpus.store()
        return [store.text(number) for number in range(len(store))]

    def translation(self, direction: Direction, context: StageContext) -> TranslationStage:
        return TranslationStage(
            name=f"the {direction} teacher translates",
            model=self.folder / direction / "model",  # which cannot be loaded
            store=(self.prepared if direction == "forward" else self.prepared.reversed()).train,
            search=teaching._SEARCH,
            folder=self.folder / direction,
            threads=1,
            needs=(),
            context=context,
        )


@pytest.fixture
def scene(tmp_path: Path, prepared: Prepared) -> Scene:
    scene = Scene(tmp_path / "teachers", prepared)
    scene.write("forward", [f"Nummer {number}." for number in range(len(prepared.train))])
    scene.write("backward", [f"Number {number}." for number in range(len(prepared.train))])
    return scene


def test_what_was_translated_is_not_translated_again(scene: Scene, prepared: Prepared) -> None:
    pairs = [prepared.train.text(number) for number in range(len(prepared.train))]
    assert len(pairs) > 3 * scene.size
    assert scene.corpus() == [
        *pairs,
        *((source, f"Nummer {number}.") for number, (source, _) in enumerate(pairs)),
        *((f"Number {number}.", target) for number, (_, target) in enumerate(pairs)),
    ]


def damaged(scene: Scene) -> None:
    scene.file("backward", scene.size).write_text("[", encoding="utf-8")


def short(scene: Scene) -> None:
    scene.write("backward", ["Number 0."])


def another_search(scene: Scene) -> None:
    file = scene.file("forward", 0)
    part = Translations.model_validate_json(file.read_bytes())
    other = part.model_copy(update={"search": part.search.model_copy(update={"beam": 6})})
    file.write_text(other.model_dump_json(), encoding="utf-8")


def another_model(scene: Scene) -> None:
    (scene.folder / "forward" / "model" / WEIGHTS).write_bytes(b"other weights")


@pytest.mark.parametrize("fault", [damaged, short, another_search, another_model])
def test_other_translations_are_not_taken_for_this_teachers(scene: Scene, fault: Callable[[Scene], None]) -> None:
    """They would be made again, and the model to make them with cannot be loaded."""
    fault(scene)
    with pytest.raises(ModelError):
        scene.corpus()


@pytest.mark.parametrize("changed", [{"seed": 2}, {"teacher_steps": 701}, {"warmup_steps": 17}])
def test_the_corpus_of_other_teachers_is_not_taken(scene: Scene, prepared: Prepared, changed: dict[str, int]) -> None:
    first = scene.corpus()
    scene.write("forward", ["Anders."] * len(prepared.train))
    assert scene.corpus() == first
    assert "Anders." in {target for _, target in scene.corpus(**changed)}


def test_placeholders_that_teachers_wrote_are_symbols_in_the_order_of_the_source(tmp_path: Path) -> None:
    zero, one = RESERVED[:2]
    rows = ["Put {a} into {b} now.\tTun Sie {a} nun in {b}.", "Write %s here.\tSchreiben Sie hier."]
    text = tmp_path / "placeholders.tsv"
    text.write_text("\n".join(rows * 30) + "\n", encoding="utf-8")
    settings = DataConfig(train=(str(text),), valid=(str(text),))
    prepared = prepare(settings, tmp_path / "data", vocabulary_size=300)
    sources = [prepared.train.text(number)[0] for number in range(len(prepared.train))]
    assert set(sources) == {f"Put {zero} into {one} now.", "Write %s here."}
    scene = Scene(tmp_path / "teachers", prepared)
    scene.write("forward", ["" if "Put" in source else "Hier %s." for source in sources])
    scene.write("backward", [f"Into {one} put {zero}." if "Put" in source else "" for source in sources])
    assert set(scene.corpus()) - {prepared.train.text(number) for number in range(len(prepared.train))} == {
        (f"Write {zero} here.", f"Hier {zero}."),
        (f"Into {zero} put {one}.", f"Tun Sie {one} nun in {zero}."),
    }


@pytest.fixture
def prepared(tmp_path: Path) -> Prepared:
    experiment = small_run.chosen(small_run.write_text(tmp_path / "text"), tmp_path / "run").experiment
    return prepare(experiment.data, tmp_path / "data", vocabulary_size=experiment.model.vocabulary_size)


def test_a_corpus_reversed(prepared: Prepared) -> None:
    there, back = prepared.reversed(), prepared.reversed().reversed()
    assert there.valid is not None
    assert prepared.valid is not None
    for number in range(len(prepared.train)):
        assert there.train.text(number) == prepared.train.text(number)[::-1]
        assert there.train.source(number).tolist() == prepared.train.target(number).tolist()
        assert there.train.target(number).tolist() == prepared.train.source(number).tolist()
        assert back.train.text(number) == prepared.train.text(number)
    assert there.valid.original(0) == prepared.valid.original(0)[::-1]
    assert there.train.source_lengths.tolist() == prepared.train.target_lengths.tolist()
    assert np.array_equal(back.train.source_hashes, prepared.train.source_hashes)
    assert not np.array_equal(there.train.source_hashes, prepared.train.source_hashes)
    assert there.report.splits["train"].source == prepared.report.splits["train"].target


def experiment(**training: object) -> ExperimentConfig:
    content = {
        "data": {"train": ["a.tsv"], "source_language": "en", "target_language": "de"},
        "training": {"teacher_steps": 700, "steps": 5_000, "seed": 3, "shortlist": 50, **training},
    }
    return validate_experiment(content, where="the test")


def test_a_teacher_is_the_same_experiment_with_its_own_steps_and_seed() -> None:
    whole = experiment(time="2h", epochs=9)
    forward, backward = (teacher(whole, direction) for direction in DIRECTIONS)
    assert forward.training.step_budget == backward.training.step_budget == 700
    assert (forward.training.time, forward.training.epochs, forward.training.teacher_steps) == (None, None, None)
    assert len({3, forward.training.seed, backward.training.seed}) == 3
    assert (forward.data.source_language, forward.data.target_language) == ("en", "de")
    assert (backward.data.source_language, backward.data.target_language) == ("de", "en")
    assert forward.model == backward.model == experiment().model
    # What may change between two starts has no part in which checkpoints become the teacher's model.
    other = experiment(
        checkpoint_every="10m", keep_checkpoints=9, average_last=9, validate_every=7, patience=2, best_by="bleu"
    )
    assert teacher(other, "forward").training == teacher(experiment(), "forward").training
    assert isinstance(forward.training.checkpoint_every, int)
    cosine = experiment(schedule="cosine", peak=1e-3, warmup_steps=100, decay_steps=5_000, steps=None)
    assert teacher(cosine, "forward").training.decay_steps == 700


@pytest.mark.parametrize(
    ("training", "message"),
    [
        ({"schedule": "cosine", "peak": 1e-3, "warmup_steps": 700, "decay_steps": 5_000}, "Give them more steps"),
        ({"start_from": "en-de"}, "teacher_steps and start_from exclude each other"),
    ],
)
def test_teachers_that_could_not_learn_are_refused(training: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        experiment(**training)


def test_what_teachers_cost_is_announced(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = []
    choices: tuple[small_run.Settings, ...] = ({}, SETTINGS)
    for settings in choices:
        output = tmp_path / str(len(settings))
        rarely = {**settings, "training.validate_every": 100}
        with opened_run(small_run.chosen(corpus, output, settings=rarely), output, progress=Silent()) as run:
            monkeypatch.setattr(estimate, "seconds_per_step", lambda trainer: 600.0)
            lines = list(announcement(run))
            disk.append(disk_bytes(run))
    assert small_run.SETTINGS["training.steps"] == 12
    assert any(line.startswith(f"about {(12 + 2 * 8) / 6:.1f} hours here at most") for line in lines)
    assert any(line.startswith("two teachers train first, 8 steps each, in ") for line in lines)
    assert disk[1] == 3 * disk[0]


@pytest.mark.slow
def test_the_backward_teacher_is_a_model_of_the_other_direction(run: Path) -> None:
    description = read_description(run / "teachers/backward/model")
    assert description.training["step"] == 8
    assert (description.languages.source, description.languages.target) == ("de", "en")
    assert (run / "teachers/backward/model/README.md").read_text(encoding="utf-8").startswith("# de → en")
    assert "train pairs with the teachers' translations" in (run / "model/README.md").read_text(encoding="utf-8")
    assert read_description(run / "model").training["step"] == small_run.SETTINGS["training.steps"]
