"""The metrics of a run: metrics.jsonl, one JSON object per report, and the same numbers as TensorBoard events.

Both are logs: a line is flushed but not fsynced, and resuming a run does not need them. A run that resumes at a step
deletes the lines of later steps, so that no step appears twice.
"""

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent

from pydantic import JsonValue

from transduce.files import write_atomically

METRICS_FILE = "metrics.jsonl"
FINAL = "final"
"""The kind of the line with the validation of the finished model, which may be an average of checkpoints."""
EVENTS_FOLDER = "tensorboard"

Measures = Mapping[str, JsonValue]


@dataclass(frozen=True)
class Sample:
    """A validation sentence and its current translation."""

    source: str
    reference: str
    translation: str


class JsonLines:
    """metrics.jsonl: one JSON object per line, with `step` and `kind`."""

    def __init__(self, folder: Path, *, resumed_step: int) -> None:
        self.path = folder / METRICS_FILE
        if self.path.exists():
            _write_lines(self.path, (line for line in _unfinished(self.path) if int(str(line["step"])) <= resumed_step))
        self._file = self.path.open("a", encoding="utf-8", newline="\n")

    def write(self, kind: str, step: int, measures: Measures) -> None:
        """Append the measures of a step as one line; `kind` is "train" or "valid"."""
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
        # A START event makes TensorBoard drop the events of later steps, which an interrupted start wrote.
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
            lines = f"{sample.source}\n→ {sample.translation}\n({sample.reference})"
            # TensorBoard renders Markdown, which shows indented lines verbatim; a language model writes several.
            summary = text(f"samples/{number}", indent(lines, "    ", predicate=lambda line: True))
            self._writer.write_event(self._event(wall_time=time.time(), step=step, summary=summary))
        self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        self._writer.close()


def write_final(folder: Path, step: int, measures: Measures) -> None:
    """Write the validation of the finished model to metrics.jsonl, in place of an earlier one."""
    path = folder / METRICS_FILE
    earlier = _unfinished(path) if path.exists() else []
    _write_lines(path, [*earlier, {"kind": FINAL, "step": step, **measures}])


def _unfinished(path: Path) -> list[dict[str, JsonValue]]:
    return [line for line in read_metrics(path) if line.get("kind") != FINAL]


def _write_lines(path: Path, lines: Iterable[Measures]) -> None:
    write_atomically(path, "".join(json.dumps(line, allow_nan=False) + "\n" for line in lines))


def read_metrics(path: Path) -> Iterator[dict[str, JsonValue]]:
    """Yield the reports of a metrics file; skip a line that a kill left incomplete, or a bad disk damaged."""
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            report = json.loads(line)
            int(report["step"])
        except (ValueError, TypeError, KeyError, OverflowError):
            continue
        yield report
