"""The gate: keys, allowed hosts and origins, limits, and errors that reveal nothing."""

import ast
import contextlib
import json
import os
import re
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.routing import Route

from transduce.serving.application import make_routes
from transduce.serving.config import ServingConfig
from transduce.serving.gate import DOWNLOADS, PUBLIC_ROUTES, route_path
from transduce.serving.service import Service

SERVING = Path(__file__).parents[2] / "src" / "transduce" / "serving"
BODY = {"q": "the dog runs.", "source": "en", "target": "de"}


def routes() -> list[tuple[str, str]]:
    """Return method and path of every route of the application."""
    app = make_routes(Service(ServingConfig(models=("m",))))
    return _routes_of(app.router.routes)


def _routes_of(entries: Any) -> list[tuple[str, str]]:  # noqa: ANN401
    found: list[tuple[str, str]] = []
    for entry in entries:
        inner = getattr(entry, "routes", None) or getattr(getattr(entry, "original_router", None), "routes", None)
        if isinstance(entry, Route):
            found += [(method, entry.path) for method in sorted(entry.methods or ())]
        else:
            assert inner is not None, f"a route of an unknown kind: {entry!r}"
            found += _routes_of(inner)
    return found


def test_public_routes_exist_and_are_few() -> None:
    paths = {path for _, path in routes()}
    assert paths >= PUBLIC_ROUTES
    assert sorted(paths - PUBLIC_ROUTES) == [
        "/detect",
        "/metrics",
        "/translate",
        "/translate_file",
        "/v1/attention",
        "/v1/attention/numbers",
        "/v1/attention/page",
        "/v1/likelihood",
        "/v1/models",
        "/v1/translate",
    ]


def test_a_proxy_s_path_is_taken_off_once() -> None:
    assert route_path({"path": "/t/translate", "root_path": "/t"}) == "/translate"
    assert route_path({"path": "/translate", "root_path": "/t"}) == "/translate"
    assert route_path({"path": "/two/translate", "root_path": "/t"}) == "/two/translate"
    assert route_path({"path": "/t/t/", "root_path": "/t"}) == "/t/"


def test_no_name_in_a_request_reaches_the_file_system() -> None:
    """The room reads only files that the operator or the package names: these calls are all."""
    reads = {}
    for file in SERVING.glob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        calls = [
            node.func.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        ]
        calls += [
            node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        ]
        opened = [
            name
            for name in calls
            if name in ("open", "read_text", "read_bytes", "write_text", "FileResponse", "StaticFiles")
        ]
        if opened:
            reads[file.name] = opened
    assert reads == {
        "config.py": ["read_text"],  # the options file, before the server starts
        "document_tasks.py": ["read_text"],  # /proc/self/statm
        "keys.py": ["read_text"],  # the key file
        "pages.py": ["read_bytes"],  # the package's own pages, once
    }


def test_no_module_of_the_room_can_connect_to_anything() -> None:
    clients = {
        "socket",
        "http",
        "urllib.request",
        "httpx",
        "requests",
        "urllib3",
        "aiohttp",
        "pickle",
        "multiprocessing",
    }
    for file in SERVING.glob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        # server.py binds a socket to see whether its port is free.
        assert not imported & (clients - {"socket"} if file.name == "server.py" else clients), file.name
        assert not re.search(r"open_connection|create_connection|\.connect\(", file.read_text(encoding="utf-8"))


