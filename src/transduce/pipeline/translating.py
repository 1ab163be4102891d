"""The stage that translates a corpus with a model, and keeps the translations in files as they come.

    FOLDER/written/0000001000.json    the translations of sentences 1000 to 1999

Each file is made once: a start after a kill reads those that are there and goes on with the next. Of several ranks the
first translates, because it has the model; the others wait, and get the translations from it. No setting that may
change between two starts has an influence on the translations.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from pydantic import BaseModel, ValidationError

from transduce.data.token_store import TokenStore
from transduce.decoding.config import DecodingConfig
from transduce.files import make_folder, sha256_of_file, sweep, write_atomically
from transduce.model_directory import WEIGHTS
from transduce.pipeline.stages import RunStage, StageContext, StopRequested
from transduce.translator.translator import Translator

_SENTENCES_AT_ONCE = 1000

Outputs = tuple[str, ...]
"""The translations of one source, best first; empty where there is none to learn from."""


class Translations(BaseModel, frozen=True):
    """A file of translations."""

    model: str
    """The SHA-256 of the model's weights."""
    search: DecodingConfig
    seconds: float
    outputs: tuple[Outputs, ...]
    """Those of every source."""


@dataclass(frozen=True, eq=False)
class TranslationStage:
    """Translates the sources of a store with the model that an earlier stage leaves."""

    name: str
    model: Path
    store: TokenStore
    search: DecodingConfig
    folder: Path
    threads: int
    needs: Sequence[RunStage]
    context: StageContext

    @property
    def leaves(self) -> Path:
        """The files of translations."""
        return self.folder / "written"

    def is_done(self) -> bool:
        """Return whether there is a file for every sentence, made by the model as it is now."""
        if not self.context.world.is_main:
            return True
        weights = self._weights()
        return weights is not None and all(self._kept(part, weights) is not None for part in self._parts())

    def run(self, *, stop_requested: StopRequested) -> bool:
        """Translate what is not translated yet."""
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
        """Return what writes the translations of a part, unless they are there; it loads the model when it must."""
        make_folder(self.leaves)
        sweep(self.leaves)
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
            made = Translations(model=weights, search=self.search, seconds=seconds, outputs=outputs)
            write_atomically(self._file(part), made.model_dump_json() + "\n")

        return translate

    def _weights(self) -> str | None:
        """Return the SHA-256 of the model's weights, or None if there is no model."""
        file = self.model / WEIGHTS
        return sha256_of_file(file) if file.is_file() else None

    def _file(self, part: range) -> Path:
        return self.leaves / f"{part.start:010d}.json"

    def _kept(self, part: range, weights: str) -> Translations | None:
        """Return the translations of a part if they are there, complete, and of this model and search."""
        try:
            kept = Translations.model_validate_json(self._file(part).read_bytes())
        except (OSError, ValidationError):
            return None
        return kept if (kept.model, kept.search, len(kept.outputs)) == (weights, self.search, len(part)) else None
