"""Connections of strangers: silent, half-sent, without a key. Those who have a key are answered all the same."""

import contextlib
import logging
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.serving.conftest import KEY

from transduce.serving.logs import LOGGER, BoundedRefusals

BODY = {"q": "the dog runs.", "source": "en", "target": "de"}
HALF_HEAD = b"POST /translate HTTP/1.1\r\nHost: loc"
NO_BODY = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n"
WRONG_KEY = NO_BODY + b"Authorization: Bearer wrong\r\n\r\n"


@pytest.fixture(scope="module")
def server(run_server: Callable[..., Any], model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "keys").write_text("\ufeff" + KEY + "\n", encoding="utf-8")
    options = ("--api-key-file", str(folder / "keys"), "--connection-limit", "24", "--queue-limit", "8")
    with run_server(folder / "log", model, *options) as running:
        yield running


def connect(server: Any, sent: bytes) -> socket.socket:  # noqa: ANN401
    host, _, port = server.address.removeprefix("http://").partition(":")
    connection = socket.create_connection((host, int(port)), timeout=5)
    connection.sendall(sent)
    return connection


@pytest.mark.parametrize("sent", [b"", HALF_HEAD, NO_BODY + b"\r\n", NO_BODY + b"\r\n{", WRONG_KEY])
def test_strangers_do_not_lock_out_those_with_a_key(server: Any, sent: bytes) -> None:  # noqa: ANN401
    with ExitStack() as stack:
        for _ in range(60):
            stack.enter_context(connect(server, sent))
        for _ in range(5):
            with server.client(headers={"Authorization": f"Bearer {KEY}"}) as client:
                assert client.post("/translate", json=BODY).status_code == 200
    assert any(record["event"] == "every user can read the key file" for record in server.events())


def test_a_connection_with_a_key_stays_open_while_strangers_come(server: Any) -> None:  # noqa: ANN401
    with server.client(headers={"Authorization": f"Bearer {KEY}"}) as client, ExitStack() as stack:
        assert client.post("/translate", json=BODY).status_code == 200
        for _ in range(60):
            stack.enter_context(connect(server, b""))
        assert client.post("/translate", json=BODY).status_code == 200


def test_a_wrong_key_in_the_header_is_refused_before_the_body_arrives(server: Any) -> None:  # noqa: ANN401
    with connect(server, WRONG_KEY) as connection:
        assert connection.recv(4096).startswith(b"HTTP/1.1 403 ")


@pytest.mark.slow
def test_a_head_that_does_not_arrive_in_time_ends_the_connection(server: Any) -> None:  # noqa: ANN401
    began = time.monotonic()
    with connect(server, HALF_HEAD) as connection, contextlib.suppress(ConnectionError):
        connection.settimeout(20)
        assert connection.recv(1) == b""
    assert 5 < time.monotonic() - began < 20


def test_refusals_beyond_a_hundred_a_second_are_counted_and_not_logged() -> None:
    written: list[logging.LogRecord] = []

    class Keeping(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            written.append(record)

    handler = Keeping()
    logger = logging.getLogger(LOGGER)
    logger.addHandler(handler)
    try:
        bounded = BoundedRefusals()
        records = [logging.LogRecord(LOGGER, logging.INFO, "", 0, "request", (), None) for _ in range(502)]
        for number, record in enumerate(records):
            record.created, record.fields = 7.5 if number < 500 else 8.5, {"status": 403}
        assert [bounded.filter(record) for record in records] == [True] * 100 + [False] * 400 + [True] * 2
        records[0].fields = {"status": 200}
        assert bounded.filter(records[0])
    finally:
        logger.removeHandler(handler)
    assert [record.__dict__["fields"] for record in written] == [{"count": 400}]
