"""`transduce demo`: trains, scores and inspects a Transformer in four minutes, on a bundled corpus."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transduce.cli.options import Threads

if TYPE_CHECKING:
    from transduce.demo.demonstration import Demonstration


def demo(
    output: Annotated[
        Path, typer.Option(help="The folder of the demonstration; run the command again to continue.")
    ] = Path("runs/demo"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Run all stages in half a minute; the scores are poor.")
    ] = False,
    language_model: Annotated[
        bool, typer.Option("--language-model", help="Train a language model on the English side, and write with it.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the training; the corpus is always the same.")] = 1,
    threads: Threads = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write scores and times as JSON to this file.")
    ] = None,
    corpus_folder: Annotated[
        Path | None,
        typer.Option("--write-corpus", metavar="DIR", help="Only write the bundled corpus to DIR."),
    ] = None,
    pairs: Annotated[
        int, typer.Option(min=1, max=60_000, help="With --write-corpus: number of training pairs.")
    ] = 60_000,
) -> None:
    """Train a Transformer on a bundled corpus, score it, translate with it, and show its attention."""
    from transduce.cli.terminal import terminal_progress
    from transduce.files import require_place_for_file, require_place_for_folder, write_atomically

    if corpus_folder is not None:
        from transduce.demo import write_corpus

        require_place_for_folder(corpus_folder)
        write_corpus(corpus_folder, pairs=pairs)
        typer.echo(f"wrote train, valid, test, test_combinations and test_long as .tsv into {corpus_folder}")
        return
    from transduce.demo.demonstration import FULL, QUICK, demonstrate, demonstrate_writing
    from transduce.training.interruption import stopping_on_signals

    kind = ("-language-model" if language_model else "") + ("-quick" if quick else "")
    output = output.with_name(f"{output.name}{kind}")
    require_place_for_folder(output)
    if json_file is not None:
        require_place_for_file(json_file)
    with terminal_progress() as progress, stopping_on_signals() as stop:
        try:
            shown = (demonstrate_writing if language_model else demonstrate)(
                output,
                QUICK if quick else FULL,
                seed=seed,
                threads=threads,
                progress=progress,
                stop_requested=lambda: bool(stop),
            )
        except KeyboardInterrupt:
            progress.note("stopped; the work saved so far is kept. Run the same command to continue.")
            raise typer.Exit(130) from None
        if shown.was_stopped:
            progress.note("stopped and saved. Run the same command to continue.")
            raise typer.Exit(128 + (stop.signal or 2))
    (_show_writing if language_model else _show)(shown)
    if json_file is not None:
        write_atomically(json_file, shown.to_json())


def _show_writing(shown: "Demonstration") -> None:
    bits = "" if shown.bits_per_character is None else f" ({shown.bits_per_character:.3f} bits per character)"
    typer.echo(f"\nWhat the model writes after the first words of new sentences{bits}:")
    for begun, rest in shown.written:
        typer.echo(f"  {begun} …{rest}")
    folder = shown.folder
    typer.echo(f"\nattention of the first: {folder / 'attention.html'}; curves: {folder / 'report.html'}\nNext:")
    typer.echo(f'  transduce generate {folder} --prompt "{shown.written[0][0]}"')
    typer.echo("  transduce train --text-file mine.txt --output runs/mine")


def _show(shown: "Demonstration") -> None:
    from rich.console import Console
    from rich.table import Table

    from transduce.demo.demonstration import MEANINGS

    console = Console()
    table = Table(title="\nScores of the trained model", title_justify="left", box=None)
    table.add_column("")
    table.add_column("BLEU", justify="right")
    table.add_column("exact", justify="right")
    for name, score in shown.scores.items():
        table.add_row(MEANINGS[name], f"{score['bleu']:.1f}", f"{100 * score['exact']:.1f} %")
    console.print(table)
    console.print("\nNew sentences:", style="bold")
    for english, ours, reference in shown.examples:
        mark = "" if ours == reference else f"\n  [dim](the grammar says: {reference})[/dim]"
        console.print(f"  {english}\n  → {ours}{mark}", highlight=False)
    times = ", ".join(f"{stage} {seconds:.0f} s" for stage, seconds in shown.seconds.items())
    console.print(f"\n{times}; {sum(shown.seconds.values()):.0f} s in total", highlight=False)
    folder = shown.folder
    console.print("\nFiles", style="bold")
    for what, path in (("model", "model"), ("report", "report.html"), ("attention", "attention.html")):
        console.print(f"  {what:10} {folder / path}", highlight=False)
    console.print("\nNext", style="bold")
    for line in (
        "transduce train --train mine.tsv --from en --to de --output runs/mine",
        f'transduce translate {folder} --text "{shown.examples[1][0]}"',
        f'transduce attention {folder} "{shown.examples[2][0]}"',
    ):
        console.print(f"  {line}", highlight=False, soft_wrap=True)
