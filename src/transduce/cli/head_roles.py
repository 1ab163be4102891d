"""`transduce attention --corpus`: the best head of each role, and a page with an example of each."""

import json
from itertools import islice
from pathlib import Path

import typer

from transduce.data.formats import Corpus, Selection
from transduce.errors import DataError
from transduce.files import write_atomically
from transduce.inspection.head_roles import RankedHead, rank_heads
from transduce.inspection.page import attention_page
from transduce.translator import Translator
from transduce.translator.generating import require_language_model

MOST_PAIRS = 300
"""Pairs that are ranked on; each is one pass of the network."""


def show_roles(translator: Translator, corpus: str, output: Path, *, json_output: bool) -> None:
    """Rank the heads of a translator's model on the first pairs of a corpus, and write the page of examples."""
    require_language_model(translator.models[0], wanted=False)
    languages = translator.languages
    selection = Selection(languages.source, languages.target)
    texts = [(pair.source, pair.target) for pair in islice(Corpus(corpus, selection).pairs(), MOST_PAIRS)]
    encoded = translator.tokenizers.encode_pairs(texts)
    kept = [place for place, pair in enumerate(encoded) if max(map(len, pair)) <= translator.longest_sentence]
    if len(kept) < 2:
        raise DataError(f"{corpus} has {len(kept)} pairs of a length that the model knows; two are needed.")
    tokenizers = translator.tokenizers
    delimiters = {
        token
        for pair in encoded
        for tokenizer, ids in zip((tokenizers.source, tokenizers.target), pair, strict=True)
        for token in ids
        if not any(character.isalnum() for character in tokenizer.decode([token]))
    }
    network = translator.models[0].read_again().network()
    ranked = rank_heads(network, [encoded[place] for place in kept], delimiters=delimiters)
    if json_output:
        typer.echo(json.dumps([vars(one) for one in ranked]))
        return
    examples = list(dict.fromkeys(kept[one.best_example] for one in ranked))
    reports = [translator.attention(texts[place][0], target=texts[place][1], numbers=False) for place in examples]
    found = [_entry(one, examples.index(kept[one.best_example]) + 1) for one in ranked]
    write_atomically(output, attention_page([report.to_dictionary() for report in reports], roles=found))
    typer.echo(f"{'role':<42} {'head':>9} {'weight':>7} {'others':>7} {'even':>6}")
    for one in ranked:
        place = f"{one.layer + 1}.{one.head + 1}"
        row = f"{one.weight:>7.2f} {one.mean_of_others:>7.2f} {one.even_share:>6.2f}"
        typer.echo(f"{one.block + ': ' + one.role:<42} {place:>9} {row}")
    typer.echo(f"head is layer.head; weights are of the pairs that a head was not chosen on, of {len(kept):,} in all")
    typer.echo(f"wrote {output}: open it in a browser for an example of each")


def _entry(one: RankedHead, sentence: int) -> dict[str, object]:
    """Return a role for the page, with the address of its example."""
    address = f"#sentence={sentence}&view=head&stack={one.block}&layer={one.layer}&head={one.head}&heads={one.head}"
    text = f"{one.block}, {one.role}: layer {one.layer + 1}, head {one.head + 1}"
    return {"text": text, "weight": one.weight, "even": one.even_share, "address": address}
