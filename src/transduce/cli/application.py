"""The typer application: all commands, in the order in which a user needs them."""

from typing import Annotated

import typer

from transduce.cli.attention import attention
from transduce.cli.average import average
from transduce.cli.back_translate import back_translate
from transduce.cli.calibrate import calibrate
from transduce.cli.compare import compare
from transduce.cli.demo import demo
from transduce.cli.describe import describe
from transduce.cli.distill import distill
from transduce.cli.embed import embed
from transduce.cli.evaluate import evaluate
from transduce.cli.export import export
from transduce.cli.fill import fill
from transduce.cli.filter_corpus import filter_corpus
from transduce.cli.generate import generate
from transduce.cli.import_model import import_model
from transduce.cli.learn import learn
from transduce.cli.likelihood import likelihood
from transduce.cli.merge import merge
from transduce.cli.models import models
from transduce.cli.paper import paper
from transduce.cli.parse import parse
from transduce.cli.serve import serve
from transduce.cli.settings import settings
from transduce.cli.system import system
from transduce.cli.train import train
from transduce.cli.translate import translate
from transduce.version import __version__

app = typer.Typer(
    name="transduce",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # rich would give the help texts only a quarter of 80 columns
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"transduce {__version__}")
        raise typer.Exit


@app.callback()
def transduce(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Train, translate with, score and inspect the Transformer of "Attention Is All You Need"."""


app.command()(demo)
app.command()(train)
app.command()(distill)
app.command("back-translate")(back_translate)
app.command()(average)
app.command("filter")(filter_corpus)
app.command()(translate)
app.command()(merge)
app.command()(generate)
app.command()(evaluate)
app.command()(compare)
app.command()(calibrate)
app.command()(likelihood)
app.command()(parse)
app.command()(attention)
app.command()(fill)
app.command()(embed)
app.command()(learn)
app.command("import")(import_model)
app.command()(export)
app.command()(serve)
app.command()(models)
app.command()(settings)
app.command()(describe)
app.command()(paper)
app.command()(system)
