"""A server process over its life: options, proxy, new keys and models, crashes, overload, shutdown."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from transduce.translator import Translator

pytestmark = pytest.mark.slow
BODY = {"q": "the dog runs.", "source": "en", "target": "de"}
OLD, NEW = "an-old-key-0123456789", "a-new-key-0123456789"
# Reports every attempt to connect or to resolve a name, in the server and in its child.
WATCH = """
import os, sys
def watch(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
        if not (event == "socket.getaddrinfo" and arguments[0] == "127.0.0.1"):
            with open(os.environ["WATCH_FILE"], "a", encoding="utf-8") as file:
                file.write(f"{event} {arguments}\\n")
sys.addaudithook(watch)
"""
needs_signals = pytest.mark.skipif(sys.platform == "win32", reason="sends signals that Windows lacks")


@needs_signals
def test_options_proxy_reload_and_shutdown(
    model: Path, tmp_path: Path, run_server: Callable[..., Any], make_model: Callable[..., Path]
) -> None:
    """One server for all, since each takes seconds to start."""
    own = tmp_path / "served"
    shutil.copytree(model, own)
    (tmp_path / "keys").write_text(OLD, encoding="utf-8")
    (tmp_path / "options.toml").write_text(
        f'models = ["{own.as_posix()}"]\ncharacter_limit = 100\ntext_limit = 7\nroot_path = "/mt"\n', encoding="utf-8"
    )
    (tmp_path / "sitecustomize.py").write_text(WATCH, encoding="utf-8")
    environment = {
        "TRANSDUCE_SERVE_TEXT_LIMIT": "3",
        "TRANSDUCE_SERVE_API_KEY_FILE": str(tmp_path / "keys"),
        "TRANSDUCE_SERVE_ALLOWED_HOST": "mt.example.org",
        "TRANSDUCE_SERVE_ALLOWED_ORIGIN": "https://cms.example.org",
        "WATCH_FILE": str(tmp_path / "connections"),
        "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]),
    }
    with (
        run_server(
            tmp_path / "log",
            "--config",
            tmp_path / "options.toml",
            "--trusted-proxy",
            "127.0.0.1",
            environment=environment,
        ) as server,
        server.client(headers={"Authorization": f"Bearer {OLD}", "Host": "mt.example.org"}) as client,
    ):
        check_options(client)
        check_proxy(client)
        if sys.platform == "linux":
            mapped = Path(f"/proc/{server.process.pid}/maps").read_text(encoding="utf-8")
            assert "/transduce/core/" not in mapped, "only the child loads models"
            assert "libtorch" not in mapped
            assert "/transduce/core/" in Path(f"/proc/{server.child()}/maps").read_text(encoding="utf-8")

        before = client.post("/translate", json=BODY).json()["translatedText"]
        (tmp_path / "keys").write_text(NEW, encoding="utf-8")
        make_model(own, seed=11)
        check_reload(server, client)
        after = client.post("/translate", json=BODY).json()["translatedText"]
        assert after == Translator.load(own, threads=1).translate("the dog runs.").text != before

        (tmp_path / "keys").write_text("short", encoding="utf-8")
        server.process.send_signal(signal.SIGHUP)
        server.wait_for("reload refused")
        assert client.post("/translate", json=BODY).status_code == 200, "a reload with an error changes nothing"

        child = server.child()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0
        assert [one["event"] for one in server.events()][-1] == "stopped"
        assert not is_alive(child)
    assert not (tmp_path / "connections").exists(), (tmp_path / "connections").read_text(encoding="utf-8")
    control = [sys.executable, "-c", "import socket; socket.socket().connect_ex(('127.0.0.1', 9))"]
    subprocess.run(control, env={**os.environ, **environment}, check=True)
    assert "socket.connect" in (tmp_path / "connections").read_text(encoding="utf-8"), "the watch sees connections"


@needs_signals
def test_a_glossary_is_applied_and_read_again(
    tmp_path: Path, run_server: Callable[..., Any], make_model: Callable[..., Path]
) -> None:
    model = make_model(tmp_path / "model", fondness_of_ending=9.0)
    terms = tmp_path / "terms.tsv"
    terms.write_text("dog\tKatze\n", encoding="utf-8")
    with run_server(tmp_path / "log", model, "--glossary", terms) as server, server.client() as client:
        assert "Katze" in client.post("/translate", json=BODY).json()["translatedText"]
        terms.write_text("dog\tHund\n", encoding="utf-8")
        server.process.send_signal(signal.SIGHUP)
        server.wait_for("child ready", count=2)
        assert "Hund" in client.post("/translate", json=BODY).json()["translatedText"]
        terms.write_text("dog\n", encoding="utf-8")
        server.process.send_signal(signal.SIGHUP)
        server.wait_for("reload refused")
        assert "Hund" in client.post("/translate", json=BODY).json()["translatedText"], (
            "a reload with an error changes nothing"
        )


def check_options(client: httpx.Client) -> None:
    limit = client.post("/translate", json={**BODY, "q": ["a"] * 4}).json()
    assert limit == {"error": "Invalid request: request (4) exceeds text limit (3)"}, "the environment beats the file"
    limit = client.post("/translate", json={**BODY, "q": "a" * 101}).json()
    assert limit == {"error": "Invalid request: request (101) exceeds text limit (100)"}, "the file beats the default"


def check_proxy(client: httpx.Client) -> None:
    for path in ("/translate", "/mt/translate"):
        assert client.post(path, json=BODY).status_code == 200, "with and without the proxy's path"
    assert client.get("/openapi.json").json()["servers"] == [{"url": "/mt"}]
    allowed = client.post("/translate", json=BODY, headers={"Origin": "https://cms.example.org"})
    assert allowed.headers["access-control-allow-origin"] == "https://cms.example.org"
    refused = client.post("/translate", json={}, headers={"Origin": "https://cms.example.org"})
    assert refused.headers["access-control-allow-origin"] == "https://cms.example.org", "refusals can be read too"
    assert client.post("/translate", json=BODY, headers={"Origin": "https://evil.example"}).status_code == 403
    preflight = {"Origin": "https://cms.example.org", "Access-Control-Request-Method": "POST"}
    assert client.options("/translate", headers=preflight).status_code == 200


def check_reload(server: Any, client: httpx.Client) -> None:  # noqa: ANN401
    """Send SIGHUP and use the new key; the old child must answer until the new one is ready."""
    server.process.send_signal(signal.SIGHUP)
    answered = 0
    while len([one for one in server.events() if one["event"] == "child ready"]) < 2:
        response = client.post("/translate", json=BODY, headers={"Authorization": f"Bearer {NEW}"})
        assert response.status_code in (200, 403), "403 only until the new key is read"
        answered += response.status_code == 200
        time.sleep(0.05)
    assert answered > 0, "the old child answers while the new one loads"
    assert client.post("/translate", json=BODY).status_code == 403
    client.headers["Authorization"] = f"Bearer {NEW}"


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@needs_signals
def test_every_request_is_answered_while_children_are_killed(
    model: Path, tmp_path: Path, run_server: Callable[..., Any], in_threads: Callable[..., list[Any]]
) -> None:
    with run_server(tmp_path / "log", model, "--request-seconds", "60") as server:

        def ask(number: int) -> list[int]:
            statuses = []
            with server.client() as client:
                for turn in range(6):
                    if number == 0 and turn in (1, 3):
                        os.kill(server.child(), signal.SIGKILL)
                        server.wait_for("child ready", count=2 + turn // 2)
                        continue
                    response = client.post("/translate", json={**BODY, "q": [f"dog {number}", "a"]}, timeout=90)
                    statuses.append(response.status_code)
            return statuses

        statuses = [status for own in in_threads(5, ask) for status in own]
        assert len(statuses) == 4 * 6 + 4
        assert set(statuses) <= {200, 503}
        assert statuses.count(200) > len(statuses) / 2
        with server.client() as client:
            assert client.get("/health/ready", timeout=90).status_code == 200
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(60) == 0


def test_without_the_extra_the_command_says_how_to_install_it(tmp_path: Path) -> None:
    program = (
        "import sys, importlib.util as util\n"
        "real = util.find_spec\n"
        "util.find_spec = lambda name, *rest: None if name == 'uvicorn' else real(name, *rest)\n"
        "sys.argv = ['transduce', 'serve', 'x']\n"
        "from transduce.cli import main\nmain()"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert "Serving needs uvicorn, not installed here: pip install 'transduce[serve]'" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["x/none"], "There is no model at x/none"),
        (["m", "--host", "0.0.0.0"], "lets other machines connect, but there are no keys"),
        (["m", "--config", "none.toml"], "The options file none.toml cannot be read"),
        (["m", "--api-key-file", "none"], "The key file none cannot be read"),
        (["m", "--host", "256.0.0.1", "--allow-anonymous"], "Cannot listen on 256.0.0.1:8000"),
    ],
)
def test_errors_of_the_operator_are_one_line(arguments: list[str], fault: str) -> None:
    command = [sys.executable, "-m", "transduce", "serve", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert result.returncode == 2
    assert fault in result.stderr
    assert "Traceback" not in result.stderr


def test_a_taken_port_is_noticed_before_a_model_is_loaded() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        command = [sys.executable, "-m", "transduce", "serve", "no model of this name", "--port", str(port)]
        result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert result.returncode == 2
    assert f"transduce: Cannot listen on 127.0.0.1:{port}: Address already in use." in result.stderr


def test_a_full_queue_refuses_before_the_body_arrives(run_server: Any, model: Path, tmp_path: Path) -> None:  # noqa: ANN401
    """A refusal is cheap: the server does not read the body. The server stays ready meanwhile."""
    options = ("--queue-limit", "1", "--batch-tokens", "1", "--alternative-limit", "64")
    with run_server(tmp_path / "log", model, *options) as server, server.client() as client:
        body = {"text": ["a cat sleeps here. " * 8] * 2, "alternatives": 64, "beam": 64}
        flood = threading.Thread(target=lambda: client.post("/v1/translate", json=body))
        flood.start()
        time.sleep(0.5)  # else a request without a body might take the only place, and the flood be refused
        host, _, port = server.address.removeprefix("http://").partition(":")
        head = "POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n"
        answer = b""
        end = time.monotonic() + 30
        while b" 429 " not in answer and flood.is_alive() and time.monotonic() < end:
            with socket.create_connection((host, int(port)), timeout=0.5) as connection:
                connection.sendall(head.encode())
                with contextlib.suppress(TimeoutError):
                    answer = connection.recv(4096)
        assert b" 429 " in answer
        assert b"retry-after: " in answer.lower()
        with server.client() as other:
            assert other.get("/health/ready").status_code == 200
        flood.join(60)


def test_requests_that_arrive_at_once_beyond_the_queue_are_refused(
    run_server: Callable[..., Any], in_threads: Callable[..., list[Any]], model: Path, tmp_path: Path
) -> None:
    options = ("--queue-limit", "4", "--batch-tokens", "1")
    with run_server(tmp_path / "log", model, *options) as server, server.client() as client:
        found = in_threads(60, lambda number: client.post("/translate", json={**BODY, "q": f"the dog {number}"}))
        assert {answer.status_code for answer in found} <= {200, 429}
        assert sum(answer.status_code == 200 for answer in found) >= 4
        assert client.post("/translate", json=BODY).status_code == 200, "answered requests make room again"
