"""`transduce calibrate`: learns how far a model's translations can be trusted, from pairs it was not trained on."""

from typing import Annotated

import typer

from transduce.cli.options import Json, ModelName, Threads


def calibrate(
    model: ModelName,
    pairs: Annotated[
        str,
        typer.Argument(
            metavar="PAIRS",
            help="Sentences and their translations that the model was not trained on: two files with a comma between "
            "them, or one table.",
        ),
    ],
    check: Annotated[
        bool, typer.Option("--check", help="Measure the calibration that the model has on these pairs; write nothing.")
    ] = False,
    threads: Threads = None,
    json_output: Json = False,
) -> None:
    """Calibrate a model: write calibration.json into its directory.

    The calibration has the weights of the confidence (the estimated probability that a translation's chrF is at least
    60) and the words that stand in for placeholders. The table shows how right the confidence is, from the least to the
    most confident tenth; each half of the pairs is judged by a fit to the other.
    """
    import json

    from transduce.cli.loading import load_translator
    from transduce.data.formats import Corpus, Selection
    from transduce.errors import ConfigError
    from transduce.translator.calibrating import calibrate as fit
    from transduce.translator.calibrating import measured_deciles
    from transduce.translator.calibration import write_calibration

    translator = load_translator(model, precision="auto", threads=threads)
    selection = Selection(translator.languages.source, translator.languages.target)

    read = [(pair.source, pair.target) for pair in Corpus(pairs, selection).pairs() if not pair.skipped]
    if check:
        if translator.calibration is None or translator.calibration.confidence is None:
            raise ConfigError(f"{model} has no calibration to check. Leave out --check to make one.")
        rows, about = measured_deciles(translator, translator.calibration.confidence, read), "nothing is written"
    else:
        calibration = fit(translator, read)
        rows, about = calibration.deciles, f"written to {write_calibration(translator.models[0].folder, calibration)}"
    if json_output:
        typer.echo(json.dumps({"deciles": rows}))
        return
    typer.echo("tenth   confidence   chrF at least 60")
    for number, (confidence, share) in enumerate(rows, start=1):
        typer.echo(f"{number:>5} {confidence:>12.2f} {share:>18.2f}")
    typer.echo(f"largest difference {max(abs(a - b) for a, b in rows):.2f}; {about}")
