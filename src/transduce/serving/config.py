"""The server's options, from flags, environment variables (TRANSDUCE_SERVE_NAME) and a TOML file, in that precedence.

The defaults are safe: only this machine can connect, and everything that a request can ask for has a limit.
"""

import difflib
import ipaddress
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field, NonNegativeFloat, PositiveFloat, PositiveInt, ValidationError, model_validator

from transduce.errors import ConfigError, TransduceError
from transduce.model_directory import find_model, read_description

ENVIRONMENT_PREFIX = "TRANSDUCE_SERVE_"
_LISTS = {"models", "allowed_host", "allowed_origin", "trusted_proxy"}


class ServingConfig(BaseModel, frozen=True, extra="forbid", use_attribute_docstrings=True):
    """All options of `transduce serve`."""

    models: Annotated[tuple[str, ...], Field(min_length=1)]
    """Model directories, runs or bundled names. A pair of languages uses its first model unless a request names one."""
    host: str = "127.0.0.1"
    """Address to listen on. Any but a loopback address needs `api_key_file` or `allow_anonymous`."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    """Port to listen on; 0 picks a free port and logs it."""
    api_key_file: Path | None = None
    """A file of API keys, one per line; each key opens every route. Read again on SIGHUP."""
    allow_anonymous: bool = False
    """Listen on an address other than loopback without keys."""
    allowed_host: tuple[str, ...] = ()
    """Host names that requests may use, besides localhost and IP addresses."""
    allowed_origin: tuple[str, ...] = ()
    """Origins of web pages that may call the API from a browser, such as https://cms.example.org."""
    root_path: Annotated[str, Field(pattern=r"^(/[\w.~-]+)*$")] = ""
    """Path under which a proxy publishes the server, such as /translate."""
    trusted_proxy: tuple[str, ...] = ()
    """Addresses of proxies whose X-Forwarded headers are trusted."""
    threads: PositiveInt | None = None
    """Threads of the model process; all cores unless given."""
    precision: Literal["auto", "int8", "bf16", "float32"] = "auto"
    """Number format of the computation; auto takes the fastest that the processor supports."""
    glossary: Path | None = None
    """A .tsv, .csv or .jsonl file of terms and their translations, in two columns. Read again on SIGHUP."""
    terms: Literal["enforced", "preferred"] = "enforced"
    """enforced: search only translations with the glossary's terms; preferred: use a term where search finds it."""
    memory_limit: PositiveInt | None = None
    """Most memory of the model process. Models that do not fit together are loaded when a request needs them, and the
    least recently used go; if it is too little even so, a new process replaces the old one, without a pause. [MB]"""
    load_seconds: PositiveFloat = 120.0
    """Time limit for loading the models. [seconds]"""
    request_seconds: PositiveFloat = 30.0
    """Time limit of a request, from arrival to answer. [seconds]"""
    stop_seconds: NonNegativeFloat = 30.0
    """Time limit for unfinished requests when the server is asked to stop. [seconds]"""
    body_limit: PositiveInt = 1 << 20
    """Largest request body. [bytes]"""
    character_limit: PositiveInt = 5000
    """Most characters in a request, summed over its texts."""
    file_character_limit: PositiveInt = 100_000
    """Most characters to translate in an uploaded file; its bytes count against `body_limit`."""
    file_seconds: PositiveFloat = 300.0
    """Time limit of a file or an HTML text, from arrival to answer. [seconds]"""
    document_seconds: PositiveInt = 20
    """Most processor time for parsing a file or an HTML text, and as much for filling it in. [seconds]"""
    document_memory: PositiveInt = 512
    """Most memory for that, in a process of its own. [MB]"""
    token_limit: PositiveInt = 1024
    """Most tokens that a language model writes for a request."""
    text_limit: PositiveInt = 64
    """Most texts in a request."""
    alternative_limit: Annotated[int, Field(ge=1, le=64)] = 8
    """Most outputs per text, and the widest beam."""
    connection_limit: PositiveInt = 1024
    """Most simultaneous connections."""
    queue_limit: PositiveInt = 256
    """Most texts in the queue; a request that does not fit is refused with 429."""
    batch_tokens: PositiveInt = 1024
    """Padded tokens per batch; 1 turns batching across requests off. [tokens]"""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severe level to log: requests are info, crashes of the model process warning."""

    @model_validator(mode="after")
    def other_machines_need_keys(self) -> Self:
        """Refuse to serve other machines without keys, unless `allow_anonymous` is set."""
        if not is_loopback(self.host) and self.api_key_file is None and not self.allow_anonymous:
            raise ValueError(
                f"host = {self.host} lets other machines connect, but there are no keys. Give --api-key-file, or "
                "--allow-anonymous if everyone who can reach this address may use the server."
            )
        return self

    @model_validator(mode="after")
    def origins_are_valid(self) -> Self:
        """Refuse an origin that no browser would send."""
        for origin in self.allowed_origin:
            scheme, separator, rest = origin.partition("://")
            if scheme not in ("http", "https") or not separator or not rest or "/" in rest or "*" in rest:
                raise ValueError(
                    f"allowed_origin = {origin!r} is not an origin. Write only scheme and host, such as "
                    "https://cms.example.org."
                )
        return self


def is_loopback(host: str) -> bool:
    """Tell whether an address can be reached from this machine only."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def read_options(path: Path) -> dict[str, Any]:
    """Read a TOML file of options, without `experiment.read_toml`, which would load torch into the server process."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as fault:
        raise ConfigError(f"The options file {path} cannot be read: {fault.strerror}.") from None
    except UnicodeDecodeError:
        raise ConfigError(f"The options file {path} is not UTF-8 text.") from None
    except tomllib.TOMLDecodeError as fault:
        raise ConfigError(f"{path} is not valid TOML: {fault}.") from None


def gather_options(
    *, file: Mapping[str, Any], environment: Mapping[str, str], flags: Mapping[str, Any]
) -> ServingConfig:
    """Merge options into a valid configuration: a flag overrides the environment, which overrides the file."""
    known = list(ServingConfig.model_fields)
    variables = {f"{ENVIRONMENT_PREFIX}{name.upper()}": name for name in known}
    given = {variables[variable]: value for variable, value in environment.items() if variable in variables}
    split = {
        name: [part.strip() for part in value.split(",") if part.strip()] if name in _LISTS else value
        for name, value in given.items()
    }
    try:
        return ServingConfig.model_validate({**file, **split, **flags})
    except ValidationError as fault:
        faults = [_describe(dict(detail), known) for detail in fault.errors()]
        raise ConfigError(f"the options: {'; '.join(faults)}") from None


def _describe(detail: dict[str, Any], known: list[str]) -> str:
    key = ".".join(str(part) for part in detail["loc"])
    message = str(detail["msg"]).removeprefix("Value error, ")
    if detail["type"] == "extra_forbidden":
        near = difflib.get_close_matches(key, known, n=1)
        return f"{key} is unknown" + (f" (did you mean {near[0]}?)" if near else "")
    return message if not key else f"{key}: {message}"


def child_settings(config: ServingConfig) -> dict[str, Any]:
    """Return the first message to a child: which models it loads, and how it computes."""
    settings = config.model_dump(mode="json", include={"threads", "precision", "memory_limit", "glossary", "terms"})
    models, targets = by_target(name_models(config.models))
    return {"models": models, "targets": targets, **settings}


def name_models(models: Sequence[str]) -> dict[str, str]:
    """Return the location of each model by the name that requests use: its folder's, or its run's for RUN/model."""
    named: dict[str, str] = {}
    for given in models:
        path = Path(given)
        full = path.resolve() if path.exists() else path
        name = full.parent.name if full.name == "model" else full.name
        if name in named:
            raise ConfigError(f"Two models would both be called {name}. Rename one of the folders.")
        named[name] = str(full) if path.exists() else given
    return named


def by_target(models: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the locations by name, with a name for each language of a model that has several, and those languages."""
    locations, languages = dict[str, str](), dict[str, str]()
    for name, location in models.items():
        try:
            described = read_description(find_model(location))
        except TransduceError:  # the child says what is wrong with it
            locations[name] = location
            continue
        if described.languages.target is not None or not described.targets:
            locations[name] = location
        for target in described.targets:
            locations[f"{name}-{target}"], languages[f"{name}-{target}"] = location, target
    return locations, languages
