"""`transduce distill`: makes a small fast student of a large teacher."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from transduce.cli.options import Beam, Json, SourceLanguage, TargetLanguage, Threads
from transduce.cli.train import CORPUS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from transduce.pipeline.stages import RunStage, StageContext

TextFiles = Annotated[
    list[str], typer.Option("--text-file", help="Text, a sentence per line; repeatable, a pattern, perhaps compressed.")
]
RunFolder = Annotated[
    Path, typer.Option(help="The run directory; the same command continues there.", show_default=False)
]
ValidText = Annotated[list[str] | None, typer.Option("--valid", help="Validation text; part of --train unless given.")]
TestText = Annotated[
    list[str] | None, typer.Option("--test", help="Test text, to compare models; part of --train unless given.")
]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Set any key of a training; repeatable.")
]


def distill(
    text_file: TextFiles,
    output: RunFolder,
    teachers: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TEACHER]...", help="Models or runs; several are an ensemble.", show_default=False),
    ] = None,
    teacher_output: Annotated[
        list[str] | None,
        typer.Option(help="Translations of --text-file, line by line, from any system, in place of a TEACHER."),
    ] = None,
    train_text: Annotated[
        list[str] | None, typer.Option("--train", help=f"Real pairs to learn from as well: {CORPUS}")
    ] = None,
    valid_text: ValidText = None,
    test_text: TestText = None,
    reverse_model: Annotated[
        str | None, typer.Option(help="A model from target to source: scores pairs, and the worst are left out.")
    ] = None,
    drop_worst: Annotated[
        float, typer.Option(min=0.0, max=0.9, help="With --reverse-model: the share of pairs to leave out.")
    ] = 0.1,
    student: Annotated[Literal["small", "tiny"], typer.Option(help="The student's preset.")] = "small",
    decoder: Annotated[
        Literal["full", "shallow", "ssru"],
        typer.Option(help="The student's decoder: the preset's, one layer, or two layers of a recurrent unit."),
    ] = "ssru",
    beam: Beam = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    overrides: Settings = None,
    threads: Threads = None,
    json_output: Json = False,
) -> None:
    """Train a small fast student on what a teacher makes of text in one language.

    The teacher translates the text; the student learns the pairs, with a shortlist, and is compared with the teacher on
    test pairs. An interrupted command continues.
    """
    from transduce.cli.translate_parts import files_of
    from transduce.errors import ConfigError
    from transduce.model_directory import Languages, find_model, read_description
    from transduce.pipeline.command import request_of
    from transduce.pipeline.distilling import Distillation, distillation_stages

    if bool(teachers) == bool(teacher_output):
        raise ConfigError("Give a teacher, or --teacher-output FILE with its translations of the text.")
    known = read_description(find_model(teachers[0])).languages if teachers else Languages()
    asked = Distillation(
        text=files_of(text_file),
        real=request_of(overrides=overrides or (), training={"threads": threads}),
        corpora={"train": train_text or [], "valid": valid_text or [], "test": test_text or []},
        languages=(source_language or known.source, target_language or known.target),
        teachers=tuple(teachers or ()),
        teacher_output=files_of(teacher_output) if teacher_output else (),
        reverse_model=reverse_model,
        worst=drop_worst,
        student=student,
        decoder=decoder,
        beam=beam,
        threads=threads,
    )
    if not train_text and not test_text:
        typer.echo("transduce: without --train or --test the references are the teacher's own translations", err=True)
    models = {**({"teacher": teachers} if teachers else {}), "student": [str(output)]}
    run_and_compare(
        lambda context: distillation_stages(asked, output.absolute(), context),
        output,
        models,
        threads=threads,
        as_json=json_output,
    )


def run_and_compare(
    plan: "Callable[[StageContext], list[RunStage]]",
    output: Path,
    models: "Mapping[str, Sequence[str]]",
    *,
    threads: int | None,
    as_json: bool,
) -> None:
    """Run the stages that are not done, then show the models beside each other, the first as the baseline."""
    from transduce.cli.models_beside import draw, models_beside
    from transduce.cli.terminal import terminal_progress
    from transduce.extras import LEARNING, require
    from transduce.files import disk_faults_explained, require_place_for_folder
    from transduce.pipeline.stages import StageContext, run_stages
    from transduce.training.distributed import World
    from transduce.training.interruption import StopRequest, stopping_on_signals

    require(LEARNING, purpose="Training", extra="train")
    require_place_for_folder(output)
    stop = StopRequest()
    with terminal_progress() as progress, disk_faults_explained(output):
        context = StageContext(World(), progress)
        try:
            with stopping_on_signals(stop):
                stopped = run_stages(plan(context), context=context, stop_requested=lambda: bool(stop))
        except KeyboardInterrupt:
            raise typer.Exit(130) from None
        if stopped is not None:
            progress.note(f"stopped: {stopped.name}; everything so far is saved, and the same command continues")
            raise typer.Exit(128 + (stop.signal or 0))
        found = models_beside(output, models, threads=threads, progress=progress)
    if as_json:
        typer.echo(found, nl=False)
    else:
        draw(found)
        typer.echo(f'next: transduce translate {output} --text "…", or transduce serve {output}')
