"""One JSON object a line on stderr: what happened, to which request, how long it took. Never a text, a key, an address.

Messages of exceptions are left out, since they may quote what a user wrote: type and place remain.
"""

import json
import logging
import sys
import time
import traceback
from pathlib import Path
from typing import Any

LOGGER = "transduce.serving"


class JsonLines(logging.Formatter):
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
            content["at"] = places_of(record.exc_info[1])
        return json.dumps(content, ensure_ascii=True)


def places_of(fault: BaseException | None) -> list[str]:
    """Return where an exception came from, innermost first."""
    frames = traceback.extract_tb(fault.__traceback__) if fault is not None else []
    return [f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames)]


def log(event: str, *, level: int = logging.INFO, **fields: object) -> None:
    """Log an event with its fields."""
    logging.getLogger(LOGGER).log(level, event, extra={"fields": fields})


def log_to_stderr(level: str) -> None:
    """Send our own and uvicorn's records to stderr as JSON."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in (LOGGER, "uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers = [handler] if name != "uvicorn.error" else []
        logger.propagate = name == "uvicorn.error"
        logger.setLevel(level.upper() if name == LOGGER else "WARNING")