@pytest.mark.slow
class TestKeys:
    def test_every_route_refuses_without_a_key_unless_listed(self, locked_server: Any) -> None:  # noqa: ANN401
        with locked_server.client() as client:
            for method, path in routes():
                response = client.request(method, path)
                if path in PUBLIC_ROUTES:
                    assert response.status_code == (404 if path.startswith(DOWNLOADS) else 200), path
                else:
                    assert response.status_code in (400, 401), path
                    assert "key" in response.json()["error"], path
                    wrong = client.request(method, path, headers={"Authorization": "Bearer wrong-key-0123456789"})
                    assert wrong.status_code == 403, path
            for path in ("/nothing", "/translate/", "/v1", "/%2e%2e/etc/passwd", "/metrics/../metrics"):
                assert client.get(path).status_code == 401, path

    def test_a_key_is_accepted_in_header_query_and_body(self, locked_server: Any, key: str) -> None:  # noqa: ANN401
        with locked_server.client() as client:
            assert client.get("/metrics", headers={"Authorization": f"Bearer {key}"}).status_code == 200
            assert client.get("/metrics", headers={"X-API-Key": key}).status_code == 200
            assert client.get("/metrics", params={"api_key": key}).status_code == 200
            assert client.post("/translate", json={**BODY, "api_key": key}).status_code == 200
            assert client.post("/translate", data={**BODY, "api_key": key}).status_code == 200
            assert client.post("/v1/translate", json={"text": "a", "api_key": key}).status_code == 200
            for body in ({**BODY, "api_key": None}, {**BODY, "api_key": [key]}, {**BODY, "api_key": ""}):
                assert client.post("/translate", json=body).status_code == 400
            assert (
                client.post("/v1/translate", content="{", headers={"Content-Type": "application/json"}).status_code
                == 400
            )

    def test_keys_are_in_no_log_and_no_metric(self, locked_server: Any, key: str) -> None:  # noqa: ANN401
        with locked_server.client() as client:
            client.post("/translate", params={"api_key": key}, json=BODY)
            figures = client.get("/metrics", headers={"X-API-Key": key}).text
        log = locked_server._log.read_text(encoding="utf-8")
        assert key not in log
        assert key not in figures


