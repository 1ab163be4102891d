"""The gate: ASGI middleware that checks every request, adds headers to every answer, and logs both.

The checks, in this order: the Host header (against DNS rebinding), the browser's Origin, a key in the header or the
query, room in the queue, size and arrival time of the body, and a key in the body. A request counts as admitted only
after all of them. A route that is not listed as public needs a key. An exception in the application
becomes `{"error": …}` without details of the code.
"""

import asyncio
import ipaddress
import logging
import re
import time
import uuid
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from transduce.serving.bodies import error_answer, read_fields
from transduce.serving.connections import CONNECTION
from transduce.serving.logs import log, source_lines
from transduce.serving.pages import PAGE_ROUTES
from transduce.serving.refusal import Refusal
from transduce.serving.service import Service

LIBRETRANSLATE_ROUTES = frozenset(
    {"/translate", "/translate_file", "/detect", "/languages", "/frontend/settings", "/health"}
)
QUEUED_ROUTES = frozenset(
    {
        "/translate",
        "/translate_file",
        "/v1/translate",
        "/v1/likelihood",
        "/v1/attention",
        "/v1/attention/numbers",
        "/v1/attention/page",
        "/v1/lesson",
    }
)
"""Routes that the child computes for."""
DOWNLOADS = "/download_file/"
PUBLIC_ROUTES = frozenset(
    {
        *PAGE_ROUTES,
        "/openapi.json",
        "/languages",
        "/frontend/settings",
        "/health",
        "/health/live",
        "/health/ready",
        f"{DOWNLOADS}{{name}}",
    }
)
"""Routes that need no key: the pages, the API's description, the languages, health, and downloads of translated files,
whose names are secret.
"""
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
}
"""Headers of every answer, unless its route sets them."""
_REQUEST_ID = re.compile(r"[\w.-]{1,64}")
_SECONDS_FOR_BODY = 15.0


