"""Reports of a run: means over the steps since the last report, for the metrics and the progress bar."""

import contextlib
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import JsonValue

from transduce.errors import RunError
from transduce.machine import peak_memory
from transduce.progress import Stage
from transduce.training.config import TrainingConfig
from transduce.training.metrics import JsonLines, TensorBoardEvents
from transduce.training.state import TrainingProgress
from transduce.training.step import StepReport, sum_of_counts
from transduce.training.validation import Validation

_EARLY_STEPS = (1, 2, 5, 10, 20)
"""Further steps with a report, so that a short run has curves too."""


class Reports:
    """Collects steps and writes a line of metrics every `report_every` steps; only rank 0 writes."""

    def __init__(self, folder: Path, config: TrainingConfig, *, resumed_step: int, is_main: bool) -> None:
        self.folder, self.report_every = folder, config.report_every
        self.collected: list[StepReport] = []
        self.writers: Sequence[JsonLines | TensorBoardEvents] = ()
        if is_main:
            folder.mkdir(parents=True, exist_ok=True)
            lines = JsonLines(folder, resumed_step=resumed_step)
            self.writers = (
                [lines, TensorBoardEvents(folder, resumed_step=resumed_step)] if config.tensorboard else [lines]
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for writer in self.writers:
            with contextlib.suppress(OSError):  # do not hide an earlier exception behind a failed flush
                writer.close()

    def add(self, state: TrainingProgress, report: StepReport, stage: Stage) -> None:
        """Collect a step; write and show the means if a report is due."""
        self.collected.append(report)
        stage.advance()
        is_early = state.step in _EARLY_STEPS and state.step < self.report_every
        if is_early or state.step % self.report_every == 0:
            self.report(state, stage)

    def report(self, state: TrainingProgress, stage: Stage) -> None:
        """Write and show the means of the steps since the last report, if there are any."""
        if not self.collected:
            return
        measures = means(self.collected)
        self._write("train", state, measures)
        stage.describe(f"loss {measures['loss']:.3f}, {measures['tokens_per_second']:,.0f} tokens/s")
        self.collected.clear()

    def add_validation(self, state: TrainingProgress, validation: Validation) -> None:
        """Write the numbers and samples of a validation."""
        self._write("valid", state, validation.measures())
        with self._disk_faults_explained(state.step):
            for writer in self.writers:
                if isinstance(writer, TensorBoardEvents):
                    writer.write_samples(state.step, validation.samples)

    def _write(self, kind: str, state: TrainingProgress, measures: dict[str, JsonValue] | dict[str, float]) -> None:
        seconds = round(state.seconds, 3)
        line: dict[str, JsonValue] = {"epoch": state.epoch, "tokens": state.tokens, "seconds": seconds, **measures}
        with self._disk_faults_explained(state.step):
            for writer in self.writers:
                writer.write(kind, state.step, line)

    @contextlib.contextmanager
    def _disk_faults_explained(self, step: int) -> Iterator[None]:
        try:
            yield
        except OSError as fault:
            raise RunError(
                f"The metrics of step {step:,} could not be written to {self.folder} ({fault.strerror}). Free disk "
                "space or repair the disk, then run the same command again: it resumes from the newest checkpoint."
            ) from fault


def means(reports: Sequence[StepReport]) -> dict[str, float]:
    """Return the means of some steps over their tokens, the learning rate of the last, and the peak memory."""
    counts = sum_of_counts(report.counts for report in reports)
    nll = counts.nll / counts.tokens
    measures = {
        "loss": counts.objective / counts.tokens,
        "nll": nll,
        "perplexity": math.exp(min(nll, 700.0)),
        "accuracy": counts.correct / counts.tokens,
        "learning_rate": reports[-1].rate,
        "gradient_norm": sum(report.gradient_norm for report in reports) / len(reports),
        "tokens_per_second": counts.tokens / sum(report.seconds for report in reports),
        "tokens_per_step": counts.tokens / len(reports),
        "padding": 1.0 - counts.tokens / counts.positions,
    }
    peak = peak_memory()
    return measures if peak is None else {**measures, "peak_memory_mb": round(peak / 1e6)}
