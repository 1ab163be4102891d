"""The stage that translates a corpus with a model, and writes a file for every thousand sentences.

    FOLDER/written/0000001000.json    the translations of sentences 1000 to 1999

Each file is written once: a start after a kill keeps the files that exist and continues with the next. Only rank 0
translates, because it has the model; it sends the translations to the other ranks. No setting that may change between
two starts affects the translations.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from pydantic import BaseModel

from transduce.data.token_store import TokenStore
from transduce.decoding.config import DecodingConfig
from transduce.files import make_folder, remove_leftovers, sha256_of_file, write_atomically
from transduce.model_directory import WEIGHTS
from transduce.pipeline.stages import RunStage, StageContext, StopRequested
from transduce.sealed_record import sealed, unsealed
from transduce.translator.translator import Translator

_SENTENCES_AT_ONCE = 1000

Outputs = tuple[str, ...]
"""The translations of one source, best first; empty if none is usable."""


class Translations(BaseModel, frozen=True, extra="forbid"):
    """The content of a file of translations."""

    model: str
    """The SHA-256 of the model's weights."""
    search: DecodingConfig
    seconds: float
    outputs: tuple[Outputs, ...]
    """The translations of every source of the file."""


@dataclass(frozen=True, eq=False)
class TranslationStage:
    """Translates the sources of a store with the model of an earlier stage."""

    name: str
    model: Path
    store: TokenStore
    search: DecodingConfig
    folder: Path
    threads: int
    needs: Sequence[RunStage]
    context: StageContext

    @property
    def result(self) -> Path:
        """The files of translations."""
        return self.folder / "written"

    def is_done(self) -> bool:
        """Return whether every sentence is in a file, translated by the current model."""
        if not self.context.world.is_main:
            return True
        weights = self._weights()
        return weights is not None and all(self._kept(part, weights) is not None for part in self._parts())

    def run(self, *, stop_requested: StopRequested) -> bool:
        """Translate the sentences that are in no file yet."""
        world, translate = self.context.world, self._translation() if self.context.world.is_main else lambda part: None
        with self.context.progress.stage(self.name, total=len(self.store), unit="sentences") as stage:
            for part in self._parts():
                if world.any(stop_requested()):
                    return False
                world.in_turns(partial(translate, part), doing=f"{self.name} {part.start}")
                stage.advance(len(part))
        return True

    def outputs(self) -> list[Outputs]:
        """Return the translations of every source, on every rank."""
        world, found = self.context.world, list[Outputs]()
        weights = self._weights() if world.is_main else None
        for part in self._parts():
            kept = self._kept(part, weights) if weights is not None else None
            assert kept is not None or not world.is_main, "this stage is done"
            text = world.broadcast_text(json.dumps(kept.outputs if kept else ()))
            found += [tuple(outputs) for outputs in json.loads(text)]
        return found

    def _parts(self) -> Iterator[range]:
        for start in range(0, len(self.store), _SENTENCES_AT_ONCE):
            yield range(start, min(start + _SENTENCES_AT_ONCE, len(self.store)))

    def _translation(self) -> Callable[[range], None]:
        """Return a function that writes the file of a part unless it exists; it loads the model at its first use."""
        make_folder(self.result)
        remove_leftovers(self.result)
        weights = sha256_of_file(self.model / WEIGHTS)
        load = cache(partial(Translator.load, self.model, threads=self.threads))

        def translate(part: range) -> None:
            if self._kept(part, weights) is not None:
                return
            started = time.monotonic()
            outputs = tuple(
                () if found.refusal or found.missing or found.surplus else tuple(one.text for one in found.alternatives)
                for found in load().translate_all([self.store.text(n)[0] for n in part], self.search)
            )
            seconds = time.monotonic() - started
            content = Translations(model=weights, search=self.search, seconds=seconds, outputs=outputs)
            write_atomically(self._file(part), sealed(json.loads(content.model_dump_json())))

        return translate

    def _weights(self) -> str | None:
        """Return the SHA-256 of the model's weights, or None if there is no model."""
        file = self.model / WEIGHTS
        return sha256_of_file(file) if file.is_file() else None

    def _file(self, part: range) -> Path:
        return self.result / f"{part.start:010d}.json"

    def _kept(self, part: range, weights: str) -> Translations | None:
        """Return the translations of a part if its file is complete and was made by this model and search."""
        try:
            kept = Translations.model_validate(unsealed(self._file(part).read_bytes()))
        except (OSError, ValueError):
            return None
        return kept if (kept.model, kept.search, len(kept.outputs)) == (weights, self.search, len(part)) else None
