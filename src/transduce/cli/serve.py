"""`transduce serve`: runs the translation server."""

import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from transduce.cli.options import PrecisionName, TermsMode, Threads


def serve(
    models: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MODEL]...", help="Model directories, runs, or bundled names; all bundled models unless given."
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(help="A TOML file of these options, such as port = 8000.", envvar="TRANSDUCE_SERVE_CONFIG"),
    ] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.  [default: 127.0.0.1]")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on; 0 picks a free port.  [default: 8000]")] = None,
    api_key_file: Annotated[
        Path | None, typer.Option(help="A file of API keys, one per line; read again on SIGHUP.")
    ] = None,
    allow_anonymous: Annotated[
        bool, typer.Option("--allow-anonymous", help="Listen on an address other than loopback without keys.")
    ] = False,
    allowed_host: Annotated[list[str] | None, typer.Option(help="A host name that requests may use.")] = None,
    allowed_origin: Annotated[
        list[str] | None, typer.Option(help="An origin whose web pages may call the API.")
    ] = None,
    root_path: Annotated[str | None, typer.Option(help="Path under which a proxy publishes the server.")] = None,
    trusted_proxy: Annotated[
        list[str] | None, typer.Option(help="Address of a proxy whose X-Forwarded headers are trusted.")
    ] = None,
    threads: Threads = None,
    precision: Annotated[
        PrecisionName | None,
        typer.Option(help="Number format of the computation.  [default: auto]"),
    ] = None,
    glossary: Annotated[
        Path | None, typer.Option(help="A file of terms and their translations, in two columns; read again on SIGHUP.")
    ] = None,
    terms: Annotated[
        TermsMode | None,
        typer.Option(help="How strictly to apply the glossary, as in translate.  [default: enforced]"),
    ] = None,
    memory_limit: Annotated[
        int | None,
        typer.Option(
            help="Most memory of the model process; models that do not fit together are loaded on demand. [MB]"
        ),
    ] = None,
    load_seconds: Annotated[
        float | None, typer.Option(help="Time limit for loading the models.  [default: 120]")
    ] = None,
    request_seconds: Annotated[float | None, typer.Option(help="Time limit of a request.  [default: 30]")] = None,
    stop_seconds: Annotated[float | None, typer.Option(help="Time limit for a shutdown.  [default: 30]")] = None,
    body_limit: Annotated[int | None, typer.Option(help="Largest request body. [bytes]  [default: 1048576]")] = None,
    character_limit: Annotated[int | None, typer.Option(help="Most characters in a request.  [default: 5000]")] = None,
    file_character_limit: Annotated[
        int | None, typer.Option(help="Most characters to translate in a file.  [default: 100000]")
    ] = None,
    file_seconds: Annotated[float | None, typer.Option(help="Time limit of a file.  [default: 300]")] = None,
    document_seconds: Annotated[
        int | None, typer.Option(help="Most processor time for reading a file. [seconds]  [default: 20]")
    ] = None,
    document_memory: Annotated[
        int | None, typer.Option(help="Most memory for reading a file. [MB]  [default: 512]")
    ] = None,
    text_limit: Annotated[int | None, typer.Option(help="Most texts in a request.  [default: 64]")] = None,
    alternative_limit: Annotated[int | None, typer.Option(help="Most outputs per text.  [default: 8]")] = None,
    connection_limit: Annotated[
        int | None, typer.Option(help="Most simultaneous connections.  [default: 1024]")
    ] = None,
    queue_limit: Annotated[int | None, typer.Option(help="Most texts in the queue.  [default: 256]")] = None,
    batch_tokens: Annotated[
        int | None, typer.Option(help="Padded tokens per batch; 1: no batching.  [default: 1024]")
    ] = None,
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"] | None,
        typer.Option(help="Least severe level to log.  [default: info]"),
    ] = None,
) -> None:
    """Run a translation server: a web page, LibreTranslate's API and a native one. Ctrl-C stops it.

    Only this machine can connect unless you set --host. Every option can also be set in the environment, such as
    TRANSDUCE_SERVE_PORT=8000, or in a TOML file.
    """
    given = {**locals(), "allow_anonymous": allow_anonymous or None, "models": models or None}
    flags = {name: value for name, value in given.items() if value not in (None, []) and name != "config"}
    from transduce.extras import SERVING, require

    require(SERVING, purpose="Serving", extra="serve")
    from transduce.model_directory import bundled_models
    from transduce.serving.config import gather_options, read_options
    from transduce.serving.server import serve as run_server

    file = {"models": list(bundled_models()), **(read_options(config) if config is not None else {})}
    run_server(
        gather_options(file=file, environment=os.environ, flags=flags),
        announce=lambda address: typer.echo(f"serving on {address} (Ctrl-C stops)"),
    )
