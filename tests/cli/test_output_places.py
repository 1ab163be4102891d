"""Every command at output places that a user may name: missing, read-only, full, odd.

What the user can cure is one line and exit code 2, never a traceback; after a failure no empty or partial file is left.
"""

import os
import shutil
import stat
import sys
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.cli.conftest import SOURCES, TARGETS, make_model, write_lines
from tests.cli.forked_commands import Ended, ForkedCommands
from tests.importing.bert_folder import write_model as write_encoder
from tests.importing.marian_folder import write_folder
from tests.translator.test_generating import write_model

from transduce.cli.application import app

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="makes places as Linux does")

TRAINING = ("--train", "corpus.tsv", "--from", "en", "--to", "de", "--preset", "tiny", "--threads", "1")
SMALL = ("model.d_model=16", "model.heads=2", "model.d_ff=24", "model.layers=1", "model.vocabulary_size=320")
SHORT = ("training.steps=2", "training.checkpoint_every=1", "training.validate_every=2")
TRAIN = ("train", *TRAINING, *(word for key in (*SMALL, *SHORT) for word in ("--set", key)))
KEYS = tuple(word for key in (*SMALL, *SHORT) for word in ("--set", key))
HELD_OUT = ("--valid", "corpus.tsv", "--test", "corpus.tsv", "--threads", "1")
DISTILL = ("distill", "model", "--text-file", "new.txt", "--train", "corpus.tsv", "--student", "tiny", *HELD_OUT, *KEYS)
REVERSE = ("back-translate", "--reverse-model", "model", "--text-file", "new.txt", "--train", "corpus.tsv")
BACK_TRANSLATE = (*REVERSE, "--preset", "tiny", *HELD_OUT, *KEYS)
LEARN_TREES = (
    "train",
    "--train",
    "trees.ptb",
    "--valid",
    "trees.ptb",
    "--preset",
    "parsing",
    "--threads",
    "1",
    *tuple(word for key in (*SMALL[:-1], "model.vocabulary_size=330", *SHORT) for word in ("--set", key)),
)


class Output(NamedTuple):
    """A command with PLACE where it writes, and the option through which it is given."""

    option: str
    arguments: tuple[str, ...]
    ending: str = ""
    is_folder: bool = False


