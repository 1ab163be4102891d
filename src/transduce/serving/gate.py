"""The gate: what every request passes before any route sees it, and every answer on its way out.

In this order: the name under which we are addressed (so that no foreign page can rebind its own name to us), the
origin of a browser's page, whether there is room in the queue, the size of the body and the time it takes to arrive,
and the key. A route that is not listed as public needs a key. Whatever goes wrong inside becomes `{"error": …}`
without a trace of the code.
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

from transduce.serving.bodies import fields_of, refusal_response
from transduce.serving.logs import log, places_of
from transduce.serving.pages import PAGE_ROUTES
from transduce.serving.refusal import Refusal
from transduce.serving.service import Service

LIBRETRANSLATE_ROUTES = frozenset(
    {"/translate", "/translate_file", "/detect", "/languages", "/frontend/settings", "/health"}
)
QUEUED_ROUTES = frozenset(
    {"/translate", "/translate_file", "/v1/translate", "/v1/likelihood", "/v1/attention", "/v1/attention/numbers"}
    | {"/v1/attention/page"}
)
"""What the child has to work for."""
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
"""What answers without a key: the pages themselves, what the API looks like, which languages there are, health,
and a translated file, whose name is a secret of its own.
"""
_ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_NOTHING_LOADS = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
_REQUEST_ID = re.compile(r"[\w.-]{1,64}")
_SECONDS_FOR_BODY = 15.0


class Gate:
    """An ASGI application around another."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._service = service
        self._inside = 0  # requests that the child has to work for, from their admission to their answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass, or answer it here."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        passage = _Passage(scope, send)
        scope["state"] = {**scope.get("state", {}), "request_id": passage.request_id}
        scope["root_path"] = self._service.config.root_path
        try:
            try:
                body = await self._admit(scope, receive, passage)
                await self._app(scope, _replayed(body, receive), passage.send)
            except Refusal as refusal:
                await passage.refuse(refusal)
            except Exception as fault:
                log(
                    "fault",
                    level=logging.ERROR,
                    request_id=passage.request_id,
                    exception=type(fault).__name__,
                    at=places_of(fault),
                )
                await passage.refuse(Refusal(500, "This request met a fault of the server."))
        finally:
            self._inside -= passage.is_inside
            self._record(scope, passage)

    async def _admit(self, scope: Scope, receive: Receive, passage: "_Passage") -> bytes:
        headers = Headers(scope=scope)
        if not self._is_our_name(headers.get("host", "")):
            raise Refusal(
                400, "This server does not answer under that name. Its operator can allow it: --allowed-host."
            )
        origin = headers.get("origin")
        if origin is not None and not self._is_our_page(origin, headers.get("host", "")):
            raise Refusal(
                403, "Pages of that origin may not call this server. Its operator can allow it: --allowed-origin."
            )
        if self._service.is_stopping:
            raise Refusal(503, "The server stops.", retry_after=5)
        if scope["method"] == "POST" and route_path(scope) in QUEUED_ROUTES:
            # Before its body is read or its key looked at: under overload a refusal must cost next to nothing.
            self._service.dispatcher.refuse_if_full(inside=self._inside)
            self._inside += 1
            passage.is_inside = True
        body = await self._read_body(headers, receive)
        passage.received = len(body)
        is_preflight = scope["method"] == "OPTIONS" and "access-control-request-method" in headers
        if not is_preflight:
            await self._check_key(scope, headers, body)
        return body

    def _is_our_name(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if name == "localhost" or name in (allowed.lower() for allowed in self._service.config.allowed_host):
            return True
        try:
            ipaddress.ip_address(name)  # an address cannot be rebound: only names can
        except ValueError:
            return False
        return True

    def _is_our_page(self, origin: str, host: str) -> bool:
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
                        raise Refusal(499, "The client has gone.")
                    chunks.append(message.get("body", b""))
                    size += len(chunks[-1])
                    if size > limit:
                        raise too_large
                    if not message.get("more_body", False):
                        return b"".join(chunks)
        except TimeoutError:
            raise Refusal(408, "The body did not arrive in time.") from None

    async def _check_key(self, scope: Scope, headers: Headers, body: bytes) -> None:
        path = route_path(scope)
        keys = self._service.keys
        if not keys.are_required or path in PUBLIC_ROUTES or path.startswith(DOWNLOADS):
            return
        key = await _key_of(scope, headers, body)
        if key is None and path in LIBRETRANSLATE_ROUTES:
            raise Refusal(400, "Please contact the server operator to get an API key")
        if key is None:
            raise Refusal(401, "This needs a key: Authorization: Bearer KEY.")
        if not keys.open_to(key):
            raise Refusal(403, "Invalid API key")

    def _record(self, scope: Scope, passage: "_Passage") -> None:
        route = getattr(scope.get("route"), "path", None) or "other"
        seconds = time.perf_counter() - passage.began
        self._service.metrics.requests.labels(route, str(passage.status)).inc()
        self._service.metrics.request_seconds.labels(route).observe(seconds)
        log(
            "request",
            request_id=passage.request_id,
            method=scope["method"] if scope["method"].isalpha() else "other",
            route=route,
            status=passage.status,
            seconds=round(seconds, 4),
            received=passage.received,
            sent=passage.sent,
        )


class _Passage:
    """One request on its way through: its number, its answer's status and size."""

    def __init__(self, scope: Scope, send: Send) -> None:
        given = Headers(scope=scope).get("x-request-id", "")
        self.request_id = given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
        self.began = time.perf_counter()
        self.is_inside = False
        self.status = 499
        self.received = 0
        self.sent = 0
        self._scope = scope
        self._send = send
        self._has_started = False

    async def send(self, message: Message) -> None:
        """Pass a message of the answer on, with the headers that all answers have."""
        if message["type"] == "http.response.start":
            self._has_started = True
            self.status = message["status"]
            headers = MutableHeaders(raw=message.setdefault("headers", []))
            for name, value in {**_ALWAYS, "Content-Security-Policy": _NOTHING_LOADS}.items():
                if name not in headers:
                    headers[name] = value
            headers["X-Request-ID"] = self.request_id
        else:
            self.sent += len(message.get("body", b""))
        await self._send(message)

    async def refuse(self, refusal: Refusal) -> None:
        """Answer with a refusal, unless an answer has begun."""
        if not self._has_started:
            await refusal_response(refusal)(self._scope, _nothing, self.send)


def route_path(scope: Scope) -> str:
    """Return the path as routes are written, without the path that a proxy put before it."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path[len(root) :] if root and path.startswith(root + "/") else path


async def _key_of(scope: Scope, headers: Headers, body: bytes) -> str | None:
    """Return the key that a request carries: in a header, in its query, or in its body as LibreTranslate's do."""
    scheme, _, credentials = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and credentials.strip():
        return credentials.strip()
    if "x-api-key" in headers:
        return str(headers["x-api-key"])
    query: dict[str, list[str]] = parse_qs(scope.get("query_string", b"").decode("latin-1"))
    if "api_key" in query:
        return query["api_key"][0]
    found = (await fields_of(Request(scope, _replayed(body, _nothing)), files=1)).get("api_key") if body else None
    return found if isinstance(found, str) and found else None


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return a channel that gives the body, already read, and then whatever else arrives: the client's going."""
    is_told = False

    async def replay() -> Message:
        nonlocal is_told
        if is_told:
            return await receive()
        is_told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


async def _nothing() -> Message:
    return {"type": "http.disconnect"}
