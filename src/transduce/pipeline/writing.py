"""What a model of a run writes for the run's own training text, kept in files as it comes.

Every output is made once: whoever is killed and started again reads what is there and goes on. Of several ranks the
first translates, for it has the model; the others wait as long as it gives signs of life, and hear what it wrote.
Nothing that may change between two starts has a part in what is written.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pydantic import BaseModel, ValidationError

from transduce.data.token_store import TokenStore
from transduce.decoding.config import DecodingConfig
from transduce.files import make_folder, sha256_of_file, sweep, write_atomically
from transduce.model_directory import WEIGHTS
from transduce.progress import Progress
from transduce.training.distributed import World
from transduce.translator.translator import Translator

_SENTENCES_AT_ONCE = 1000

Outputs = tuple[str, ...]
"""What was written for one source, best first; nothing where there is none to learn from."""


class Written(BaseModel, frozen=True):
    """A file of what a model wrote."""

    model: str
    """The SHA-256 of its weights."""
    search: DecodingConfig
    seconds: float
    outputs: tuple[Outputs, ...]
    """Those of every source."""


@dataclass(frozen=True)
class Writing:
    """A model that writes, loaded when there is something left to translate."""

    model: Path
    folder: Path
    """That of the files."""
    search: DecodingConfig
    writer: str
    """Who it is, as a user is told."""
    stop_requested: Callable[[], bool]
    threads: int
    world: World
    progress: Progress

    def outputs(self, store: TokenStore) -> list[Outputs] | None:
        """Return what it writes for every source, or nothing if it was asked to stop."""
        if self.world.is_main:
            make_folder(self.folder)
            sweep(self.folder)
        found: list[Outputs] = []
        with self.progress.stage(f"{self.writer} translates", total=len(store), unit="sentences") as stage:
            for start in range(0, len(store), _SENTENCES_AT_ONCE):
                if self.world.any(self.stop_requested()):
                    return None
                sources = [store.text(n)[0] for n in range(start, min(start + _SENTENCES_AT_ONCE, len(store)))]

                def some(sources: Sequence[str] = sources, start: int = start) -> Sequence[Outputs]:
                    at = self.folder / f"{start:010d}.json"
                    return self._written(sources, at=at) if self.world.is_main else ()

                own = self.world.in_turns(some, doing=f"translating by {self.writer} {start}")
                found += [tuple(outputs) for outputs in json.loads(self.world.broadcast_text(json.dumps(own)))]
                stage.advance(len(sources))
        return found

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of the weights."""
        return sha256_of_file(self.model / WEIGHTS)

    @cached_property
    def _translator(self) -> Translator:
        return Translator.load(self.model, threads=self.threads)

    def _written(self, sources: Sequence[str], *, at: Path) -> Sequence[Outputs]:
        try:
            kept = Written.model_validate_json(at.read_bytes())
        except (OSError, ValidationError):
            kept = None
        if kept is not None and (kept.model, kept.search, len(kept.outputs)) == (
            self.fingerprint,
            self.search,
            len(sources),
        ):
            return kept.outputs
        started = time.monotonic()
        outputs = tuple(
            () if found.refusal or found.missing or found.surplus else tuple(one.text for one in found.alternatives)
            for found in self._translator.translate_all(sources, self.search)
        )
        taken = time.monotonic() - started
        kept = Written(model=self.fingerprint, search=self.search, seconds=taken, outputs=outputs)
        write_atomically(at, kept.model_dump_json() + "\n")
        return outputs
