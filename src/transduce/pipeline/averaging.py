"""Averaging by hand: another mean of a run's checkpoints into its model (section 6.1)."""

from pathlib import Path

from transduce.errors import RunError
from transduce.files import locked
from transduce.model_directory import load_model, save_model
from transduce.pipeline.run import LOCK
from transduce.training.averaging import average_last


def average_run(run: Path, *, last: int) -> tuple[int, ...]:
    """Average the newest `last` checkpoints of a run into its model, and return their steps."""
    if not (run / "model").is_dir():
        raise RunError(f"{run} has no model yet: it gets one at its first validation. Train on, then average.")
    with locked(run / LOCK, purpose="averaging"):
        model = load_model(run / "model")
        averaged = average_last(run, last=last)
        training = {**model.description.training, "averaged": list(averaged.steps)}
        training.pop("validation", None)  # measured on other weights
        description = model.description.model_copy(update={"training": training, "weights": "float32"})
        card = (model.folder / "README.md").read_text(encoding="utf-8")
        note = f"> Averaged by hand from the checkpoints of steps {', '.join(map(str, averaged.steps))}.\n\n"
        save_model(
            model.folder,
            description,
            averaged.weights,
            tokenizers=model.tokenizers,
            card=note + card,
            training_hashes=model.training_hashes(),
            shortlist=model.shortlist(),
        )
    return averaged.steps