class Gate:
    """The middleware around the application."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._service = service
        self._admitted = 0  # requests to QUEUED_ROUTES that are not yet answered

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on to the application, or answer it with an error."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        exchange = _Exchange(scope, send)
        scope["root_path"] = self._service.config.root_path
        try:
            body = await self._admit(scope, receive, exchange)
            await self._app(scope, _replay(body, receive), exchange.send)
        except Refusal as refusal:
            await exchange.refuse(refusal)
        except Exception as fault:
            log(
                "fault",
                level=logging.ERROR,
                request_id=exchange.request_id,
                exception=type(fault).__name__,
                at=source_lines(fault),
            )
            await exchange.refuse(Refusal(500, "The server failed on this request."))
        finally:
            self._admitted -= exchange.is_admitted
            self._record(scope, exchange)

    async def _admit(self, scope: Scope, receive: Receive, exchange: "_Exchange") -> bytes:
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self._is_allowed_host(host):
            raise Refusal(400, "This server does not accept that host name. Its operator can add it: --allowed-host.")
        if origin is not None and not self._is_allowed_origin(origin, host):
            raise Refusal(
                403, "Pages of that origin may not call this server. Its operator can add it: --allowed-origin."
            )
        if self._service.is_stopping:
            raise Refusal(503, "The server is shutting down.", retry_after=5)
        is_preflight = scope["method"] == "OPTIONS" and "access-control-request-method" in headers
        needs_key = not is_preflight and self._needs_key(scope)
        if needs_key and (key := _key_outside_body(scope, headers)) is not None:
            self._check_key(scope, key)
            needs_key = False
            self._accept(scope)
        is_queued = scope["method"] == "POST" and route_path(scope) in QUEUED_ROUTES
        if is_queued:  # before the body arrives: under overload a refusal must be cheap
            self._service.dispatcher.refuse_if_full(admitted=self._admitted)
        body = await self._arrived(scope, headers, receive)
        exchange.received = len(body)
        if needs_key:
            self._check_key(scope, await _key_in_body(scope, body))
        if needs_key or not self._service.keys.are_required:
            self._accept(scope)
        if is_queued:  # those that wait for a body or a key take no place
            self._service.dispatcher.refuse_if_full(admitted=self._admitted)
            self._admitted += 1
            exchange.is_admitted = True
        return body

    def _accept(self, scope: Scope) -> None:
        """Keep the connection of a request that was admitted, however many strangers connect."""
        if CONNECTION in scope:
            scope[CONNECTION].limits.accepted(scope[CONNECTION])

    async def _arrived(self, scope: Scope, headers: Headers, receive: Receive) -> bytes:
        connection = scope.get(CONNECTION)
        if connection is None or connection.is_accepted:
            return await self._read_body(headers, receive)
        with connection.limits.arriving(connection.address):
            return await self._read_body(headers, receive)

    def _is_allowed_host(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if name == "localhost" or name in (allowed.lower() for allowed in self._service.config.allowed_host):
            return True
        try:
            ipaddress.ip_address(name)  # DNS rebinding needs a name: an address is safe
        except ValueError:
            return False
        return True

    def _is_allowed_origin(self, origin: str, host: str) -> bool:
        return origin in self._service.config.allowed_origin or origin in (f"http://{host}", f"https://{host}")

    async def _read_body(self, headers: Headers, receive: Receive) -> bytes:
        limit = self._service.config.body_limit
        too_large = Refusal(413, f"Invalid request: the body may have at most {limit:,} bytes.")
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdecimal() or int(length[:20]) > limit:
            raise too_large
        chunks: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(_SECONDS_FOR_BODY):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Refusal(499, "The client disconnected.")
                    chunks.append(message.get("body", b""))
                    size += len(chunks[-1])
                    if size > limit:
                        raise too_large
                    if not message.get("more_body", False):
                        return b"".join(chunks)
        except TimeoutError:
            raise Refusal(408, "The body did not arrive in time.") from None

    def _needs_key(self, scope: Scope) -> bool:
        path = route_path(scope)
        return self._service.keys.are_required and path not in PUBLIC_ROUTES and not path.startswith(DOWNLOADS)

    def _check_key(self, scope: Scope, key: str | None) -> None:
        if key is None and route_path(scope) in LIBRETRANSLATE_ROUTES:
            raise Refusal(400, "Please contact the server operator to get an API key")
        if key is None:
            raise Refusal(401, "This request needs a key. Send it as the header Authorization: Bearer KEY.")
        if not self._service.keys.accept(key):
            raise Refusal(403, "Invalid API key")

    def _record(self, scope: Scope, exchange: "_Exchange") -> None:
        route = getattr(scope.get("route"), "path", None) or "other"
        seconds = time.perf_counter() - exchange.began
        self._service.metrics.requests.labels(route, str(exchange.status)).inc()
        self._service.metrics.request_seconds.labels(route).observe(seconds)
        log(
            "request",
            request_id=exchange.request_id,
            method=scope["method"] if scope["method"].isalpha() else "other",
            route=route,
            status=exchange.status,
            seconds=round(seconds, 4),
            received=exchange.received,
            sent=exchange.sent,
        )


class _Exchange:
    """One request and its answer: id, status and sizes for the log."""

    def __init__(self, scope: Scope, send: Send) -> None:
        given = Headers(scope=scope).get("x-request-id", "")
        self.request_id = given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
        self.began = time.perf_counter()
        self.is_admitted = False
        self.status = 499  # the client disconnected; an answer sets its own
        self.received = 0
        self.sent = 0
        self._scope = scope
        self._send = send
        self._has_started = False

    async def send(self, message: Message) -> None:
        """Send a message of the answer, with the headers that all answers have."""
        if message["type"] == "http.response.start":
            self._has_started = True
            self.status = message["status"]
            headers = MutableHeaders(raw=message.setdefault("headers", []))
            for name, value in _HEADERS.items():
                if name not in headers:
                    headers[name] = value
            headers["X-Request-ID"] = self.request_id
        else:
            self.sent += len(message.get("body", b""))
        await self._send(message)

    async def refuse(self, refusal: Refusal) -> None:
        """Answer with an error, unless an answer has begun."""
        if not self._has_started:
            await error_answer(refusal)(self._scope, _receive_disconnect, self.send)


def route_path(scope: Scope) -> str:
    """Return the path of a request without the proxy's `root_path`."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path[len(root) :] if root and path.startswith(root + "/") else path


def _key_outside_body(scope: Scope, headers: Headers) -> str | None:
    """Return the key in a request's header or query."""
    scheme, _, credentials = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and credentials.strip():
        return credentials.strip()
    if "x-api-key" in headers:
        return str(headers["x-api-key"])
    query: dict[str, list[str]] = parse_qs(scope.get("query_string", b"").decode("latin-1"))
    return query["api_key"][0] if "api_key" in query else None


async def _key_in_body(scope: Scope, body: bytes) -> str | None:
    """Return the key in a request's body, where LibreTranslate's clients put it."""
    if not body:
        return None
    fields = await read_fields(Request(scope, _replay(body, _receive_disconnect)), most_files=1)
    return fields["api_key"] if isinstance(fields.get("api_key"), str) and fields["api_key"] else None


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a channel that yields the body, which has been read already, and then what `receive` yields."""
    is_replayed = False

    async def replay() -> Message:
        nonlocal is_replayed
        if is_replayed:
            return await receive()
        is_replayed = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


async def _receive_disconnect() -> Message:
    return {"type": "http.disconnect"}
