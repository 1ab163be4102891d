"""Stopping on signals: Ctrl-C, SIGTERM or SIGHUP stops training after the current step, a second one at once.

Neither loses saved work: a checkpoint that exists is complete.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class StopRequest:
    """A request to stop: true once a signal has asked for it, with the number of that signal."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def __bool__(self) -> bool:
        return self.signal is not None

    def request(self, number: int, frame: FrameType | None = None) -> None:
        """Record the first request; raise KeyboardInterrupt at the second."""
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = number


@contextmanager
def stopping_on_signals(request: StopRequest | None = None) -> Iterator[StopRequest]:
    """Yield a request (a new one unless given) that SIGINT, SIGTERM and SIGHUP set while the block runs.

    SIGHUP comes when a terminal is closed. It stays ignored if it was, as under nohup; Windows lacks it.
    """
    request = StopRequest() if request is None else request
    if threading.current_thread() is not threading.main_thread():
        yield request  # only the main thread may install handlers
        return
    numbers = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, request.request) for number in numbers}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
