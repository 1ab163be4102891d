"""Every option of the server: by flag, by environment (TRANSDUCE_SERVE_NAME), or in a TOML file; in that precedence.

The defaults are safe: only this machine can connect, and everything that a request can ask for has a limit.
"""

import difflib
import ipaddress
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field, NonNegativeFloat, PositiveFloat, PositiveInt, ValidationError, model_validator

from transduce.errors import ConfigError

ENVIRONMENT = "TRANSDUCE_SERVE_"
_LISTS = {"models", "allowed_host", "allowed_origin", "trusted_proxy"}


class ServingConfig(BaseModel, frozen=True, extra="forbid", use_attribute_docstrings=True):
    """How to serve."""

    models: Annotated[tuple[str, ...], Field(min_length=1)]
    """Model directories, runs or bundled names; of two for one pair of languages the first is used unless named."""
    host: str = "127.0.0.1"
    """Address to listen on. Other than loopback it needs keys, or `allow_anonymous`."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    """Port to listen on; 0 takes a free one and logs it."""
    api_key_file: Path | None = None
    """A file of keys, one a line, any of which opens every route. Read again on SIGHUP."""
    allow_anonymous: bool = False
    """Serve on an address other than loopback without keys."""
    allowed_host: tuple[str, ...] = ()
    """Names under which the server may be addressed, besides localhost and plain addresses."""
    allowed_origin: tuple[str, ...] = ()
    """Origins of other pages that may call the API from a browser, such as https://cms.example.org."""
    root_path: Annotated[str, Field(pattern=r"^(/[\w.~-]+)*$")] = ""
    """Path under which a proxy shows the server, such as /translate."""
    trusted_proxy: tuple[str, ...] = ()
    """Addresses of proxies whose X-Forwarded headers are believed."""
    threads: PositiveInt | None = None
    """Threads that the child computes with; all cores unless given."""
    precision: Literal["auto", "int8", "bf16", "float32"] = "auto"
    """What the child computes in; auto takes the fastest that the processor has."""
    glossary: Path | None = None
    """Terms and their translations, two columns in a .tsv, .csv or .jsonl file. Read again on SIGHUP."""
    terms: Literal["enforced", "preferred"] = "enforced"
    """Search among translations with the glossary's terms only, or take them where they come up."""
    memory_limit: PositiveInt | None = None
    """Once the child occupies more than this it is renewed: the next one takes over before it goes. [MB]"""
    load_seconds: PositiveFloat = 120.0
    """Time that a child has to load its models. [seconds]"""
    request_seconds: PositiveFloat = 30.0
    """Time that a request has from its arrival to its answer. [seconds]"""
    stop_seconds: NonNegativeFloat = 30.0
    """Time that running requests have when the server is asked to stop. [seconds]"""
    body_limit: PositiveInt = 1 << 20
    """Largest body of a request. [bytes]"""
    character_limit: PositiveInt = 5000
    """Most characters of a request, over all of its texts."""
    file_character_limit: PositiveInt = 100_000
    """Most characters to translate of an uploaded file; `body_limit` holds for its bytes."""
    file_seconds: PositiveFloat = 300.0
    """Time that a file, or a text in HTML, has from its arrival to its answer. [seconds]"""
    text_limit: PositiveInt = 64
    """Most texts of a request."""
    alternative_limit: Annotated[int, Field(ge=1, le=64)] = 8
    """Most outputs for a text, and the widest beam."""
    connection_limit: PositiveInt = 1024
    """Most connections at once."""
    queue_limit: PositiveInt = 256
    """Most texts that wait; a request beyond that is refused with 429."""
    batch_tokens: PositiveInt = 1024
    """Padded tokens that the child computes at once; 1 turns batching across requests off. [tokens]"""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """What is logged: requests at info, refusals of the operating system and deaths of the child at warning."""

    @model_validator(mode="after")
    def strangers_need_keys(self) -> Self:
        """Refuse to listen to other machines without keys unless that is asked for."""
        if not is_loopback(self.host) and self.api_key_file is None and not self.allow_anonymous:
            raise ValueError(
                f"host = {self.host} lets other machines connect, but there are no keys. Give --api-key-file, or "
                "--allow-anonymous if whoever can reach this address may use the server."
            )
        return self

    @model_validator(mode="after")
    def origins_are_origins(self) -> Self:
        """Refuse what no browser would send as an origin."""
        for origin in self.allowed_origin:
            scheme, separator, rest = origin.partition("://")
            if scheme not in ("http", "https") or not separator or not rest or "/" in rest or "*" in rest:
                raise ValueError(
                    f"allowed_origin = {origin!r} is no origin. Write scheme and name alone, such as "
                    "https://cms.example.org."
                )
        return self


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def read_options(path: Path) -> dict[str, Any]:
    """Read a TOML file of options. `experiment` could, but it would load torch into the serving process."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as fault:
        raise ConfigError(f"The options file {path} cannot be read: {fault.strerror}.") from None
    except UnicodeDecodeError:
        raise ConfigError(f"The options file {path} is no UTF-8 text.") from None
    except tomllib.TOMLDecodeError as fault:
        raise ConfigError(f"{path} is not valid TOML: {fault}.") from None


def gather_options(
    *, file: Mapping[str, Any], environment: Mapping[str, str], flags: Mapping[str, Any], where: str = "the options"
) -> ServingConfig:
    """Join a file, the environment and flags, the later over the earlier, into one valid configuration."""
    known = list(ServingConfig.model_fields)
    given = {
        name: environment[f"{ENVIRONMENT}{name.upper()}"]
        for name in known
        if f"{ENVIRONMENT}{name.upper()}" in environment
    }
    split = {
        name: [part.strip() for part in value.split(",") if part.strip()] if name in _LISTS else value
        for name, value in given.items()
    }
    try:
        return ServingConfig.model_validate({**file, **split, **flags})
    except ValidationError as fault:
        faults = [_describe(dict(detail), known) for detail in fault.errors()]
        raise ConfigError(f"{where}: " + "; ".join(faults)) from None


def _describe(detail: dict[str, Any], known: list[str]) -> str:
    key = ".".join(str(part) for part in detail["loc"])
    message = str(detail["msg"]).removeprefix("Value error, ")
    if detail["type"] == "extra_forbidden":
        near = difflib.get_close_matches(key, known, n=1)
        return f"{key} is unknown" + (f" (did you mean {near[0]}?)" if near else "")
    return message if not key else f"{key}: {message}"