OUTPUTS: dict[str, tuple[Output, ...]] = {
    "demo": (
        Output("corpus_folder", ("demo", "--pairs", "5", "--write-corpus", "PLACE"), is_folder=True),
        Output("output", ("demo", "--output", "PLACE"), is_folder=True),
        Output("json_file", ("demo", "--json", "PLACE", "--output", "demo"), ending=".json"),
    ),
    "train": (
        Output("output", (*TRAIN, "--output", "PLACE"), is_folder=True),
        Output("write_experiment", ("train", "--preset", "tiny", "--write-experiment", "PLACE"), ending=".toml"),
    ),
    "translate": (
        Output("output", ("translate", "model", "text.txt", "--output", "PLACE", "--force"), ending=".txt"),
        Output("output", ("translate", "model", "text.po", "--output", "PLACE", "--force"), ending=".po"),
        Output("output", ("translate", "model", "text.txt", "--output", "PLACE", "--shard", "1/1"), is_folder=True),
    ),
    "merge": (Output("output", ("merge", "parts", "--output", "PLACE", "--force"), ending=".txt"),),
    "distill": (Output("output", (*DISTILL, "--output", "PLACE"), is_folder=True),),
    "back_translate": (Output("output", (*BACK_TRANSLATE, "--output", "PLACE"), is_folder=True),),
    "compare": (Output("html", ("compare", "run", "other_run", "--html", "PLACE"), ending=".html"),),
    "filter_corpus": (
        Output("output", ("filter", "corpus.tsv", "--output", "PLACE"), ending=".tsv"),
        Output("dropped", ("filter", "corpus.tsv", "--output", "clean.tsv", "--dropped", "PLACE"), ending=".tsv"),
        Output("report", ("filter", "corpus.tsv", "--output", "clean.tsv", "--report", "PLACE"), ending=".html"),
    ),
    "parse": (
        Output("output", ("parse", "trees", "--text", "a dog runs", "--output", "PLACE", "--force"), ending=".txt"),
    ),
    "likelihood": (Output("page", ("likelihood", "writer", "text.txt", "--page", "PLACE"), ending=".html"),),
    "attention": (Output("output", ("attention", "model", "it rains", "--output", "PLACE"), ending=".html"),),
    "learn": (Output("output", ("learn", "model", "--sentences", "one.txt", "--output", "PLACE"), ending=".html"),),
    "lessons": (Output("folder", ("lessons", "PLACE"), is_folder=True),),
    "import_model": (Output("destination", ("import", "marian", "PLACE"), is_folder=True),),
    "paper": (
        Output("output", ("paper", "claims", "--run", "--budget", "1s", "--output", "PLACE"), is_folder=True),
        Output("html", ("paper", "table3", "--html", "PLACE"), ending=".html"),
    ),
    "export": tuple(
        Output("destination", ("export", "model", "PLACE", "--format", name), ending=ending, is_folder=not ending)
        for name, ending in (("huggingface", ""), ("ctranslate2", ""), ("argos", ".argosmodel"), ("transduce", ""))
    ),
}
INPUTS = {("train", "experiment"), ("evaluate", "reference"), ("evaluate", "hypotheses"), ("compare", "runs")} | {
    ("attention", "glossary"),
    ("average", "run"),
    ("export", "card"),
    ("export", "samples"),
    ("import_model", "source"),
    ("learn", "sentences"),
    ("merge", "folder"),
    ("models", "folders"),
    ("serve", "api_key_file"),
    ("serve", "config"),
    ("serve", "glossary"),
    ("translate", "glossary"),
}
"""Paths that commands read. `average` writes into the run that it reads: a test below has read-only and full runs."""
STDOUT: dict[str, tuple[str, ...]] = {
    "demo": ("demo", "--pairs", "5", "--write-corpus", "corpus"),
    "train": ("train", "--preset", "tiny", "--write-experiment", "new.toml"),
    "distill": (*DISTILL, "--output", "student"),
    "back_translate": (*BACK_TRANSLATE, "--output", "better"),
    "average": ("average", "run"),
    "translate": ("translate", "model", "--text", "it rains"),
    "merge": ("merge", "parts", "--output", "merged.txt"),
    "evaluate": ("evaluate", "model", "corpus.tsv"),
    "compare": ("compare", "run", "other_run"),
    "calibrate": ("calibrate", "model", "corpus.tsv", "--check"),
    "likelihood": ("likelihood", "model", "corpus.tsv"),
    "filter_corpus": ("filter", "corpus.tsv", "--output", "clean.tsv"),
    "parse": ("parse", "trees", "--text", "a dog runs"),
    "generate": ("generate", "writer", "--tokens", "3"),
    "fill": ("fill", "encoder/model", "--text", "the [MASK] sat"),
    "embed": ("embed", "encoder/model", "--text", "the cat sat"),
    "learn": ("learn", "model", "--sentences", "one.txt", "--output", "learn.html"),
    "lessons": ("lessons", "notebooks"),
    "attention": ("attention", "model", "it rains", "--json"),
    "export": ("export", "model", "exported", "--format", "transduce"),
    "serve": (),
    "import_model": ("import", "marian", "imported"),
    "paper": ("paper", "table3"),
    "models": ("models", "."),
    "settings": ("settings",),
    "describe": ("describe", "tiny"),
    "system": ("system",),
}
WITHOUT_STDOUT = {"serve"}
"""The server goes on: its log has the address as well."""
LONG = {("demo", "output"), ("demo", "json_file"), ("paper", "output"), ("back_translate", "output")}
"""Outputs of work that takes half a minute: only places that the command refuses before it begins."""


