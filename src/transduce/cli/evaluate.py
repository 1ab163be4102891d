"""`transduce evaluate`: scores a model, or given output, on a test set."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from transduce.cli.options import (
    Beam,
    Json,
    LengthPenalty,
    PrecisionName,
    PrecisionOption,
    SourceLanguage,
    TargetLanguage,
    Threads,
    UsesConsensus,
    UsesShortlist,
    given_options,
)

if TYPE_CHECKING:
    from transduce.data.formats import Selection
    from transduce.decoding.config import DecodingOptions
    from transduce.evaluation.record import EvaluationRecord
    from transduce.evaluation.reference_set import ReferenceSet
    from transduce.progress import Progress


def evaluate(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="[MODEL] [TEST]",
            help="A model directory, a run or a bundled model, and the test set: two aligned files test.en,test.de or "
            "one .tsv, .csv, .jsonl, .po, .tmx, .xlf or .ptb. Without TEST, a run is scored on its own test pairs. "
            "Without MODEL, give --hypotheses.",
            show_default=False,
        ),
    ],
    reference: Annotated[
        list[Path] | None, typer.Option(help="A file of further references, one per line; repeatable.")
    ] = None,
    hypotheses: Annotated[
        Path | None, typer.Option(help="Score the lines of this file instead of translating.")
    ] = None,
    compare: Annotated[
        str | None,
        typer.Option(
            metavar="OTHER", help="A model, run or file of output to compare with, with a test of significance."
        ),
    ] = None,
    protocol: Annotated[
        str,
        typer.Option(
            help="How BLEU is computed: detokenised, paper (as the authors did) or lowercased (as for Multi30k); "
            "parsing scores trees by their brackets, as EVALB does; the test set is then a .ptb or .mrg file."
        ),
    ] = "detokenised",
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    beam: Beam = None,
    length_penalty: LengthPenalty = None,
    shortlist: UsesShortlist = None,
    consensus: UsesConsensus = None,
    precision: PrecisionOption = "float32",
    threads: Threads = None,
    json_output: Json = False,
) -> None:
    """Score a model on a test set: BLEU, chrF2, TER, perplexity, speed. All are saved with the model if possible."""
    from transduce.cli.terminal import terminal_progress

    model, test = _model_and_test(names, has_hypotheses=hypotheses is not None)
    search = {"beam": beam, "length_penalty": length_penalty, "shortlist": shortlist, "consensus": consensus}
    request = _EvaluationRequest(
        model,
        test,
        references=tuple(reference or ()),
        hypotheses=hypotheses,
        compare=compare,
        protocol=protocol,
        languages=(source_language, target_language),
        search=given_options(search),
        precision=precision,
        threads=threads,
    )
    with terminal_progress() as progress:
        result = _evaluate(request, progress=progress)
        folder = _write_record(result, progress=progress)
    if json_output:
        typer.echo(_as_json(result.record, folder))
    else:
        _draw(result.record, folder)


class _EvaluationRequest(NamedTuple):
    """What to score, on which test set, and how to translate it."""

    model: str | None
    test: str | None
    """The run's own test pairs if None."""
    references: tuple[Path, ...]
    hypotheses: Path | None
    compare: str | None
    protocol: str
    languages: tuple[str | None, str | None]
    search: "DecodingOptions"
    precision: PrecisionName
    threads: int | None


class _Result(NamedTuple):
    """The scores of an evaluation, and what they were computed from."""

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


