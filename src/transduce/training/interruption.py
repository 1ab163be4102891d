"""Ctrl-C and SIGTERM ask training to stop after the step under way; a second one stops it at once.

Nothing saved is lost either way: a checkpoint that exists is whole.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class StopRequest:
    """Whether someone has asked to stop, and by which signal."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def __bool__(self) -> bool:
        return self.signal is not None

    def request(self, number: int, frame: FrameType | None = None) -> None:
        """Note the first request; at the second, stop now."""
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = number


@contextmanager
def stopping_on_signals(request: StopRequest | None = None) -> Iterator[StopRequest]:
    """Yield a request, a new one unless given, that SIGINT and SIGTERM fill in while the block runs."""
    request = StopRequest() if request is None else request
    if threading.current_thread() is not threading.main_thread():
        yield request  # only the main thread may install handlers
        return
    before = {number: signal.signal(number, request.request) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