@pytest.fixture(scope="module")
def commands() -> Iterator[ForkedCommands]:
    forked = ForkedCommands()
    yield forked
    forked.close()


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory, commands: ForkedCommands) -> Path:
    """A folder with a model, two runs, a corpus and texts; tests link to them and change nothing."""
    folder = tmp_path_factory.mktemp("prepared")
    make_model(folder / "model", seed=3, steps=0)
    write_lines(folder / "corpus.tsv", [f"{s}\t{t}" for s, t in zip(SOURCES, TARGETS, strict=True)] * 20)
    write_lines(folder / "text.txt", SOURCES)
    write_lines(folder / "new.txt", [f"the dog sings {n}" for n in range(20)])
    write_folder(folder / "marian")
    write_model(folder / "writer")
    (folder / "encoder").mkdir()
    write_encoder(folder / "encoder")
    write_lines(folder / "one.txt", SOURCES[:1])
    write_lines(folder / "trees.ptb", ["(S (NP (DT a) (NN dog)) (VP (VBZ runs)))"] * 20)
    trained = commands.run(*LEARN_TREES, "--output", "trees", folder=folder)
    assert trained.code == 0, trained.output
    write_lines(folder / "text.po", ['msgid ""', 'msgstr ""', "", 'msgid "it rains"', 'msgstr ""'])
    parts = commands.run("translate", "model", "text.txt", "--shard", "1/1", "--output", "parts", folder=folder)
    assert parts.code == 0, parts.output
    for run in ("run", "other_run"):
        trained = commands.run(*TRAIN, "--output", run, folder=folder)
        assert trained.code == 0, trained.output
    return folder


@pytest.fixture
def folder(prepared: Path, tmp_path: Path) -> Path:
    for entry in prepared.iterdir():
        (tmp_path / entry.name).symlink_to(entry)
    return tmp_path


def test_every_command_and_every_path_of_a_command_is_covered() -> None:
    functions = [command.callback for command in app.registered_commands if command.callback is not None]
    assert set(STDOUT) == {function.__name__ for function in functions}
    paths = {
        (function.__name__, name)
        for function in functions
        for name, kind in typing.get_type_hints(function).items()
        if "Path" in str(kind)
    }
    assert paths == INPUTS | {(name, output.option) for name, outputs in OUTPUTS.items() for output in outputs}


def every_output() -> list[object]:
    return [
        pytest.param(name, output, id=f"{name} {output.option}{output.ending}{' '.join(output.arguments[4:5])}")
        for name, outputs in OUTPUTS.items()
        for output in outputs
    ]


def run_at(commands: ForkedCommands, output: Output, place: Path, folder: Path, *, limit: int | None = None) -> Ended:
    arguments = [str(place) if word == "PLACE" else word for word in output.arguments]
    return commands.run(*arguments, folder=folder, largest_file=limit)


def require_refusal(ended: Ended) -> None:
    assert ended.code == 2, ended.output
    assert "Traceback" not in ended.output
    complaints = [line for line in ended.output.splitlines() if line.startswith("transduce: ")]
    assert len(complaints) == 1, ended.output
    assert ended.output.endswith(complaints[0] + "\n")


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock"}


@pytest.mark.parametrize(("name", "output"), every_output())
def test_a_place_that_takes_nothing_is_refused_in_one_line(
    name: str, output: Output, commands: ForkedCommands, folder: Path
) -> None:
    (folder / "read_only").mkdir(mode=0o555)
    (folder / "file").write_text("a file", encoding="utf-8")
    (folder / f"full{output.ending}").symlink_to("/dev/full")
    os.mkfifo(folder / f"fifo{output.ending}")
    (folder / f"folder{output.ending}").mkdir()
    os.link(folder / "file", folder / f"folder{output.ending}" / "something")
    before = files_of(folder)
    odd = ["full", "fifo", "file" if output.is_folder else "folder"]
    if output.ending == ".po":  # a document may go into a folder
        odd.remove("folder")
    for place in ("read_only/new", "file/new", "n" * 300, *odd):
        path = folder / (place + output.ending)
        require_refusal(run_at(commands, output, path, folder))
        assert files_of(folder) == before, place
    assert stat.S_ISFIFO((folder / f"fifo{output.ending}").stat().st_mode)


