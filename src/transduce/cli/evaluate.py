"""`transduce evaluate`: from a model, or from given output, to an honest number."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, cast

import typer

if TYPE_CHECKING:
    from transduce.data.formats import Selection
    from transduce.evaluation.record import EvaluationRecord
    from transduce.evaluation.reference_set import ReferenceSet
    from transduce.progress import Progress
    from transduce.translator.translator import WantedPrecision


def evaluate(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="[MODEL] [TEST]",
            help="A model directory or run, and the test set: two aligned files test.en,test.de or one .tsv, .csv, "
            ".jsonl, .po, .tmx or .xlf. A run alone is scored on the pairs it kept aside; with --hypotheses, TEST "
            "alone is enough.",
            show_default=False,
        ),
    ],
    reference: Annotated[
        list[Path] | None, typer.Option(help="Further references, one line for each sentence; repeatable.")
    ] = None,
    hypotheses: Annotated[Path | None, typer.Option(help="Score this output instead of translating.")] = None,
    compare: Annotated[
        str | None, typer.Option(metavar="OTHER", help="A model, run or file of output to test the difference from.")
    ] = None,
    protocol: Annotated[
        str, typer.Option(help="detokenised, paper (as the authors computed BLEU) or lowercased (as for Multi30k).")
    ] = "detokenised",
    source_language: Annotated[
        str | None, typer.Option("--from", help="Source language, such as en; the model's unless given.")
    ] = None,
    target_language: Annotated[
        str | None, typer.Option("--to", help="Target language, such as de; the model's unless given.")
    ] = None,
    beam: Annotated[int | None, typer.Option(help="Beam width; the model's setting unless given.")] = None,
    length_penalty: Annotated[
        float | None, typer.Option(help="Exponent of the length penalty; the model's setting unless given.")
    ] = None,
    shortlist: Annotated[
        bool | None, typer.Option(help="With each sentence's own shortlist or not; the model's setting unless given.")
    ] = None,
    consensus: Annotated[
        bool | None,
        typer.Option(help="Take what the hypotheses agree on, or the most probable; the model's setting unless given."),
    ] = None,
    precision: Annotated[str, typer.Option(help="auto, int8, bf16 or float32.")] = "float32",
    threads: Annotated[int | None, typer.Option(help="Threads to compute with; all cores unless given.")] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Write JSON for scripts.")] = False,
) -> None:
    """Score a model on a test set: BLEU, chrF2, TER, perplexity and speed. A record is kept beside the model."""
    from transduce.cli.terminal import terminal_progress
    from transduce.evaluation.record import write_evaluation

    model, test = _model_and_test(names, has_hypotheses=hypotheses is not None)
    settings = {"beam": beam, "length_penalty": length_penalty, "shortlist": shortlist, "consensus": consensus}
    options = _TranslationOptions(
        languages=(source_language, target_language),
        search={key: value for key, value in settings.items() if value is not None},
        precision=_precision(precision),
        threads=threads,
    )
    with terminal_progress() as progress:
        result = _evaluate(
            _EvaluationInput(model, test, reference=tuple(reference or ()), hypotheses=hypotheses, compare=compare),
            options,
            protocol_name=protocol,
            progress=progress,
        )
        folder = None
        if result.model_folder is not None:
            try:
                folder = write_evaluation(
                    result.model_folder,
                    result.record,
                    hypotheses=result.hypotheses,
                    references=result.test.references,
                )
            except OSError as fault:
                progress.warn(f"the record could not be written beside {result.model_folder} ({fault})")
    if json_output:
        typer.echo(_as_json(result.record, folder))
    else:
        _draw(result.record, folder)


class _EvaluationInput(NamedTuple):
    """What is to be scored on what."""

    model: str | None
    test: str | None
    """The run's own if unset."""
    reference: tuple[Path, ...]
    hypotheses: Path | None
    compare: str | None


class _TranslationOptions(NamedTuple):
    """How to translate."""

    languages: tuple[str | None, str | None]
    search: dict[str, float]
    precision: "WantedPrecision"
    threads: int | None


class _Result(NamedTuple):
    """What came out."""

    record: "EvaluationRecord"
    hypotheses: list[str]
    test: "ReferenceSet"
    model_folder: Path | None


def _model_and_test(names: list[str], *, has_hypotheses: bool) -> tuple[str | None, str | None]:
    from transduce.errors import ConfigError

    if len(names) == 2:
        return names[0], names[1]
    if len(names) == 1 and has_hypotheses:
        return None, names[0]
    if len(names) == 1 and Path(names[0]).is_dir():
        return names[0], None
    if len(names) == 1:
        raise ConfigError(
            f"Only {names[0]!r} was given. Name a model and a test set (transduce evaluate MODEL test.en,test.de), "
            "or a test set and --hypotheses output.txt."
        )
    raise ConfigError(
        f"{len(names)} names were given where a model and a test set are expected. Two aligned files are one name with "
        f"a comma: {names[-2]},{names[-1]}."
    )


