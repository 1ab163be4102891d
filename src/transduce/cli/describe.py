"""`transduce describe`: shows the parameters, arithmetic and memory of a preset, a model or an experiment."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transduce.cli.options import Json

if TYPE_CHECKING:
    from transduce.networks.config import NetworkConfig
    from transduce.training.config import TrainingConfig


def describe(
    what: Annotated[
        str,
        typer.Argument(
            metavar="PRESET|MODEL|FILE", help="A preset such as base, a model directory, or an experiment file."
        ),
    ],
    vocabulary: Annotated[int | None, typer.Option(help="Vocabulary size instead of the configured one.")] = None,
    length: Annotated[int, typer.Option(help="Sentence length in tokens for which to count the arithmetic.")] = 25,
    json_output: Json = False,
) -> None:
    """Show the parameters, arithmetic, memory and default precision of a preset, a model or an experiment."""
    import json

    facts = _gather(what, vocabulary=vocabulary, length=length)
    if json_output:
        typer.echo(json.dumps(facts, indent=2, ensure_ascii=False))
    else:
        _draw(facts)


def _gather(what: str, *, vocabulary: int | None, length: int) -> dict[str, Any]:
    from transduce.architectures import is_text_encoder
    from transduce.engine import choose_precision
    from transduce.networks import cost

    config, training = _described(what)
    if vocabulary is not None:
        config = config.model_copy(update={"vocabulary_size": vocabulary})
    pair = config.cost(length, length)
    facts: dict[str, Any] = {
        "name": what,
        "architecture": config.model_dump(mode="json"),
        "parameters": {"total": cost.parameter_count(config), "by_part": cost.parameters_by_part(config)},
        "operations_per_token": {
            "length": length,
            "forward": pair.forward // length,
            "training": pair.training // length,
            "by_part": {part: operations // length for part, operations in pair.operations.items()},
            "sequential_steps": pair.sequential_steps,
            "path_length": pair.path_length,
        },
        "memory_bytes": {
            "translation_float32": cost.translation_memory(config),
            "translation_int8": cost.translation_memory(config, bytes_per_weight=1),
        },
    }
    if not is_text_encoder(config):
        facts["automatic_precision"] = choose_precision("auto", [config])
    if training is not None:
        tokens = training.micro_batch_tokens or training.batch_tokens
        facts["memory_bytes"]["training"] = cost.training_memory(config, tokens=tokens)
        facts["memory_bytes"]["training_tokens_at_once"] = tokens
        if training.steps is not None:
            facts["schedule"] = {
                "steps": training.steps,
                "batch_tokens": training.batch_tokens,
                "operations": pair.training // length * training.steps * training.batch_tokens,
            }
    if what in TABLE_2:
        facts["paper"] = TABLE_2[what]
    return facts


def _described(what: str) -> "tuple[NetworkConfig, TrainingConfig | None]":
    """Return the architecture of a preset, model or experiment file, and its training settings unless it is a model."""
    from transduce.experiment import resolve_experiment
    from transduce.model_directory import bundled_models, find_model, read_description

    if Path(what).is_dir() or what in bundled_models():
        return read_description(find_model(what)).architecture, None
    experiment = resolve_experiment(Path(what)) if Path(what).is_file() else resolve_experiment(preset=what)
    return experiment.model, experiment.training


# The training cost in Table 2 and how the paper estimates it: hours x GPUs x the sustained rate assumed for a P100.
TABLE_2: dict[str, dict[str, Any]] = {
    "base": {"operations": 3.3e18, "estimate": "12 hours x 8 GPUs x 9.5 TFLOP/s", "parameters_millions": 65},
    "big": {"operations": 2.3e19, "estimate": "3.5 days x 8 GPUs x 9.5 TFLOP/s", "parameters_millions": 213},
}


def _draw(facts: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    parameters, operations, memory = facts["parameters"], facts["operations_per_token"], facts["memory_bytes"]
    table = Table(title=f"{facts['name']}: {parameters['total']:,} parameters", title_justify="left", box=None)
    table.add_column("part")
    table.add_column("parameters", justify="right")
    for part, count in parameters["by_part"].items():
        table.add_row(part, f"{count:,}")
    table.add_row("all", f"{parameters['total']:,}", style="bold")
    console.print(table)
    console.print(
        f"\nArithmetic for one source and one target token (sentences of {operations['length']} tokens): "
        f"{operations['forward'] / 1e6:,.1f} MFLOP to predict, {operations['training'] / 1e6:,.1f} MFLOP to train."
    )
    if "schedule" in facts:
        schedule = facts["schedule"]
        console.print(
            f"Training for {schedule['steps']:,} steps of {schedule['batch_tokens']:,} tokens: "
            f"{schedule['operations']:.2e} FLOP."
        )
    if "paper" in facts:
        paper = facts["paper"]
        console.print(
            f"The paper's Table 2 says {paper['operations']:.1e}, estimated as {paper['estimate']}. This "
            "counts what the GPUs can compute in that time, not what the model needs."
        )
    mib = {name: size / 2**20 for name, size in memory.items() if name != "training_tokens_at_once"}
    console.print(
        f"Memory: {mib['translation_float32']:,.0f} MiB of weights to translate in float32, "
        f"{mib['translation_int8']:,.0f} MiB in int8"
        + (
            f"; about {mib['training']:,.0f} MiB to train with {memory['training_tokens_at_once']:,} tokens at once."
            if "training" in mib
            else "."
        )
    )
    if "automatic_precision" in facts:
        console.print(f"On this machine `--precision auto` computes in {facts['automatic_precision']}.")
