"""What was measured, on what, and how: written beside the model, so that a number can be traced and repeated.

<model>-evaluations/2026-11-20T142233Z-test.de/
    record.json         date, data hashes, search, precision, averaging, protocol, scores with signatures, speed
    hypotheses.txt      what was scored, one line for each sentence
    reference-1.txt     what it was scored against; with it `compare` can test significance years later
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, Field, ValidationError

from transduce.errors import DataError
from transduce.evaluation.scores import Score
from transduce.evaluation.significance import Difference
from transduce.files import directory_written_atomically
from transduce.model_directory import bundled_models
from transduce.version import __version__

RECORD, HYPOTHESES = "record.json", "hypotheses.txt"


class Speed(BaseModel, frozen=True, extra="forbid"):
    """How fast the test set was translated, and on what."""

    seconds: float
    sentences_per_second: float
    tokens_per_second: float
    """Target pieces written, end marks included."""
    threads: int
    processor: str


class Overlap(BaseModel, frozen=True, extra="forbid"):
    """Test sentences that the model was trained on, and what is left of the score without them."""

    sentences: int
    """How many sources of the test set were also in the training text."""
    scores_without: tuple[Score, ...] = ()
    """Scores of the others alone; empty if there are no others."""


class EvaluationRecord(BaseModel, frozen=True, extra="forbid"):
    """One evaluation, complete enough to be repeated."""

    transduce: str = __version__
    date: datetime = Field(default_factory=lambda: datetime.now(UTC).replace(microsecond=0))
    system: str
    """The model or the file of hypotheses that was scored, as the user named it."""
    model_sha256: str | None = None
    """Of the weights, if a model translated."""
    test: str
    """The test set as the user named it."""
    data: dict[str, str]
    """SHA-256 of the sources and of each list of references, as lines of UTF-8 text ended by newlines."""
    sentences: int
    target_language: str | None = None
    beam: int | None = None
    length_penalty: float | None = None
    shortlist: bool | None = None
    consensus: bool | None = None
    precision: str | None = None
    averaging: str | None = None
    """Which checkpoints the weights are the mean of."""
    protocol: str
    scores: tuple[Score, ...]
    perplexity_per_piece: float | None = None
    perplexity_per_byte: float | None = None
    speed: Speed | None = None
    overlap: Overlap | None = None
    """Unset where the model does not know what it was trained on."""
    compared_with: str | None = None
    differences: tuple[Difference, ...] = ()


@dataclass(frozen=True)
class Evaluation:
    """A record with the texts it is about."""

    folder: Path
    record: EvaluationRecord
    hypotheses: list[str]
    references: list[list[str]]


def hash_of_lines(lines: Sequence[str]) -> str:
    """Return the SHA-256 of the lines as a text file: the same as `sha256sum` of a plain UTF-8 file of them."""
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line.encode("utf-8", errors="surrogatepass") + b"\n")
    return digest.hexdigest()


def evaluations_folder(model: Path) -> Path:
    """Return where the evaluations of a model directory are kept: beside it; of a bundled one, in the user's folder."""
    model = model.absolute()
    if model in bundled_models().values():
        return Path.cwd() / f"{model.name}-evaluations"
    return model.with_name(f"{model.name}-evaluations")


def write_evaluation(
    model: Path, record: EvaluationRecord, *, hypotheses: Sequence[str], references: Sequence[Sequence[str]]
) -> Path:
    """Write an evaluation beside the model directory; return its folder."""
    texts = {HYPOTHESES: hypotheses}
    texts.update({f"reference-{number}.txt": lines for number, lines in enumerate(references, start=1)})
    folder = _free_name(evaluations_folder(model), record)
    with directory_written_atomically(folder) as beside:
        (beside / RECORD).write_text(record.model_dump_json(indent=2) + "\n", encoding="utf-8", newline="\n")
        for name, lines in texts.items():
            content = "".join(f"{_one_line(line)}\n" for line in lines)
            (beside / name).write_bytes(content.encode("utf-8", errors="replace"))
    return folder


def read_evaluations(model: Path) -> list[Evaluation]:
    """Return the evaluations kept beside a model directory, oldest first."""
    folders = sorted(path.parent for path in evaluations_folder(model).glob(f"*/{RECORD}"))
    return sorted((_read_evaluation(folder) for folder in folders), key=lambda evaluation: evaluation.record.date)


def _read_evaluation(folder: Path) -> Evaluation:
    try:
        record = EvaluationRecord.model_validate_json((folder / RECORD).read_bytes())
        hypotheses = _read_lines(folder / HYPOTHESES)
        numbers = range(1, 1 + sum(1 for _ in folder.glob("reference-*.txt")))
        references = [_read_lines(folder / f"reference-{number}.txt") for number in numbers]
    except (ValidationError, OSError, UnicodeDecodeError) as fault:
        reason = str(fault).splitlines()[0]
        raise DataError(f"{folder} is no whole evaluation: {reason}. Delete the folder, then evaluate again.") from None
    return Evaluation(folder=folder, record=record, hypotheses=hypotheses, references=references)


def _read_lines(path: Path) -> list[str]:
    return path.read_bytes().decode("utf-8").removesuffix("\n").split("\n")


def _one_line(line: str) -> str:
    return re.sub(r"[\r\n]+", " ", line)


def _free_name(parent: Path, record: EvaluationRecord) -> Path:
    test = re.sub(r"[^\w.-]+", "-", Path(record.test.split(",")[-1]).name).strip("-.") or "test"
    stem = f"{record.date.astimezone(UTC):%Y-%m-%dT%H%M%SZ}-{test}"
    names = [stem, *(f"{stem}-{number}" for number in range(2, 1000))]
    return next(parent / name for name in names if not (parent / name).exists())
