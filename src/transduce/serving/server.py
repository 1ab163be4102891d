"""The server process: uvicorn, signals, and a clean exit with code 0."""

import asyncio
import contextlib
import gc
import signal
import socket
import sys
from collections.abc import Callable, Iterator

import uvicorn

from transduce.errors import RunError
from transduce.serving.application import make_application
from transduce.serving.config import ServingConfig
from transduce.serving.connections import connections_within_descriptors, limited_protocol
from transduce.serving.logs import log, log_to_stderr
from transduce.serving.service import Service

_BACKLOG = 2048
_KEEP_ALIVE = 75
# Under load, Python's default (700, 10, 10) often stops the event loop for 8 to 40 ms; these rarely do, for 20 ms.
_COLLECTION_THRESHOLDS = (5_000, 50, 100)


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers, which would end the process by the signal instead of with code 0."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Install no handlers: `_handle_signals` does."""
        yield


def serve(config: ServingConfig, *, announce: Callable[[str], None] = lambda address: None) -> None:
    """Serve until SIGTERM or Ctrl-C; call `announce` with the address once the server listens."""
    _require_free_port(config)
    log_to_stderr(config.log_level)
    asyncio.run(_serve(config, announce))


def _require_free_port(config: ServingConfig) -> None:
    """Raise RunError if the server cannot listen, before the models are loaded."""
    try:
        addresses = socket.getaddrinfo(config.host, config.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, kind, protocol, _, address in addresses:
            with socket.socket(family, kind, protocol) as trial:
                if sys.platform != "win32":  # on Windows this option lets two servers share a port
                    trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                trial.bind(address)
    except OSError as fault:
        raise _cannot_listen(config, str(fault.strerror)) from fault


def _cannot_listen(config: ServingConfig, reason: str) -> RunError:
    return RunError(
        f"Cannot listen on {config.host}:{config.port}: {reason}. Choose another port or address: --port, --host."
    )


async def _serve(config: ServingConfig, announce: Callable[[str], None]) -> None:
    service = Service(config)
    server = _Server(_uvicorn_config(config, service))
    is_stopping = False
    reloads: set[asyncio.Task[None]] = set()

    def reload() -> None:
        task = asyncio.create_task(service.reload())
        reloads.add(task)
        task.add_done_callback(reloads.discard)

    def stop() -> None:
        nonlocal is_stopping
        if is_stopping:
            server.force_exit = True
        is_stopping = True
        service.is_stopping = True
        server.should_exit = True
        starting.cancel()
        log("stopping")

    starting = asyncio.create_task(service.start())
    with _handle_signals(stop, reload=reload):
        try:
            await starting
        except asyncio.CancelledError:
            return
        _tune_garbage_collection()
        announcing = asyncio.create_task(_announce_when_listening(server, announce))
        try:
            await server.serve()
        except SystemExit:  # the port was free before the models were loaded; uvicorn's reason is in the log
            raise _cannot_listen(config, "the port is taken or not allowed") from None
        finally:
            announcing.cancel()
            await service.stop()
    log("stopped")


def _uvicorn_config(config: ServingConfig, service: Service) -> uvicorn.Config:
    return uvicorn.Config(
        make_application(service),
        host=config.host,
        port=config.port,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(config.trusted_proxy),
        forwarded_allow_ips=list(config.trusted_proxy),
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=int(config.stop_seconds) + 1,
        backlog=_BACKLOG,
        http=limited_protocol(connections_within_descriptors(config.connection_limit)),
        ws="none",
    )


def _tune_garbage_collection() -> None:
    """Shorten the pauses of garbage collection: run it less often, and never scan the objects loaded so far."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECTION_THRESHOLDS)


async def _announce_when_listening(server: uvicorn.Server, announce: Callable[[str], None]) -> None:
    while not server.started:
        await asyncio.sleep(0.01)
    host, port = server.servers[0].sockets[0].getsockname()[:2]
    address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    log("listening", address=address)
    announce(address)


@contextlib.contextmanager
def _handle_signals(stop: Callable[[], None], *, reload: Callable[[], None]) -> Iterator[None]:
    """Call `stop` on SIGTERM and SIGINT, and `reload` on SIGHUP, which Windows lacks."""
    loop = asyncio.get_running_loop()
    actions = {signal.SIGTERM: stop, signal.SIGINT: stop}
    if hasattr(signal, "SIGHUP"):
        actions[signal.SIGHUP] = reload
    before = {}
    for number, action in actions.items():
        # loop.add_signal_handler does not exist on Windows; a plain handler that wakes the loop works everywhere.
        def handle(_number: int, _frame: object, action: Callable[[], None] = action) -> None:
            loop.call_soon_threadsafe(action)

        before[number] = signal.signal(number, handle)
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