@pytest.mark.parametrize(("name", "output"), every_output())
def test_a_disk_without_space_is_one_line_and_leaves_nothing(
    name: str, output: Output, commands: ForkedCommands, folder: Path
) -> None:
    if (name, output.option) in LONG:
        pytest.skip("the work before it takes half a minute")
    before = files_of(folder)
    require_refusal(run_at(commands, output, folder / f"new{output.ending}", folder, limit=20))
    assert files_of(folder) == before


@pytest.mark.parametrize(("name", "output"), every_output())
def test_missing_folders_are_made_and_a_link_to_nothing_is_replaced(
    name: str, output: Output, commands: ForkedCommands, folder: Path
) -> None:
    if (name, output.option) in LONG:
        pytest.skip("the work before it takes half a minute")
    path = folder / "missing" / "deeper" / f"new{output.ending}"
    if not output.is_folder:
        path.parent.mkdir(parents=True)
        path.symlink_to(folder / "nothing")
        assert run_at(commands, output, path, folder).code == 0
        assert path.stat().st_size
        shutil.rmtree(folder / "missing")
    ended = run_at(commands, output, path, folder)
    assert ended.code == 0, ended.output
    assert path.is_dir() == output.is_folder
    assert all(file.stat().st_size for file in ([path] if path.is_file() else path.rglob("*.*")) if file.is_file())


@pytest.mark.parametrize("name", sorted(STDOUT.keys() - WITHOUT_STDOUT))
def test_a_full_disk_below_stdout_is_one_line(name: str, commands: ForkedCommands, folder: Path) -> None:
    require_refusal(commands.run(*STDOUT[name], folder=folder, stdout=Path("/dev/full")))


@pytest.mark.parametrize("how", ["read-only", "full"])
def test_scores_that_cannot_be_saved_are_printed(how: str, commands: ForkedCommands, tmp_path: Path) -> None:
    make_model(tmp_path / "model", seed=3, steps=0)
    write_lines(tmp_path / "test.tsv", [f"{s}\t{t}" for s, t in zip(SOURCES, TARGETS, strict=True)])
    if how == "read-only":
        tmp_path.chmod(0o555)
    ended = commands.run("evaluate", "model", "test.tsv", folder=tmp_path, largest_file=20 if how == "full" else None)
    tmp_path.chmod(0o755)
    assert ended.code == 0, ended.output
    assert "BLEU" in ended.output
    assert ended.output.count("warning: the scores are not saved with the model. ") == 1
    assert [path.name for path in tmp_path.glob("*evaluations/*")] == []


@pytest.mark.parametrize("how", ["read-only", "full"])
def test_a_model_that_cannot_take_a_calibration_keeps_its_own(
    how: str, commands: ForkedCommands, prepared: Path, tmp_path: Path
) -> None:
    model = Path(shutil.copytree(prepared / "model", tmp_path / "model"))
    (model / "calibration.json").write_text("{}", encoding="utf-8")
    before = files_of(tmp_path)
    if how == "read-only":
        model.chmod(0o555)
    pairs = prepared / "corpus.tsv"
    require_refusal(
        commands.run("calibrate", "model", pairs, folder=tmp_path, largest_file=20 if how == "full" else None)
    )
    model.chmod(0o755)
    assert files_of(tmp_path) == before


@pytest.mark.parametrize("how", ["read-only", "full"])
def test_a_run_that_cannot_be_averaged_keeps_its_model(
    how: str, commands: ForkedCommands, prepared: Path, tmp_path: Path
) -> None:
    shutil.copytree(prepared / "run", tmp_path / "run")
    before = files_of(tmp_path)
    if how == "read-only":
        (tmp_path / "run").chmod(0o555)
        (tmp_path / "run" / "run.lock").unlink(missing_ok=True)
    require_refusal(
        commands.run("average", "run", "--last", "1", folder=tmp_path, largest_file=20 if how == "full" else None)
    )
    assert files_of(tmp_path) == before
