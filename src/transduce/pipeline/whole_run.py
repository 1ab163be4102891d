"""A whole run, from text to model, as one stage of a longer list (`run.py`)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from transduce.files import manifest_fault
from transduce.pipeline.averaging import FINISHED
from transduce.pipeline.command import train
from transduce.pipeline.planning import TrainRequest, choose_experiment, read_kept_experiment
from transduce.pipeline.recording import MODEL
from transduce.pipeline.stages import RunStage, StageContext, StopRequested, say_what_it_holds
from transduce.progress import Silent
from transduce.training.trainer import Ending


@dataclass(frozen=True, eq=False)
class WholeRun:
    """Trains a model in a folder that `transduce train --output` could have made."""

    name: str
    folder: Path
    request: TrainRequest
    needs: Sequence[RunStage]
    context: StageContext

    @property
    def result(self) -> Path:
        """The model directory."""
        return self.folder / MODEL

    def is_done(self) -> bool:
        """Return whether the run has ended with these settings, and its model is whole."""
        if not (self.folder / FINISHED).is_file() or manifest_fault(self.result) is not None:
            return False
        asked = choose_experiment(self.request, self.folder, progress=Silent()).experiment
        return asked == read_kept_experiment(self.folder)

    def run(self, *, stop_requested: StopRequested) -> bool:
        """Train from where an earlier start ended."""
        self.context.progress.note(f"{self.name} in {self.folder}")
        say_what_it_holds(self.folder, f"{self.name}: a run as of `transduce train`; model/ is the model.")
        result = train(self.request, self.folder, progress=self.context.progress, stop_requested=stop_requested)
        return result.ending is not Ending.STOPPED
