"""Records of evaluations, written next to the model so that every score can be traced and repeated.

<model>-evaluations/2026-11-20T142233Z-test.de/
    record.json         date, data hashes, search, precision, averaging, protocol, scores with signatures, speed
    hypotheses.txt      the hypotheses, one line for each sentence
    reference-1.txt     the references; `compare` tests significance with them
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
    """The speed of translating the test set, and the hardware."""

    seconds: float
    sentences_per_second: float
    tokens_per_second: float
    """Target tokens, end tokens included."""
    threads: int
    processor: str


class Overlap(BaseModel, frozen=True, extra="forbid"):
    """The number of test sentences that the model was trained on, and the scores without them."""

    sentences: int
    """The number of sources of the test set that were also in the training text."""
    scores_without: tuple[Score, ...] = ()
    """Scores of the other sentences; empty if there are none."""


class TranslationSettings(BaseModel, frozen=True, extra="forbid"):
    """The model and search that produced hypotheses; the search is None for hypotheses from a file."""

    model_sha256: str | None = None
    """SHA-256 of the weights."""
    beam: int | None = None
    length_penalty: float | None = None
    shortlist: bool | None = None
    consensus: bool | None = None
    precision: str | None = None
    averaging: str | None = None
    """The checkpoints that the weights are the mean of."""


class EvaluationRecord(TranslationSettings, frozen=True, extra="forbid"):
    """Everything that is needed to repeat an evaluation, and its results."""

    transduce: str = __version__
    date: datetime = Field(default_factory=lambda: datetime.now(UTC).replace(microsecond=0))
    system: str
    """The model or the file of hypotheses, as the user named it."""
    test: str
    """The test set as the user named it."""
    data: dict[str, str]
    """SHA-256 of the sources and of each list of references, as UTF-8 text files with a newline after each line."""
    sentences: int
    target_language: str | None = None
    protocol: str
    scores: tuple[Score, ...]
    perplexity_per_piece: float | None = None
    perplexity_per_byte: float | None = None
    speed: Speed | None = None
    overlap: Overlap | None = None
    """Not set if the model does not keep hashes of its training text."""
    compared_with: str | None = None
    differences: tuple[Difference, ...] = ()


@dataclass(frozen=True)
class Evaluation:
    """A record with its hypotheses and references."""

    folder: Path
    record: EvaluationRecord
    hypotheses: list[str]
    references: list[list[str]]


def hash_of_lines(lines: Sequence[str]) -> str:
    """Return the SHA-256 of the lines as a UTF-8 text file, as `sha256sum` would print it."""
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line.encode("utf-8", errors="surrogatepass") + b"\n")
    return digest.hexdigest()


def evaluations_folder(model: Path) -> Path:
    """Return the folder of a model's evaluations: next to the model, or in the current folder for a bundled model."""
    model = model.absolute()
    if model in bundled_models().values():
        return Path.cwd() / f"{model.name}-evaluations"
    return model.with_name(f"{model.name}-evaluations")


def write_evaluation(
    model: Path, record: EvaluationRecord, *, hypotheses: Sequence[str], references: Sequence[Sequence[str]]
) -> Path:
    """Write an evaluation into the folder of the model's evaluations; return its path."""
    texts = {HYPOTHESES: hypotheses}
    texts.update({f"reference-{number}.txt": lines for number, lines in enumerate(references, start=1)})
    folder = _free_name(evaluations_folder(model), record)
    with directory_written_atomically(folder) as temporary:
        (temporary / RECORD).write_text(record.model_dump_json(indent=2) + "\n", encoding="utf-8", newline="\n")
        for name, lines in texts.items():
            content = "".join(f"{_one_line(line)}\n" for line in lines)
            (temporary / name).write_bytes(content.encode("utf-8", errors="replace"))
    return folder


def read_evaluations(model: Path) -> list[Evaluation]:
    """Return the evaluations of a model directory, oldest first."""
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
        raise DataError(
            f"The evaluation {folder} is damaged: {reason}. Delete the folder, then evaluate again."
        ) from None
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
