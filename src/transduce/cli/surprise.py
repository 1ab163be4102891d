"""The surprise of each token of a text under a language model, -log₂ p, as colours in the terminal and on a page.

A token that holds only some bytes of a character is shown as nothing, and the one that completes it as the character.
"""

import codecs
import html
import json
import math
import sys
from pathlib import Path

import typer

from transduce.data.formats.corpus_file import CorpusFile
from transduce.errors import shown
from transduce.files import write_atomically
from transduce.text.normalization import WORD_MARK
from transduce.translator import Translator
from transduce.translator.generating import encoded_texts

_SHADES = ((1.0, 254, "#ffffff"), (3.0, 229, "#fff3b0"), (6.0, 215, "#ffc36b"), (10.0, 209, "#ff8f5a"))
_STRONGEST = (math.inf, 203, "#f05a5a")
"""Bits up to which a shade is used, its number among the terminal's 256 colours, and its colour on the page."""


def show_surprise(translator: Translator, path: Path, *, json_output: bool, page: Path | None) -> None:
    """Print a text coloured by the surprise of its tokens, and its perplexity; write the page if a path is given."""
    text = "\n".join(CorpusFile(path).lines())
    found = translator.text_likelihood(text)
    tokens = list(zip(_written(translator, text), found.log_probabilities, strict=True))
    if page is not None:
        write_atomically(page, surprise_page(path.name, tokens))
    if json_output:
        rows = [{"text": token, "log_probability": value} for token, value in tokens]
        typer.echo(json.dumps({"log_probability": found.log_probability, "tokens": rows}, ensure_ascii=False))
    elif sys.stdout.isatty():
        typer.echo("".join(_painted(token, _shade(value)[1]) for token, value in tokens))
    else:
        typer.echo(" ".join(f"{json.dumps(token, ensure_ascii=False)}:{value:.4f}" for token, value in tokens))
    nats, count = -found.log_probability, max(1, len(tokens))
    bits = nats / math.log(2)
    characters = max(1, len(text))
    typer.echo(
        f"perplexity {math.exp(nats / count):.3f} per token, {bits / characters:.3f} bits per character, "
        f"{bits / max(1, len(text.encode())):.3f} per byte",
        err=True,
    )


def _written(translator: Translator, text: str) -> list[str]:
    """Return what each token of a text adds to it."""
    tokenizer, decoder = translator.tokenizers.target, codecs.getincrementaldecoder("utf-8")("replace")
    line_break = None if tokenizer.has_line_breaks else tokenizer.special.end
    return [
        "\n" if token == line_break else decoder.decode(tokenizer.written(token)).replace(WORD_MARK, " ")
        for ids in encoded_texts(translator.models[0], tokenizer, text)
        for token in ids[1:]
    ]


def _visible(token: str) -> str:
    """Return a token with a sign for a line break, which has no width to colour."""
    return token.replace("\n", "↵\n")


def _painted(token: str, colour: int) -> str:
    """Return a token on a colour; no line break is inside, which would colour the rest of the line."""
    lines = _visible(token).split("\n")
    return "\n".join(f"\x1b[48;5;{colour};30m{shown(line)}\x1b[0m" if line else "" for line in lines)


def _shade(log_probability: float) -> tuple[float, int, str]:
    bits = -log_probability / math.log(2)
    return next((shade for shade in _SHADES if bits <= shade[0]), _STRONGEST)


def surprise_page(name: str, tokens: list[tuple[str, float]]) -> bytes:
    """Return the page of a text: each token on the shade of its surprise, with a legend."""
    spans = "".join(
        f'<span style="background:{_shade(value)[2]}" title="{-value / math.log(2):.2f} bits">'
        f"{html.escape(_visible(token))}</span>"
        for token, value in tokens
    )
    title = html.escape(name)
    style = (
        "body{font:16px/1.6 system-ui,sans-serif;max-width:50em;margin:0 auto;padding:1em;color:#111;background:#fff}"
    )
    style += "pre{font:inherit;white-space:pre-wrap;overflow-wrap:anywhere}h1{overflow-wrap:anywhere}"
    style += "i{padding:0 .4em;font-style:normal}"
    # The shades are light in the dark too, and black text stays readable on them.
    style += "pre,i{color:#111}@media(prefers-color-scheme:dark){body{background:#15171a;color:#e6e6e3}}"
    head = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f'<meta name="color-scheme" content="light dark"><title>Surprise: {title}</title><style>{style}</style>'
    )
    legend = "".join(f'<i style="background:{colour}">≤ {bits:g}</i>' for bits, _, colour in _SHADES)
    legend += f'<i style="background:{_STRONGEST[2]}">&gt; {_SHADES[-1][0]:g}</i>'
    said = "The stronger the colour, the more a token surprises the model; point at it for its bits (-log₂ p)."
    return f"{head}<main><h1>{title}</h1><p>{said}</p><p>bits: {legend}</p><pre>{spans}</pre></main></html>\n".encode()
