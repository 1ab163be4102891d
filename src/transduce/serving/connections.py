"""Limits on connections, so that strangers cannot take the places of those who have a key.

A connection is a *stranger's* until a request on it shows a valid key, or a whole request arrives that needs none. Only
strangers' connections and idle ones are closed to make room for a new one, the oldest first. So a client with a key,
which sends its request at once, is served however many others hold connections open.
"""

import asyncio
import logging
import sys
from collections import Counter
from collections.abc import Iterable
from itertools import chain
from typing import Any

import h11
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from transduce.serving.logs import log
from transduce.serving.refusal import Refusal

CONNECTION = "transduce.connection"
_SECONDS_FOR_HEAD = 10.0
_OTHER_DESCRIPTORS = 128  # pipes to processes, files, listening sockets
_MOST_PENDING, _MOST_PENDING_PER_ADDRESS = 256, 64


class Connections:
    """All open connections: which may be closed to make room, and how many bodies of strangers are arriving."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._most_per_address = max(1, limit // 4)
        self._strangers: dict[LimitedProtocol, None] = {}  # in the order of arrival
        self._idle: dict[LimitedProtocol, None] = {}
        self._open = 0
        self._of_strangers: Counter[str] = Counter()
        self._pending: Counter[str] = Counter()

    def opened(self, connection: "LimitedProtocol") -> None:
        """Count a new connection; close the oldest one that has shown no key if there are too many."""
        self._open += 1
        self._strangers[connection] = None
        self._of_strangers[connection.address] += 1
        if self._of_strangers[connection.address] > self._most_per_address:
            self._close_oldest(own for own in self._strangers if own.address == connection.address)
        elif self._open > self._limit:
            others = (own for own in self._strangers if own is not connection)
            self._close_oldest(chain(others, self._idle, [connection]))

    def closed(self, connection: "LimitedProtocol") -> None:
        """Forget a connection."""
        self._open -= 1
        self._leave(connection)

    def accepted(self, connection: "LimitedProtocol") -> None:
        """Keep a connection, on which a request was admitted, until it is idle."""
        self._leave(connection)

    def has_accepted(self, connection: "LimitedProtocol") -> bool:
        """Return whether a connection is no stranger's."""
        return connection not in self._strangers

    def begun(self, connection: "LimitedProtocol") -> None:
        """Keep a connection that was idle while its next request is answered."""
        self._idle.pop(connection, None)

    def finished(self, connection: "LimitedProtocol") -> None:
        """Let a connection be closed that waits for its next request."""
        if connection not in self._strangers:
            self._idle[connection] = None

    def arriving(self, address: str) -> "ArrivingBody":
        """Return a context in which the body of a stranger arrives; a Refusal if too many do."""
        return ArrivingBody(self._pending, address)

    def _leave(self, connection: "LimitedProtocol") -> None:
        self._idle.pop(connection, None)
        if connection in self._strangers:
            del self._strangers[connection]
            self._of_strangers[connection.address] -= 1
            if not self._of_strangers[connection.address]:
                del self._of_strangers[connection.address]

    def _close_oldest(self, candidates: "Iterable[LimitedProtocol]") -> None:
        oldest = next(iter(candidates))
        self._leave(oldest)
        oldest.transport.abort()


class ArrivingBody:
    """The time in which the body of a request without a checked key arrives."""

    def __init__(self, pending: Counter[str], address: str) -> None:
        self._pending, self._address = pending, address

    def __enter__(self) -> None:
        pending, address = self._pending, self._address
        if pending.total() >= _MOST_PENDING or pending[address] >= _MOST_PENDING_PER_ADDRESS:
            raise Refusal(429, "Slowdown: too many requests are arriving. Send the key as a header.", retry_after=1)
        pending[address] += 1

    def __exit__(self, *_: object) -> None:
        self._pending[self._address] -= 1
        if not self._pending[self._address]:
            del self._pending[self._address]


class LimitedProtocol(H11Protocol):
    """uvicorn's HTTP protocol with a time limit for the head of a request, and limits on connections."""

    def __init__(self, connections: Connections, *arguments: Any, **named: Any) -> None:  # noqa: ANN401
        super().__init__(*arguments, **named)
        self.limits, self.address = connections, ""
        self._timer: asyncio.TimerHandle | None = None
        self._is_counted = False
        inner: ASGIApp = self.app

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            scope[CONNECTION] = self
            await inner(scope, receive, send)

        self.app = app

    @property
    def is_accepted(self) -> bool:
        """Whether a request on this connection has shown a key, or needed none."""
        return self.limits.has_accepted(self)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection and wait for a head."""
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        self._is_counted = True
        self._limit_time()
        self.limits.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._unlimit_time()
        if self._is_counted:
            self._is_counted = False
            self.limits.closed(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Pass data on; between requests it must become a whole head in time."""
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._unlimit_time()
            self.limits.begun(self)
        elif (before is None or before.response_complete) and self._timer is None:
            self._limit_time()

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the rest of a body that was refused before it had arrived."""
        super().on_response_complete()
        if not self.transport.is_closing():
            self.limits.finished(self)
            if self.conn.their_state is h11.SEND_BODY:
                self._limit_time()

    def _limit_time(self) -> None:
        self._unlimit_time()
        self._timer = self.loop.call_later(_SECONDS_FOR_HEAD, self.transport.abort)

    def _unlimit_time(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def limited_protocol(limit: int) -> type[LimitedProtocol]:
    """Return the class of uvicorn's protocols, all with the same limits."""
    connections = Connections(limit)

    class Limited(LimitedProtocol):
        def __init__(self, *arguments: Any, **named: Any) -> None:  # noqa: ANN401
            super().__init__(connections, *arguments, **named)

    return Limited


def connections_within_descriptors(limit: int) -> int:
    """Raise the process's limit of file descriptors, and return how many connections fit into it."""
    if sys.platform == "win32":
        return limit
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = limit + _OTHER_DESCRIPTORS
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return limit
    fitting = max(16, soft - _OTHER_DESCRIPTORS)
    log("few file descriptors", level=logging.WARNING, descriptors=soft, connection_limit=fitting)
    return fitting