def _evaluate(request: _EvaluationRequest, *, progress: "Progress") -> _Result:
    from transduce.cli.evaluated_model import open_model
    from transduce.data.formats import Selection
    from transduce.evaluation.evaluate import System
    from transduce.evaluation.evaluate import evaluate as evaluate_system
    from transduce.evaluation.protocols import protocol_named
    from transduce.evaluation.reference_set import read_hypotheses
    from transduce.evaluation.scores import lines_that_look_tokenised
    from transduce.evaluation.significance import SAMPLES, paired_bootstrap

    model = None
    if request.model is not None:
        model = open_model(
            request.model,
            search=request.search,
            precision=request.precision,
            threads=request.threads,
            target=request.languages[1],
        )
    source, target = request.languages
    if model is not None:
        source, target = source or model.translator.languages.source, target or model.translator.languages.target
    protocol = protocol_named(request.protocol, target_language=target)
    test = _test_set(request, Selection(source, target, tree_keeps=("tags",) if protocol.name == "parsing" else ()))
    if test.skipped:
        progress.note(f"left out {test.skipped:,} pairs that {test.name} marks as unfinished")
    given = read_hypotheses(request.hypotheses, test) if request.hypotheses is not None else None
    system = model.system if model is not None else System(str(request.hypotheses))
    record, hypotheses = evaluate_system(system, test, protocol=protocol, hypotheses=given, progress=progress)
    if given is not None:
        record = record.model_copy(update={"system": str(request.hypotheses)})
        if protocol.name == "detokenised" and 2 * lines_that_look_tokenised(hypotheses) > len(hypotheses):
            progress.warn(
                f"most lines of {request.hypotheses} end in a space and a full stop, so they look tokenised; the "
                "scores are meant for detokenised text"
            )
    if request.compare is not None:
        baseline = _output_of(request.compare, test, request, progress=progress)
        with progress.stage("comparing", unit="samples") as stage:
            differences = paired_bootstrap(baseline, hypotheses, test.references, protocol=protocol)
            stage.advance(SAMPLES)
        record = record.model_copy(update={"compared_with": request.compare, "differences": differences})
    # Given output may come from another model, so its scores are not saved with this one.
    return _Result(
        record, hypotheses, test, model.translator.models[0].folder if model is not None and given is None else None
    )


def _test_set(request: _EvaluationRequest, selection: "Selection") -> "ReferenceSet":
    from transduce.errors import ConfigError
    from transduce.evaluation.reference_set import read_reference_set, test_set_of_run
    from transduce.model_directory import find_model

    if request.test is None and request.protocol == "parsing":
        raise ConfigError(
            f"The test pairs of a run have no tags. Name a treebank: transduce evaluate {request.model} x.ptb"
        )
    if request.test is not None:
        return read_reference_set(request.test, selection=selection, more_references=request.references)
    assert request.model is not None
    test = test_set_of_run(find_model(request.model).parent)
    if test is None:
        raise ConfigError(
            f"{request.model} has no test pairs of its own. Name a test set: transduce evaluate {request.model} "
            "test.en,test.de"
        )
    if request.references:
        raise ConfigError("--reference needs a test set. Name the test set after the model.")
    return test


def _output_of(name: str, test: "ReferenceSet", request: _EvaluationRequest, *, progress: "Progress") -> list[str]:
    """Return the lines of a file of output, or a model's translations of the test set."""
    from transduce.cli.evaluated_model import open_model
    from transduce.evaluation.evaluate import translate_test_set
    from transduce.evaluation.reference_set import read_hypotheses

    if Path(name).is_file():
        return read_hypotheses(Path(name), test)
    other = open_model(name, search=request.search, precision=request.precision, threads=request.threads)
    return translate_test_set(other.system, test.sources, progress=progress).hypotheses


def _write_record(result: _Result, *, progress: "Progress") -> Path | None:
    """Save the scores with the model that they belong to; return the folder."""
    from transduce.errors import RunError
    from transduce.evaluation.record import write_evaluation

    if result.model_folder is None:
        return None
    try:
        return write_evaluation(
            result.model_folder, result.record, hypotheses=result.hypotheses, references=result.test.references
        )
    except (OSError, RunError) as fault:
        progress.warn(f"the scores are not saved with the model. {fault}")
        return None


def _as_json(record: "EvaluationRecord", folder: Path | None) -> str:
    import json

    content = {**json.loads(record.model_dump_json()), "folder": str(folder) if folder is not None else None}
    return json.dumps(content, indent=2, ensure_ascii=False)


def _draw(record: "EvaluationRecord", folder: Path | None) -> None:
    from rich.text import Text

    from transduce.cli.score_tables import draw_differences, draw_scores
    from transduce.cli.terminal import SafeConsole

    console = SafeConsole(highlight=False)
    console.print(Text(f"{record.system} on {record.test}: {record.sentences:,} sentences"), soft_wrap=True)
    draw_scores(console, record)
    if record.differences:
        draw_differences(console, record.differences, baseline=str(record.compared_with))
    if folder is not None:
        console.print(Text(f"record: {folder}"), soft_wrap=True)
