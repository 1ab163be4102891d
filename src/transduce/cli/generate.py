"""`transduce generate`: writes text with a language model."""

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transduce.cli.options import ModelName, PrecisionOption, Threads

if TYPE_CHECKING:
    from collections.abc import Iterator

    from transduce.translator import Translator


def generate(
    model: ModelName,
    prompt: Annotated[str, typer.Option(help="The text to go on from; the beginning of a text unless given.")] = "",
    tokens: Annotated[int, typer.Option(min=1, help="The most tokens to write.")] = 200,
    temperature: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Below 1 the probable tokens are drawn more often; 0 always takes the most probable. [default: 0.8]",
        ),
    ] = None,
    top_k: Annotated[int | None, typer.Option(min=1, help="Draw only among this many most probable tokens.")] = None,
    top_p: Annotated[
        float | None, typer.Option(min=0, max=1, help="Draw only among the tokens that hold this share of probability.")
    ] = None,
    beam: Annotated[
        int | None,
        typer.Option(min=1, help="Write the most probable rest of the line, by a beam search of this width."),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="The same seed draws the same text. [default: 0]")] = None,
    stop: Annotated[list[str] | None, typer.Option(help="Stop before this text; repeatable.")] = None,
    interactive: Annotated[
        bool, typer.Option("--interactive", help="Read prompts from the terminal, one a line, until it ends.")
    ] = False,
    json_output: Annotated[bool, typer.Option("--json", help="Write one JSON object for each prompt.")] = False,
    precision: PrecisionOption = "auto",
    threads: Threads = None,
) -> None:
    """Write text with a language model, after a prompt; it appears as it is written."""
    from transduce.cli.loading import load_translator
    from transduce.errors import ConfigError

    if interactive and prompt:
        raise ConfigError("--interactive reads its prompts from the terminal. Leave out --prompt.")
    given: dict[str, Any] = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "beam": beam, "seed": seed}
    options = {"tokens": tokens, "stop": tuple(stop or ())}
    options |= {name: value for name, value in given.items() if value is not None}
    translator = load_translator(model, precision=precision, threads=threads)
    for each in _prompts() if interactive else [prompt]:
        _write(translator, each, options, json_output=json_output)


def _write(translator: "Translator", prompt: str, options: dict[str, Any], *, json_output: bool) -> None:
    if json_output:
        text = translator.generate(prompt, **options)
        typer.echo(json.dumps({"prompt": prompt, "text": text}, ensure_ascii=False))
        return
    parts = translator.stream(prompt, **options)
    typer.echo(prompt, nl=False)
    for part in parts:
        typer.echo(part, nl=False)
        sys.stdout.flush()
    typer.echo()


def _prompts() -> "Iterator[str]":
    while True:
        if sys.stdin.isatty():
            typer.echo("prompt> ", nl=False, err=True)
        line = sys.stdin.readline()
        if not line:
            return
        yield line.rstrip("\n")
