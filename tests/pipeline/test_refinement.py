"""Minimum risk training as the last part of a run: its candidates, its settings, and that it can be stopped anywhere.

Kills are `tests/faults`'s; what its steps do to a network is `tests/training/test_risk.py`'s.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sacrebleu.metrics.bleu import BLEU
from tests.faults import small_run

from transduce.data.candidates import CandidateStore
from transduce.data.config import DataConfig
from transduce.data.preparation import Prepared, prepare
from transduce.data.token_store import TokenStore
from transduce.errors import ModelError, RunError
from transduce.experiment import ExperimentConfig, validate_experiment
from transduce.model_directory import WEIGHTS, load_model, read_description
from transduce.pipeline import estimate, writing
from transduce.pipeline.averaging import average_run
from transduce.pipeline.estimate import announcement, disk_bytes
from transduce.pipeline.refinement import Judge, Judging, last_part
from transduce.pipeline.run import opened_run
from transduce.pipeline.writing import Written
from transduce.progress import Silent
from transduce.text.placeholders import RESERVED
from transduce.text.tokenizer import EOS
from transduce.training.distributed import World
from transduce.training.trainer import Ending
from transduce.translator.translator import Translator

SETTINGS: small_run.Settings = {
    "training.risk_steps": 8,
    "training.risk_candidates": 3,
    "data.source_language": "en",
    "data.target_language": "de",
}


@pytest.fixture(autouse=True, scope="module")
def few_sentences_at_once() -> Iterator[None]:
    """Let the small corpus be translated in several parts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "_SENTENCES_AT_ONCE", 25)
        yield


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_run.write_text(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def run(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("with-risk") / "run"
    small_run.train(corpus, output, settings=SETTINGS)
    return output


def part_of(run: Path) -> Path:
    (folder,) = (run / "risk").iterdir()
    return folder


@pytest.mark.slow
def test_candidates_are_what_the_model_before_writes(run: Path) -> None:
    """The oracle is that model, loaded like any model, and sacrebleu."""
    given, found = TokenStore.open(run / "data/train"), CandidateStore(part_of(run) / "candidates")
    model = Translator.load(part_of(run) / "before", threads=1)
    sources, references = zip(*(given.text(number) for number in range(len(given))), strict=True)
    config = model.configure(beam=3, alternatives=3, length_penalty=1.2)
    longest = max(given.source_lengths.max(), given.target_lengths.max())
    bleu = BLEU(lowercase=True, smooth_method="add-k", smooth_value=1, effective_order=True)
    assert len(found) == len(given)
    for number, translation in enumerate(model.translate_all(list(sources), config)):
        expected = {}
        for alternative in translation.alternatives:
            ids = (*model.tokenizer.encode(alternative.text), EOS)
            if alternative.text and len(ids) <= longest:
                expected[ids] = bleu.sentence_score(alternative.text, [references[number]]).score / 100
        assert {tuple(ids.tolist()): reward for ids, reward in found.of(number)} == pytest.approx(expected, abs=1e-6)
    assert any(found.of(number) for number in range(len(found)))


@pytest.mark.slow
def test_the_run_ends_with_the_last_part_s_model(run: Path, corpus: Path, tmp_path: Path) -> None:
    before, own = load_model(part_of(run) / "before").parameters, load_model(run / "model").parameters
    last = load_model(part_of(run) / "model").parameters
    assert all(own[name].equal(tensor) for name, tensor in last.items())
    assert any(not own[name].equal(tensor) for name, tensor in before.items())
    assert read_description(part_of(run) / "before").training["step"] == 12
    assert read_description(run / "model").training["step"] == 20
    assert all(12 < step <= 20 for step in read_description(run / "model").training["averaged"])
    # Until then it is the run that it would be without that part.
    plain = {key: value for key, value in SETTINGS.items() if not key.startswith("training.")}
    small_run.train(corpus, tmp_path / "run", settings=plain)
    without = load_model(tmp_path / "run/model").parameters
    assert all(before[name].equal(tensor) for name, tensor in without.items())


@pytest.mark.slow
def test_a_run_that_has_ended_can_go_on_by_risk(run: Path, corpus: Path, tmp_path: Path) -> None:
    plain = {key: value for key, value in SETTINGS.items() if not key.startswith("training.")}
    small_run.train(corpus, tmp_path / "run", settings=plain)
    small_run.train(corpus, tmp_path / "run", settings=SETTINGS)
    expected = small_run.fingerprint(run)
    assert not small_run.difference(tmp_path / "run", expected)
    with pytest.raises(RunError, match="no average of these checkpoints"):
        average_run(tmp_path / "run", last=2)
    # Other settings are another part, which takes nothing from the first; set back, the first is taken again.
    small_run.train(corpus, tmp_path / "run", settings={**SETTINGS, "training.risk_steps": 9})
    assert read_description(tmp_path / "run/model").training["step"] == 12 + 9
    assert len(list((tmp_path / "run/risk").iterdir())) == 2
    small_run.train(corpus, tmp_path / "run", settings=SETTINGS)
    assert small_run.fingerprint(tmp_path / "run").items() >= expected.items()


@pytest.mark.slow
def test_a_run_extended_beyond_it_begins_that_part_anew(run: Path, corpus: Path, tmp_path: Path) -> None:
    longer = {**SETTINGS, "training.steps": 16}
    shutil.copytree(run, tmp_path / "extended")
    small_run.train(corpus, tmp_path / "extended", settings=longer)
    small_run.train(corpus, tmp_path / "at-once", settings=longer)
    own, wanted = (load_model(tmp_path / name / "model").parameters for name in ("extended", "at-once"))
    assert all(own[name].equal(tensor) for name, tensor in wanted.items())


@pytest.mark.slow
def test_the_finished_model_is_never_taken_back(run: Path, corpus: Path, tmp_path: Path) -> None:
    """Started again and stopped at any question, a run that has ended keeps its model."""
    shutil.copytree(run, tmp_path / "run")
    expected = (tmp_path / "run/model" / WEIGHTS).read_bytes()
    for calls in range(4):
        choice = small_run.chosen(corpus, tmp_path / "run", settings=SETTINGS)
        with opened_run(choice, tmp_path / "run", progress=Silent()) as one:
            one.train(stop_requested=small_run.stop_after(calls))
            assert (tmp_path / "run/model" / WEIGHTS).read_bytes() == expected


@pytest.mark.slow
def test_stopped_again_and_again_it_ends_the_same(run: Path, corpus: Path, tmp_path: Path) -> None:
    output, stops, ending = tmp_path / "run", 0, Ending.STOPPED
    while ending is Ending.STOPPED:
        choice = small_run.chosen(corpus, output, settings=SETTINGS)
        with opened_run(choice, output, progress=Silent()) as one:
            ending = one.train(stop_requested=small_run.stop_after(4 + 2 * stops)).outcome.ending
        stops += 1
        assert stops < 30
    assert stops > 3
    assert not small_run.difference(output, small_run.fingerprint(run))


class Scene:
    """A model that has written already what a test says, with weights of no meaning."""

    def __init__(self, folder: Path, prepared: Prepared) -> None:
        self.judging = Judging(
            prepared,
            folder,
            folder / "before",
            candidates=3,
            language="de",
            stop_requested=lambda: False,
            threads=1,
            world=World(),
            progress=Silent(),
        )

    def write(self, outputs: list[tuple[str, ...]]) -> None:
        weights = self.judging.model / WEIGHTS
        weights.parent.mkdir(parents=True, exist_ok=True)
        weights.write_bytes(b"weights")
        (self.judging.folder / "written").mkdir(exist_ok=True)
        for start in range(0, len(outputs), 25):
            part = Written(
                model=hashlib.sha256(b"weights").hexdigest(),
                search=self.judging.search,
                seconds=1.0,
                outputs=tuple(outputs[start : start + 25]),
            )
            self.file(start).write_text(part.model_dump_json(), encoding="utf-8")

    def file(self, start: int) -> Path:
        return self.judging.folder / "written" / f"{start:010d}.json"

    def texts(self, sentence: int) -> list[tuple[str, float]]:
        store = self.judging.judged()
        assert store is not None
        tokenizer = self.judging.prepared.tokenizer
        return [(tokenizer.decode(ids.tolist()[:-1]), reward) for ids, reward in store.of(sentence)]


@pytest.fixture
def prepared(tmp_path: Path) -> Prepared:
    zero = "Put {a} here.\tTun Sie {a} hierher."
    lacking = "See {b} there.\tSiehe dort."
    rows = [
        zero,
        lacking,
        "A dog runs fast.\tEin Hund rennt schnell.",
        "One.\tEins.",
        "Two.\tdurch rennen lernen nun, und hin.",
    ]
    text = tmp_path / "corpus.tsv"
    text.write_text("\n".join(rows * 20) + "\n", encoding="utf-8")
    settings = DataConfig(train=(str(text),), valid=(str(text),))
    return prepare(settings, tmp_path / "data", vocabulary_size=300)


@pytest.fixture
def scene(tmp_path: Path, prepared: Prepared) -> Scene:
    scene = Scene(tmp_path / "risk", prepared)
    of = {
        "Put": (f"Tun Sie hier {RESERVED[0]}.", f"Tun Sie {RESERVED[0]} hierher."),
        "A": ("ein hund rennt schnell.", "Ein Hund rennt schnell.", "Ein Hund."),
        "One.": ("Eins " * 60, "Eins.", "Eins."),
        "Two.": (),
        "See": ("Siehe {b} dort.", "Siehe dort."),
    }
    sources = [prepared.train.text(number)[0] for number in range(len(prepared.train))]
    scene.write([of[source.split()[0]] for source in sources])
    return scene


def test_rewards(scene: Scene, prepared: Prepared) -> None:
    """The reference is worth 1 in any case, half of it less, and what is longer than any sentence is left out."""
    by_first = {prepared.train.text(n)[0].split()[0]: n for n in range(len(prepared.train))}
    found = dict(scene.texts(by_first["A"]))
    assert found["ein hund rennt schnell."] == found["Ein Hund rennt schnell."] == pytest.approx(1.0)
    assert 0.0 < found["Ein Hund."] < 0.5
    assert dict(scene.texts(by_first["Put"]))[f"Tun Sie {RESERVED[0]} hierher."] == pytest.approx(1.0)
    assert [text for text, _ in scene.texts(by_first["One."])] == ["Eins."]
    assert [text for text, _ in scene.texts(by_first["See"])] == ["Siehe dort."]


def damaged(scene: Scene) -> None:
    scene.file(25).write_text("[", encoding="utf-8")


def another_model(scene: Scene) -> None:
    (scene.judging.model / WEIGHTS).write_bytes(b"other weights")


def more_candidates(scene: Scene) -> None:
    scene.judging = replace(scene.judging, candidates=4)


@pytest.mark.parametrize("fault", [damaged, another_model, more_candidates])
def test_what_is_not_this_model_s_is_written_anew(scene: Scene, fault: Callable[[Scene], None]) -> None:
    """Which is seen here by the model being asked for, and found to be none."""
    fault(scene)
    with pytest.raises(ModelError):
        scene.judging.judged()


@pytest.mark.parametrize("fault", [another_model, more_candidates])
def test_candidates_of_another_model_are_not_taken(scene: Scene, fault: Callable[[Scene], None]) -> None:
    assert scene.judging.judged() is not None
    fault(scene)
    with pytest.raises(ModelError):
        scene.judging.judged()


@pytest.mark.parametrize("name", ["candidates.values", "candidates.ends", "rewards.ends", "candidates.json"])
def test_candidates_that_were_cut_off_are_judged_anew(scene: Scene, name: str) -> None:
    first = scene.judging.judged()
    assert first is not None
    expected = [scene.texts(sentence) for sentence in range(3)]
    file = scene.judging.folder / "candidates" / name
    file.write_bytes(file.read_bytes()[: -(8 if name.endswith(".ends") else 4)])
    assert [scene.texts(sentence) for sentence in range(3)] == expected


@pytest.mark.parametrize(("language", "signs_are_words"), [("de", False), ("zh-Hans", True), (None, False)])
def test_what_counts_as_a_word_depends_on_the_language(language: str | None, *, signs_are_words: bool) -> None:
    """Four signs, of which the last two differ: no word is the same where signs are no words."""
    (reward,) = Judge(language).rewards(["我们去吧"], reference="我们走了")
    assert (reward > 0.0) == signs_are_words


def experiment(**training: object) -> ExperimentConfig:
    content = {
        "data": {"train": ["a.tsv"]},
        "training": {"risk_steps": 700, "steps": 5_000, "seed": 3, "shortlist": 50, **training},
    }
    return validate_experiment(content, where="the test")


def test_the_last_part_has_its_own_steps_rate_and_seed() -> None:
    whole = experiment(time="2h", epochs=9, teacher_steps=5_000, bpe_dropout=0.1, r_drop=1.0, risk_peak=1e-4)
    part = last_part(whole).training
    assert (part.schedule, part.peak, part.step_budget) == ("cosine", 1e-4, 700)
    assert (part.time, part.epochs, part.teacher_steps, part.risk_steps, part.bpe_dropout) == (None,) * 4 + (0.0,)
    assert (part.r_drop, part.shortlist, part.best_by) == (0.0, 0, "bleu")
    assert part.seed != whole.training.seed
    assert last_part(whole).model == whole.model
    # What may change between two starts has no part in which checkpoints become the model.
    other = experiment(checkpoint_every="10m", keep_checkpoints=9, average_last=9, validate_every=7, patience=2)
    assert last_part(other).training == last_part(experiment()).training
    assert isinstance(part.checkpoint_every, int)
    json.dumps(part.trajectory())


def test_what_it_costs_is_announced(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = []
    monkeypatch.setattr(estimate, "seconds_per_step", lambda run: 600.0)
    choices: tuple[small_run.Settings, ...] = ({}, SETTINGS)
    for settings in choices:
        output = tmp_path / str(len(settings))
        with opened_run(small_run.chosen(corpus, output, settings=settings), output, progress=Silent()) as run:
            lines = list(announcement(run))
            disk.append(disk_bytes(run))
    assert any(line.startswith(f"about {(12 + 8) / 6:.1f} hours here at most") for line in lines)
    assert any(line.startswith("minimum risk training comes last, 8 steps over 3 translations") for line in lines)
    assert disk[1] == 2 * disk[0]
