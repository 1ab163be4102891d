"""Options: safe defaults, three ways to set them, and errors that say what to do."""

import inspect
from pathlib import Path
from typing import Any

import pytest

from transduce.cli.serve import serve
from transduce.errors import ConfigError
from transduce.serving.config import ServingConfig, gather_options, is_loopback, read_options


def options(
    *, file: dict[str, Any] | None = None, environment: dict[str, str] | None = None, **flags: object
) -> ServingConfig:
    return gather_options(file=file or {}, environment=environment or {}, flags={"models": ["m"], **flags})


def test_only_this_machine_can_connect_by_default() -> None:
    assert options().host == "127.0.0.1"
    assert is_loopback("127.0.0.1")
    assert is_loopback("localhost")
    assert is_loopback("::1")
    assert not is_loopback("0.0.0.0")
    assert not is_loopback("::")
    assert not is_loopback("example.org")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "example.org"])
def test_other_machines_need_keys(host: str) -> None:
    with pytest.raises(ConfigError, match=r"no keys\. Give --api-key-file, or --allow-anonymous"):
        options(host=host)
    assert options(host=host, allow_anonymous=True).host == host
    assert options(host=host, api_key_file=Path("keys")).host == host


def test_a_flag_overrides_the_environment_which_overrides_the_file() -> None:
    file = {"port": 1, "threads": 1, "text_limit": 1}
    environment = {"TRANSDUCE_SERVE_PORT": "2", "TRANSDUCE_SERVE_THREADS": "2", "PORT": "9"}
    found = options(file=file, environment=environment, port=3)
    assert (found.port, found.threads, found.text_limit) == (3, 2, 1)


def test_lists_in_the_environment_are_separated_by_commas() -> None:
    environment = {"TRANSDUCE_SERVE_ALLOWED_HOST": "a.example, b.example", "TRANSDUCE_SERVE_MODELS": "runs/a,runs/b"}
    found = gather_options(file={}, environment=environment, flags={})
    assert found.allowed_host == ("a.example", "b.example")
    assert found.models == ("runs/a", "runs/b")


def test_every_option_is_a_flag_and_every_flag_an_option() -> None:
    flags = set(inspect.signature(serve).parameters) - {"config"}
    assert flags == set(ServingConfig.model_fields)


def test_every_option_has_a_meaning() -> None:
    assert [name for name, field in ServingConfig.model_fields.items() if not field.description] == []


def test_faults_name_the_option() -> None:
    with pytest.raises(ConfigError, match=r"thread is unknown \(did you mean threads\?\)"):
        options(file={"thread": 2})
    with pytest.raises(ConfigError, match="port: Input should be less than or equal to 65535"):
        options(port=70000)
    with pytest.raises(ConfigError, match="models: "):
        gather_options(file={}, environment={}, flags={})
    for origin in ("*", "cms.example.org", "https://cms.example.org/"):
        with pytest.raises(ConfigError, match=r"is not an origin\. Write only scheme and host"):
            options(allowed_origin=[origin])


def test_a_file_of_options_is_read_or_refused(tmp_path: Path) -> None:
    file = tmp_path / "serve.toml"
    file.write_text("port = 9", encoding="utf-8")
    assert read_options(file) == {"port": 9}
    for content, fault in ((b"port = x\n", r"serve\.toml is not valid TOML: .*line 1"), (b"\xff", "is not UTF-8 text")):
        file.write_bytes(content)
        with pytest.raises(ConfigError, match=fault):
            read_options(file)
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        read_options(tmp_path / "none.toml")