@pytest.mark.slow
class TestWhoMayCall:
    @pytest.mark.parametrize(
        "host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "[", "a b"]
    )
    def test_foreign_names_are_refused(self, client: httpx.Client, host: str) -> None:
        response = client.get("/languages", headers={"Host": host})
        assert response.status_code == 400
        assert "does not accept that host name" in response.text or not response.headers.get("x-request-id")

    @pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9", "127.0.0.1", "[::1]:8000"])
    def test_our_own_names_are_not(self, client: httpx.Client, host: str) -> None:
        assert client.get("/languages", headers={"Host": host}).status_code == 200

    def test_pages_of_other_origins_cannot_call(self, client: httpx.Client) -> None:
        own = str(client.base_url).rstrip("/")
        assert client.post("/translate", data=BODY, headers={"Origin": own}).status_code == 200
        for origin in ("https://evil.example", "null", "http://localhost:1"):
            response = client.post("/translate", data=BODY, headers={"Origin": origin})
            assert response.status_code == 403
            assert "access-control-allow-origin" not in response.headers


@pytest.mark.slow
class TestLimits:
    def test_a_body_too_large_is_refused_with_and_without_content_length(self, client: httpx.Client) -> None:
        assert client.post("/translate", content=b"a" * (1 << 20)).status_code == 400
        assert client.post("/translate", content=b"a" * ((1 << 20) + 1)).status_code == 413
        chunks = (b"a" * (1 << 16) for _ in range(17))
        with contextlib.suppress(httpx.TransportError):  # the connection may end before all of it is sent
            assert client.post("/translate", content=chunks).status_code == 413

    def test_headers_too_large_are_refused(self, client: httpx.Client) -> None:
        with contextlib.suppress(httpx.TransportError):
            assert client.get("/languages", headers={"X": "a" * 200_000}).status_code == 400
        assert client.get("/languages").status_code == 200

    def test_many_fields_of_a_form_are_refused(self, client: httpx.Client) -> None:
        assert client.post("/translate", data={f"f{n}": "x" for n in range(300)}).json() == {
            "error": "Invalid form data"
        }
        files = {"q": ("name.txt", b"content")}
        assert client.post("/translate", data=BODY, files=files).json() == {"error": "Invalid form data"}


@pytest.mark.slow
class TestWhatAnswersReveal:
    def test_errors_have_one_form_and_no_trace(self, client: httpx.Client) -> None:
        for method, path in (
            ("GET", "/nothing"),
            ("GET", "/translate"),
            ("POST", "/languages"),
            ("POST", "/v1/translate"),
        ):
            response = client.request(method, path)
            assert 400 <= response.status_code < 500
            assert set(response.json()) == {"error"}
            assert not re.search(r"Traceback|\.py|site-packages", response.text)

    def test_every_answer_has_its_headers_and_its_request_id(self, client: httpx.Client) -> None:
        for path in ("/", "/languages", "/nothing", "/health/live"):
            headers = client.get(path).headers
            assert headers["x-content-type-options"] == "nosniff"
            assert "frame-ancestors 'none'" in headers["content-security-policy"]
            assert "server" not in headers
        assert client.get("/languages", headers={"X-Request-ID": "abc-1"}).headers["x-request-id"] == "abc-1"
        for bad in ("a" * 65, "a b", 'a"b'):
            assert re.fullmatch(r"[0-9a-f]{32}", client.get("/", headers={"X-Request-ID": bad}).headers["x-request-id"])

    def test_logs_and_metrics_hold_no_text(self, server: Any, client: httpx.Client) -> None:  # noqa: ANN401
        secret = "Zyzzyva"
        client.post("/translate", json={**BODY, "q": secret})
        client.post("/translate", json={**BODY, "source": secret})
        client.post("/v1/translate", json={"text": secret, "model": secret, secret: secret})
        client.get(f"/{secret}", params={secret: secret}, headers={"User-Agent": secret})
        time.sleep(0.1)
        log = server._log.read_text(encoding="utf-8")
        assert secret not in log
        assert "127.0.0.1:" not in log.replace(server.address, "")
        figures = client.get("/metrics").text
        assert secret not in figures
        assert "127.0.0.1" not in figures
        records = [record for record in server.events() if record["event"] == "request"]
        assert {"request_id", "route", "status", "seconds"} <= set(records[-1])

    def test_metrics_count(self, client: httpx.Client) -> None:
        def value(name: str) -> float:
            found = re.search(rf"^{re.escape(name)} (\S+)$", client.get("/metrics").text, flags=re.MULTILINE)
            return float(found[1]) if found else 0.0

        name = 'transduce_requests_total{route="/translate",status="200"}'
        before = value(name), value("transduce_rounds_total")
        client.post("/translate", json=BODY)
        assert (value(name), value("transduce_rounds_total")) == (before[0] + 1, before[1] + 1)
        assert value("transduce_child_up") == 1


@pytest.mark.slow
def test_a_client_that_disconnects_does_no_harm(server: Any) -> None:  # noqa: ANN401
    host, port = server.address.removeprefix("http://").split(":")
    for content in (
        b"",
        b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nq",
        b"\0\xff\r\n\r\n",
    ):
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(content)
    with server.client() as client:
        assert client.post("/translate", json=BODY).status_code == 200


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="stops a process with a signal")
def test_the_job_of_a_client_that_disconnected_is_skipped(server: Any) -> None:  # noqa: ANN401
    host, port = server.address.removeprefix("http://").split(":")
    content = json.dumps(BODY).encode()
    kind = f"Content-Type: application/json\r\nContent-Length: {len(content)}"
    head = f"POST /translate HTTP/1.1\r\nHost: localhost\r\n{kind}"

    def skipped() -> float:
        with server.client() as client:
            figures = client.get("/metrics").text
        return float(re.search(r"^transduce_skipped_texts_total (\S+)$", figures, flags=re.MULTILINE)[1])  # type: ignore[index]

    before = skipped()
    os.kill(server.child(), signal.SIGSTOP)
    try:
        with socket.create_connection((host, int(port))) as first:
            first.sendall(head.encode() + b"\r\n\r\n" + content)
            time.sleep(0.3)  # it is with the child now, which does not answer
            with socket.create_connection((host, int(port))) as second:
                second.sendall(head.encode() + b"\r\n\r\n" + content)
                time.sleep(0.3)
            time.sleep(0.3)
            os.kill(server.child(), signal.SIGCONT)
            first.settimeout(60)
            assert first.recv(100).startswith(b"HTTP/1.1 200")
    finally:
        os.kill(server.child(), signal.SIGCONT)
    with server.client() as client:
        assert client.post("/translate", json=BODY).status_code == 200
    assert skipped() == before + 1
    assert any(one.get("status") == 499 for one in server.events())
