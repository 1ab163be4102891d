"""The metrics of a run: metrics.jsonl, one JSON object per report, and the same numbers as TensorBoard events.

Both are logs: a line is flushed but not fsynced, and resuming a run does not need them. A run that resumes at a step
deletes the lines of later steps, so that no step appears twice.
"""

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from pydantic import JsonValue

from transduce.files import write_atomically
from transduce.training.validation import Sample

METRICS_FILE = "metrics.jsonl"
EVENTS_FOLDER = "tensorboard"

Measures = Mapping[str, JsonValue]


class MetricsWriter(Protocol):
    """A destination of reports."""

    def write(self, kind: str, step: int, measures: Measures) -> None:
        """Write the measures of a step; `kind` is "train" or "valid"."""

    def close(self) -> None:
        """Flush and close the file."""


class JsonLines:
    """metrics.jsonl: one JSON object per line, with `step` and `kind`."""

    def __init__(self, folder: Path, *, resumed_step: int) -> None:
        self.path = folder / METRICS_FILE
        if self.path.exists():
            kept = [line for line in read_metrics(self.path) if int(str(line["step"])) <= resumed_step]
            write_atomically(self.path, "".join(json.dumps(line) + "\n" for line in kept))
        self._file = self.path.open("a", encoding="utf-8", newline="\n")

    def write(self, kind: str, step: int, measures: Measures) -> None:
        """Append one line."""
        self._file.write(json.dumps({"kind": kind, "step": step, **measures}, allow_nan=False) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class TensorBoardEvents:
    """Events for `tensorboard --logdir`, written by the calling thread.

    tensorboardX's own writer passes events through a queue to a thread. On a full disk that thread dies, and the queue
    blocks forever.
    """

    def __init__(self, folder: Path, *, resumed_step: int) -> None:
        from tensorboardX.event_file_writer import EventsWriter  # takes 0.1 s, so only runs with events import it
        from tensorboardX.proto.event_pb2 import Event, SessionLog

        place = folder / EVENTS_FOLDER
        place.mkdir(parents=True, exist_ok=True)
        self._event = Event
        self._writer = EventsWriter(str(place / "events"), filename_suffix=f".{os.getpid()}")
        # It makes TensorBoard drop the events of later steps, which an interrupted start has written.
        restart = SessionLog(status=SessionLog.START)
        self._writer.write_event(Event(wall_time=time.time(), step=resumed_step + 1, session_log=restart))
        self._writer.flush()

    def write(self, kind: str, step: int, measures: Measures) -> None:
        """Add a scalar for each number."""
        from tensorboardX.summary import scalar

        for name, value in measures.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                summary = scalar(f"{kind}/{name}", value)
                self._writer.write_event(self._event(wall_time=time.time(), step=step, summary=summary))
        self._writer.flush()

    def write_samples(self, step: int, samples: Sequence[Sample]) -> None:
        """Add the sample translations of a validation as text: source, translation, reference."""
        from tensorboardX.summary import text

        for number, sample in enumerate(samples, start=1):
            lines = (sample.source, f"→ {sample.translation}", f"({sample.reference})")
            # TensorBoard renders Markdown, which shows indented lines verbatim.
            summary = text(f"samples/{number}", "\n".join(f"    {line}" for line in lines))
            self._writer.write_event(self._event(wall_time=time.time(), step=step, summary=summary))
        self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        self._writer.close()


def read_metrics(path: Path) -> Iterator[dict[str, JsonValue]]:
    """Yield the reports of a metrics file; skip a line that a kill left incomplete."""
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            report = json.loads(line)
            int(report["step"])
        except (ValueError, TypeError, KeyError):
            continue
        yield report
