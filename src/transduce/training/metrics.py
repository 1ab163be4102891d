"""What a run measures of itself: metrics.jsonl, one object per report, and the same as TensorBoard events.

Both are a log, not state: a line is flushed but not fsynced, and a run never reads them to go on. When a run is
resumed at a step, lines beyond it are cut, so that no step appears twice.
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
    """Where reports go."""

    def write(self, kind: str, step: int, measures: Measures) -> None:
        """Write what was measured at a step; `kind` is "train" or "valid"."""

    def close(self) -> None:
        """Flush what is left."""


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
    """Events that `tensorboard --logdir` draws, written at once.

    tensorboardX's usual writer hands them to a thread through a queue, which would block for ever once the thread has
    met a full disk.
    """

    def __init__(self, folder: Path, *, resumed_step: int) -> None:
        from tensorboardX.event_file_writer import EventsWriter  # a tenth of a second that only a run with events pays
        from tensorboardX.proto.event_pb2 import Event, SessionLog

        place = folder / EVENTS_FOLDER
        place.mkdir(parents=True, exist_ok=True)
        self._event = Event
        self._writer = EventsWriter(str(place / "events"), filename_suffix=f".{os.getpid()}")
        # TensorBoard forgets what an interrupted start had written beyond this step.
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
        """Add a validation's sample translations as text, each under its source and above its reference."""
        from tensorboardX.summary import text

        for number, sample in enumerate(samples, start=1):
            lines = (sample.source, f"→ {sample.translation}", f"({sample.reference})")
            # TensorBoard reads Markdown: indented lines are shown as they are.
            summary = text(f"samples/{number}", "\n".join(f"    {line}" for line in lines))
            self._writer.write_event(self._event(wall_time=time.time(), step=step, summary=summary))
        self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        self._writer.close()


def read_metrics(path: Path) -> Iterator[dict[str, JsonValue]]:
    """Yield the reports of a metrics file; a line torn by a kill is passed over."""
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            report = json.loads(line)
            int(report["step"])
        except (ValueError, TypeError, KeyError):
            continue
        yield report
