"""Stages that make pairs from text in one language: a model writes the other side, part by part (`bulk/parts.py`).

    FOLDER/written/    the model's outputs for the text, a file for every thousand lines
    FOLDER/scores/     with a reverse model: log p of each line of the text given its output, per token
    FOLDER/pairs/      pairs.tsv, and pairs.json, which says how many were left out and why

Each folder has a README.md that says what it holds.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from pydantic import BaseModel, JsonValue

from transduce.bulk.parts import (
    Header,
    LargeText,
    Output,
    Part,
    Shard,
    fill,
    finished_parts,
    journals,
    lines_of_parts,
    parts_of_lines,
)
from transduce.bulk.translation import PartTranslation
from transduce.data.sentence_hashes import are_known, hashes_after_folding
from transduce.decoding.config import DecodingOptions
from transduce.errors import DataError, RunError
from transduce.files import file_written_atomically, sha256_of_file, write_atomically
from transduce.model_directory import WEIGHTS, find_model
from transduce.pipeline.divided_pairs import DividedPairs
from transduce.pipeline.stages import RunStage, StageContext, StopRequested, say_what_it_holds
from transduce.sealed_record import sealed, unsealed
from transduce.translator import Glossary, Translator
from transduce.translator.several_targets import toward

PART_LINES = 1_000
_PAIRS_AT_ONCE = 256
_AT_ONCE_TO_WRITE = 10_000


@dataclass(frozen=True)
class WritingModel:
    """A model, or several as an ensemble, and the search with which it writes."""

    names: tuple[str, ...]
    search: DecodingOptions
    threads: int | None = None

    def settings(self) -> dict[str, JsonValue]:
        """Return what its outputs depend on."""
        weights = [sha256_of_file(find_model(name) / WEIGHTS) for name in self.names]
        return {"models": [*weights], "search": json.loads(json.dumps(self.search))}

    def opened(self) -> Callable[[Part], Output]:
        """Load the model, and return what translates a part with it."""
        translator = toward(Translator.load(*self.names, threads=self.threads), None)
        plain: DecodingOptions = {"keep_placeholders": "report", "keep_form": False, **self.search}
        return PartTranslation(translator, translator.configure(**plain), Glossary(()), leaves_incomplete_out=True)


@dataclass(frozen=True)
class ScoringModel:
    """A model that scores pairs: log p of the second text given the first, per token."""

    name: str
    threads: int | None = None

    def settings(self) -> dict[str, JsonValue]:
        """Return what the scores depend on."""
        return {"model": sha256_of_file(find_model(self.name) / WEIGHTS)}

    def opened(self) -> Callable[[Part], Output]:
        """Load the model, and return what scores a part whose lines are pairs."""
        translator = Translator.load(self.name, precision="auto", threads=self.threads)

        def scored(part: Part) -> Output:
            rows = [line.partition("\t")[::2] for line in part.lines]
            scores = []
            for start in range(0, len(rows), _PAIRS_AT_ONCE):
                found = translator.likelihood(rows[start : start + _PAIRS_AT_ONCE])
                scores += [sum(one.log_probabilities) / len(one.log_probabilities) for one in found]
            return Output([f"{score:.4f}" for score in scores])

        return scored


@dataclass(frozen=True, eq=False)
class PartsStage:
    """Makes the output of a model for a text, in a folder of parts."""

    name: str
    result: Path
    model: WritingModel | ScoringModel
    text: LargeText
    needs: Sequence[RunStage]
    context: StageContext
    written: "PartsStage | LargeText | None" = None
    """The stage, or files, whose outputs stand before the lines of the text, as pairs to score."""

    @property
    def folder(self) -> Path:
        """The folder of the result."""
        return self.result

    def is_done(self) -> bool:
        """Return whether every line of the text has its output."""
        try:
            finished_parts(self.result)
            return journals(self.result)[0].header == self.header()
        except (RunError, OSError):
            return False

    def run(self, *, stop_requested: StopRequested) -> bool:
        """Make the parts that are missing."""
        self.context.progress.note(f"{self.name} in {self.result}")
        say_what_it_holds(self.result, f"{self.name}: *.txt in the order of their names have a line for each line.")
        header = self.header()
        return fill(
            self.result,
            self._parts(),
            header,
            self._make,
            progress=self.context.progress,
            stop_requested=stop_requested,
        )

    @cached_property
    def _make(self) -> Callable[[Part], Output]:
        opened: list[Callable[[Part], Output]] = []

        def make(part: Part) -> Output:
            if not opened:  # a start that finds every part made loads no model
                opened.append(self.model.opened())
            return opened[0](part)

        return make

    def lines(self) -> Iterator[str]:
        """Yield the outputs, once the stage is done."""
        return lines_of_parts(self.result)

    def _parts(self) -> Iterator[Part]:
        if self.written is None:
            return self.text.parts()
        pairs = _zipped(_outputs(self.written), lines_of(self.text), self.text)
        return parts_of_lines((f"{_cell(given)}\t{_cell(wanted)}" for given, wanted in pairs), part_lines=PART_LINES)

    def header(self) -> Header:
        """Return all that the outputs depend on besides the text."""
        settings = {**self.model.settings(), "sizes of the files": _sizes(self.text)}
        if self.written is not None:
            settings["of"] = _made_by(self.written)
        return Header(shard=Shard(), files=tuple(path.name for path in self.text.files), settings=settings)


class PairsRecord(BaseModel, frozen=True, extra="forbid"):
    """The content of pairs.json."""

    made_from: dict[str, JsonValue]
    sha256_of_pairs: str
    kept: int
    left_out: dict[str, int]


@dataclass(frozen=True, eq=False)
class PairsStage:
    """Joins a text and what a model wrote for it to pairs, without the empty and the worst ones."""

    folder: Path
    text: LargeText
    written: PartsStage | LargeText
    """The stage that wrote the other side, or files of it."""
    context: StageContext
    text_is_target: bool = False
    scores: PartsStage | None = None
    worst: float = 0.0
    """The share of pairs with the lowest scores that is left out."""
    held_out: DividedPairs | None = None
    """The stage that says which sentences are held out."""
    name: str = "collecting pairs"

    @property
    def result(self) -> Path:
        """The pairs, source first."""
        return self.folder / "pairs.tsv"

    @property
    def needs(self) -> Sequence[RunStage]:
        """What wrote, what scored, and what says which sentences are held out."""
        return [
            stage for stage in (self.written, self.scores, self.held_out) if not isinstance(stage, LargeText | None)
        ]

    def is_done(self) -> bool:
        """Return whether the pairs are whole, and were made from these outputs and scores."""
        try:
            record = self.record()
            return record.made_from == self._made_from() and sha256_of_file(self.result) == record.sha256_of_pairs
        except (OSError, ValueError):
            return False

    def record(self) -> PairsRecord:
        """Return how many pairs there are."""
        return PairsRecord.model_validate(unsealed((self.folder / "pairs.json").read_bytes()))

    def run(self, *, stop_requested: StopRequested) -> bool:
        """Write the pairs; this is quick, so it ignores `stop_requested`."""
        say_what_it_holds(self.folder, "pairs.tsv: a text and what a model wrote for it, source first.")
        left_out, kept = Counter[str](), 0
        with (
            self.context.progress.stage(self.name, unit="pairs") as stage,
            file_written_atomically(self.result) as file,
        ):
            for some in parts_of_lines(self._judged(left_out), part_lines=_AT_ONCE_TO_WRITE):
                file.write("".join(f"{line}\n" for line in some.lines).encode())
                kept += len(some.lines)
                stage.advance(len(some.lines))
        if not kept:
            why = ", ".join(f"{count:,} {reason}" for reason, count in left_out.items()) or "there is no line"
            raise DataError(f"No pair is left of {', '.join(map(str, self.text.files))}: {why}. Give other text.")
        record = PairsRecord(
            made_from=self._made_from(), sha256_of_pairs=sha256_of_file(self.result), kept=kept, left_out=left_out
        )
        write_atomically(self.folder / "pairs.json", sealed(json.loads(record.model_dump_json())))
        listed = "".join(f", {count:,} {why}" for why, count in left_out.items())
        self.context.progress.note(f"{kept:,} pairs in {self.result}{listed}")
        return True

    def _judged(self, left_out: Counter[str]) -> Iterator[str]:
        scores = self._scores() if self.scores else None
        limit = -math.inf if scores is None else float(np.quantile(scores, self.worst))
        held_out = np.array([], dtype=np.uint64) if self.held_out is None else self.held_out.held_out()
        for number, (own, other) in enumerate(_zipped(lines_of(self.text), _outputs(self.written), self.text)):
            if not own.strip() or not other.strip():
                left_out["left out without text on a side"] += 1
            elif scores is not None and scores[number] < limit:
                left_out[f"left out with a score below {limit:.2f}"] += 1
            elif len(held_out) and are_known(hashes_after_folding([own, other]), held_out).any():
                left_out["left out because they are held out"] += 1
            else:
                yield "\t".join(_cell(side) for side in ((other, own) if self.text_is_target else (own, other)))

    def _scores(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        assert self.scores is not None
        return np.fromiter(map(float, self.scores.lines()), dtype=np.float64)

    def _made_from(self) -> dict[str, JsonValue]:
        made: dict[str, JsonValue] = {"worst": self.worst, "text_is_target": self.text_is_target}
        made |= {"text": _sizes(self.text), "written": _made_by(self.written)}
        return made if self.scores is None else {**made, "scores": _made_by(self.scores)}


def _made_by(written: PartsStage | LargeText) -> JsonValue:
    if isinstance(written, LargeText):
        return _sizes(written)
    found: JsonValue = json.loads(written.header().model_dump_json())
    return found


def _sizes(text: LargeText) -> list[JsonValue]:
    return [path.stat().st_size for path in text.files]


def _outputs(written: PartsStage | LargeText) -> Iterator[str]:
    return lines_of(written) if isinstance(written, LargeText) else written.lines()


def lines_of(text: LargeText) -> Iterator[str]:
    """Yield the lines of a text."""
    return (line for part in text.parts() for line in part.lines)


def _cell(text: str) -> str:
    return " ".join(text.split("\t")).strip("\r")


def _zipped(text: Iterator[str], written: Iterator[str], named: LargeText) -> Iterator[tuple[str, str]]:
    try:
        yield from zip(text, written, strict=True)
    except ValueError:
        raise DataError(
            f"The outputs have more or fewer lines than {', '.join(map(str, named.files))}. Line n of one must be the "
            "translation of line n of the other."
        ) from None
