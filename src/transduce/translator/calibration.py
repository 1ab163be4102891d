"""The calibration of a model: what `transduce calibrate` learned about it from pairs that it was not trained on.

    calibration.json    the weights of the confidence, and the words that stand in for placeholders

The file is optional. It belongs to one set of weights, whose SHA-256 it names; with other weights it is not used.
"""

import json
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field, ValidationError, field_validator

from transduce.errors import ModelError
from transduce.files import require_regular, sha256_of_file, write_atomically
from transduce.model_directory import WEIGHTS
from transduce.translator.confidence import FEATURES, ConfidenceModel

CALIBRATION = "calibration.json"
_LARGEST = 1 << 16
StandIn = Annotated[str, Field(min_length=1, max_length=40)]


class Calibration(BaseModel, frozen=True, extra="forbid"):
    """The content of calibration.json."""

    version: Literal[1] = 1
    weights: str
    """The SHA-256 of the weights that it belongs to."""
    stand_ins: tuple[StandIn, ...] = ()
    """Words that the model copies, best first; empty if it copies the symbols of placeholders."""
    confidence: ConfidenceModel | None = None
    deciles: tuple[tuple[float, float], ...] = ()
    """Mean confidence and share of good translations in each tenth of the held-out pairs, lowest confidence first."""

    @field_validator("confidence")
    @classmethod
    def has_a_weight_for_each_figure(cls, confidence: ConfidenceModel | None) -> ConfidenceModel | None:
        """Refuse a regression on another number of figures."""
        if confidence is not None:
            lengths = {len(confidence.means), len(confidence.deviations), len(confidence.weights)}
            if lengths != {FEATURES}:
                raise ValueError(f"the confidence needs {FEATURES} means, deviations and weights")
        return confidence


def read_calibration(folder: Path) -> Calibration | None:
    """Read the calibration of a model directory; None if it has none, or if it is for other weights."""
    path = folder / CALIBRATION
    if not path.exists():
        return None
    try:
        require_regular(folder, CALIBRATION, most=_LARGEST)
        calibration = Calibration.model_validate_json(path.read_bytes())
    except (OSError, ValueError, ValidationError) as fault:
        reason = fault.errors()[0]["msg"] if isinstance(fault, ValidationError) else fault
        raise ModelError(f"{path} is damaged: {reason}. Run `transduce calibrate` again, or delete it.") from None
    return calibration if calibration.weights == sha256_of_file(folder / WEIGHTS) else None


def write_calibration(folder: Path, calibration: Calibration) -> Path:
    """Write the calibration into a model directory."""
    write_atomically(folder / CALIBRATION, json.dumps(calibration.model_dump(mode="json"), indent=1) + "\n")
    return folder / CALIBRATION
