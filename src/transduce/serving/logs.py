"""The log: one JSON object per line on stderr, with event, request id and duration.

It never contains a text, a key or a client's address. An exception is logged by type and source lines, without its
message, which could quote the user's text.
"""

import json
import logging
import sys
import time
import traceback
from pathlib import Path
from typing import Any

LOGGER = "transduce.serving"
_REFUSALS_A_SECOND = 100


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as a line."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        content: dict[str, Any] = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        content.update(getattr(record, "fields", {}))
        if record.exc_info and record.exc_info[0] is not None:
            content["exception"] = record.exc_info[0].__name__
            content["at"] = source_lines(record.exc_info[1])
        return json.dumps(content, ensure_ascii=True)


class BoundedRefusals(logging.Filter):
    """Leaves out log lines about refused requests beyond 100 a second, and logs how many it left out."""

    def __init__(self) -> None:
        super().__init__()
        self._second, self._seen, self._left_out = 0, 0, 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to write a record."""
        status = getattr(record, "fields", {}).get("status", 0)
        if record.name == LOGGER and not 400 <= status < 500 and status != 503:
            return True
        if int(record.created) != self._second:
            left_out, self._second, self._seen, self._left_out = self._left_out, int(record.created), 0, 0
            if left_out:
                log("lines left out", level=logging.WARNING, count=left_out)
        self._seen += 1
        self._left_out += self._seen > _REFUSALS_A_SECOND
        return self._seen <= _REFUSALS_A_SECOND


def source_lines(fault: BaseException | None) -> list[str]:
    """Return the traceback of an exception as file:line, innermost first."""
    frames = traceback.extract_tb(fault.__traceback__) if fault is not None else []
    return [f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames)]


def log(event: str, *, level: int = logging.INFO, **fields: object) -> None:
    """Log an event with named values."""
    logging.getLogger(LOGGER).log(level, event, extra={"fields": fields})


def log_to_stderr(level: str) -> None:
    """Send the records of this package and of uvicorn to stderr as JSON."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    handler.addFilter(BoundedRefusals())
    for name in (LOGGER, "uvicorn", "uvicorn.error", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers = [handler] if name != "uvicorn.error" else []
        logger.propagate = name == "uvicorn.error"
        logger.setLevel(level.upper() if name == LOGGER else "WARNING")