def _precision(name: str) -> "WantedPrecision":
    from transduce.errors import ConfigError

    if name not in ("auto", "int8", "bf16", "float32"):
        raise ConfigError(f"There is no precision {name!r} here. There are: auto, int8, bf16, float32.")
    return cast("WantedPrecision", name)


def _evaluate(
    inputs: _EvaluationInput, options: _TranslationOptions, *, protocol_name: str, progress: "Progress"
) -> _Result:
    from transduce.cli.evaluated_model import open_model
    from transduce.data.formats import Selection
    from transduce.evaluation.evaluate import System
    from transduce.evaluation.evaluate import evaluate as evaluate_system
    from transduce.evaluation.protocols import protocol_named
    from transduce.evaluation.reference_set import read_hypotheses
    from transduce.evaluation.scores import lines_that_look_tokenised
    from transduce.evaluation.significance import SAMPLES, paired_bootstrap

    model = None
    if inputs.model is not None:
        model = open_model(inputs.model, search=options.search, precision=options.precision, threads=options.threads)
    source, target = options.languages
    if model is not None:
        source, target = source or model.languages.source, target or model.languages.target
    protocol = protocol_named(protocol_name, target_language=target)
    test = _test_set(inputs, Selection(source, target))
    if test.skipped:
        progress.note(f"{test.skipped:,} pairs that {test.name} marks as unfinished are left out")
    given = read_hypotheses(inputs.hypotheses, test) if inputs.hypotheses is not None else None
    system = model.system if model is not None else System(str(inputs.hypotheses))
    record, hypotheses = evaluate_system(system, test, protocol=protocol, hypotheses=given, progress=progress)
    if given is not None:
        record = record.model_copy(update={"system": str(inputs.hypotheses)})
        if protocol.name == "detokenised" and 2 * lines_that_look_tokenised(hypotheses) > len(hypotheses):
            progress.warn(
                f"most lines of {inputs.hypotheses} end in a full stop set apart: scores are meant for detokenised text"
            )
    if inputs.compare is not None:
        baseline = _output_of(inputs.compare, test, options, progress=progress)
        with progress.stage("comparing", unit="samples") as stage:
            differences = paired_bootstrap(baseline, hypotheses, test.references, protocol=protocol)
            stage.advance(SAMPLES)
        record = record.model_copy(update={"compared_with": inputs.compare, "differences": differences})
    # Given output is not the model's: kept beside the model, it would pass for the model's own.
    return _Result(record, hypotheses, test, model.folder if model is not None and given is None else None)


def _test_set(inputs: _EvaluationInput, selection: "Selection") -> "ReferenceSet":
    from transduce.errors import ConfigError
    from transduce.evaluation.reference_set import kept_aside_by, read_reference_set
    from transduce.model_directory import find_model

    if inputs.test is not None:
        return read_reference_set(inputs.test, selection=selection, more_references=inputs.reference)
    assert inputs.model is not None
    test = kept_aside_by(find_model(inputs.model).parent)
    if test is None:
        raise ConfigError(
            f"{inputs.model} kept no test pairs aside. Name a test set: transduce evaluate {inputs.model} "
            "test.en,test.de"
        )
    if inputs.reference:
        raise ConfigError("--reference adds to a test set that is named; name the one that it belongs to.")
    return test


def _output_of(name: str, test: "ReferenceSet", options: _TranslationOptions, *, progress: "Progress") -> list[str]:
    """Return a file's lines, or what a model makes of the test set."""
    from transduce.cli.evaluated_model import open_model
    from transduce.evaluation.evaluate import translate_test_set
    from transduce.evaluation.reference_set import read_hypotheses

    if Path(name).is_file():
        return read_hypotheses(Path(name), test)
    other = open_model(name, search=options.search, precision=options.precision, threads=options.threads)
    return translate_test_set(other.system, test.sources, progress=progress).hypotheses


def _as_json(record: "EvaluationRecord", folder: Path | None) -> str:
    import json

    content = {**json.loads(record.model_dump_json()), "folder": str(folder) if folder is not None else None}
    return json.dumps(content, indent=2, ensure_ascii=False)


def _draw(record: "EvaluationRecord", folder: Path | None) -> None:
    from rich.console import Console
    from rich.text import Text

    from transduce.cli.score_tables import draw_differences, draw_scores

    console = Console(highlight=False)
    console.print(Text(f"{record.system} on {record.test}: {record.sentences:,} sentences"), soft_wrap=True)
    draw_scores(console, record)
    if record.differences:
        draw_differences(console, record.differences, baseline=str(record.compared_with))
    if folder is not None:
        console.print(Text(f"record: {folder}"), soft_wrap=True)
