"""The running server: uvicorn around the application, signals, and an end with exit code 0."""

import asyncio
import contextlib
import gc
import signal
from collections.abc import Callable, Iterator

import uvicorn

from transduce.errors import RunError
from transduce.serving.application import make_application
from transduce.serving.config import ServingConfig
from transduce.serving.logs import log, log_to_stderr
from transduce.serving.service import Service

_BACKLOG = 2048
_KEEP_ALIVE = 75
# Python's own (700, 10, 10) held the loop up for 8 to 40 ms again and again under a flood; this does for 20, rarely.
_COLLECTED_AFTER = (5_000, 50, 100)


class _Server(uvicorn.Server):
    """uvicorn, but for its signals: it would raise them again at the end, where we exit with 0."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to us."""
        yield


def serve(config: ServingConfig, *, announce: Callable[[str], None] = lambda address: None) -> None:
    """Serve until asked to stop by SIGTERM or Ctrl-C; `announce` is called with the address once it answers."""
    log_to_stderr(config.log_level)
    asyncio.run(_serve(config, announce))


async def _serve(config: ServingConfig, announce: Callable[[str], None]) -> None:
    service = Service(config)
    server = _Server(_settings(config, service))
    is_told = False
    reloads: set[asyncio.Task[None]] = set()

    def reload() -> None:
        task = asyncio.create_task(service.reload())
        reloads.add(task)
        task.add_done_callback(reloads.discard)

    def stop() -> None:
        nonlocal is_told
        if is_told:
            server.force_exit = True
        is_told = True
        service.is_stopping = True
        server.should_exit = True
        starting.cancel()
        log("stopping")

    starting = asyncio.create_task(service.start())
    with _signals(stop, reload=reload):
        try:
            await starting
        except asyncio.CancelledError:
            return
        _shorten_collections()
        announcing = asyncio.create_task(_announce_when_listening(server, announce))
        try:
            await server.serve()
        except SystemExit:  # how uvicorn says that it cannot listen; its reason is in the log
            raise RunError(
                f"Cannot listen on {config.host}:{config.port}: the port is taken or not allowed. "
                "Choose another: --port."
            ) from None
        finally:
            announcing.cancel()
            await service.stop()
    log("stopped")


def _settings(config: ServingConfig, service: Service) -> uvicorn.Config:
    return uvicorn.Config(
        make_application(service),
        host=config.host,
        port=config.port,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(config.trusted_proxy),
        forwarded_allow_ips=list(config.trusted_proxy),
        limit_concurrency=config.connection_limit,
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=int(config.stop_seconds) + 1,
        backlog=_BACKLOG,
        http="h11",  # not what happens to be installed: the faster parser that uvicorn knows takes headers of any size
        ws="none",
    )


def _shorten_collections() -> None:
    """Keep Python's collector from holding requests up: what was loaded stays, and is never gone through again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECTED_AFTER)


async def _announce_when_listening(server: uvicorn.Server, announce: Callable[[str], None]) -> None:
    while not server.started:
        await asyncio.sleep(0.01)
    host, port = server.servers[0].sockets[0].getsockname()[:2]
    address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    log("listening", address=address)
    announce(address)


@contextlib.contextmanager
def _signals(stop: Callable[[], None], *, reload: Callable[[], None]) -> Iterator[None]:
    """Call `stop` on SIGTERM and SIGINT and `reload` on SIGHUP, as far as the system has them."""
    loop = asyncio.get_running_loop()
    wanted = {signal.SIGTERM: stop, signal.SIGINT: stop}
    if hasattr(signal, "SIGHUP"):
        wanted[signal.SIGHUP] = reload
    before = {}
    for number, action in wanted.items():
        # loop.add_signal_handler does not exist on Windows; a plain handler that wakes the loop does everywhere.
        def handle(_number: int, _frame: object, action: Callable[[], None] = action) -> None:
            loop.call_soon_threadsafe(action)

        before[number] = signal.signal(number, handle)
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
