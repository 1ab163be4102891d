"""`transduce settings`: every key that an experiment may set."""

from typing import TYPE_CHECKING, Annotated

import typer

from transduce.cli.options import Json

if TYPE_CHECKING:
    from transduce.experiment import Setting


def settings(
    key: Annotated[
        str | None, typer.Argument(help="A key such as training.steps, or a section; all unless given.")
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Write the page docs/settings.md.")] = False,
    json_output: Json = False,
) -> None:
    """List what an experiment can set: meaning, unit, default, and section of the paper."""
    import dataclasses
    import json

    from transduce.errors import ConfigError
    from transduce.experiment import nearest_key
    from transduce.experiment import settings as all_settings

    chosen = [s for s in all_settings() if key is None or s.key == key or s.key.startswith(f"{key}.")]
    if not chosen:
        raise ConfigError(f"There is no setting {key!r}{nearest_key(key or '')}. `transduce settings` lists all.")
    if json_output:
        typer.echo(json.dumps([dataclasses.asdict(setting) for setting in chosen], indent=2, ensure_ascii=False))
    elif markdown:
        typer.echo(_markdown(chosen), nl=False)
    else:
        for setting in chosen:
            typer.secho(setting.key, bold=True, nl=False)
            unit = f" [{setting.unit}]" if setting.unit else ""
            paper = f", section {setting.paper} of the paper" if setting.paper else ""
            kind = f" for kind = {setting.kind}" if setting.kind else ""
            typer.echo(f" = {setting.default}{unit}{kind}")
            typer.echo(_wrapped(f"{setting.meaning} ({setting.type}{paper})"))


def _wrapped(text: str) -> str:
    import shutil
    import textwrap

    width = min(shutil.get_terminal_size().columns, 100)
    return textwrap.fill(text, width=width, initial_indent="    ", subsequent_indent="    ")


def _markdown(chosen: "list[Setting]") -> str:
    lines = ["# Settings", "", "Made by `transduce settings --markdown`; a test keeps it true.", ""]
    section = None
    for setting in chosen:
        heading = f"[{setting.key.partition('.')[0]}]" + (f', kind = "{setting.kind}"' if setting.kind else "")
        if heading != section:
            section = heading
            lines += [f"## {section}", "", "| key | default | meaning | unit | paper |", "|---|---|---|---|---|"]
        meaning = f"{setting.meaning} ({setting.type})".replace("|", "\\|")
        lines.append(f"| `{setting.key}` | `{setting.default}` | {meaning} | {setting.unit} | {setting.paper} |")
    return "\n".join(lines) + "\n"
