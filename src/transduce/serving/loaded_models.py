"""The models that the child holds in memory: each is loaded when a request needs it.

With a limit, the least recently used models are dropped to make room, never the one that was used last.
"""

import gc
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from transduce.architectures import is_text_encoder
from transduce.errors import ModelError
from transduce.extras import require_torch
from transduce.machine import give_back_freed_memory, resident_bytes
from transduce.model_directory import WEIGHTS, find_model, read_description
from transduce.translator import Translator
from transduce.translator.generating import is_language_model
from transduce.translator.several_targets import toward
from transduce.translator.translator import WantedPrecision

if TYPE_CHECKING:
    from transduce.loaded_encoder import LoadedEncoder

    Model = Translator | LoadedEncoder

_TRIAL_TEXT = "a"


def load(folder: Path, *, threads: int, precision: WantedPrecision) -> "Model":
    """Load a translator, or a text encoder."""
    if not is_text_encoder(read_description(folder).architecture):
        return Translator.load(folder, threads=threads, precision=precision)
    require_torch("A text encoder")
    from transduce.loaded_encoder import LoadedEncoder

    return LoadedEncoder.load(folder, threads=threads)


def kind_of(model: "Model") -> str:
    """Return what a model does."""
    if not isinstance(model, Translator):
        return "text-encoder"
    return "language-model" if is_language_model(model.models[0]) else "translation"


def try_out(model: "Model", text: str) -> None:
    """Let a model compute something small for a text."""
    if not isinstance(model, Translator):
        model.attention(text)
    elif is_language_model(model.models[0]):
        model.generate(text, tokens=1)
    else:
        model.translate(text, beam=1, alternatives=1, maximum_length=4)


class LoadedModels:
    """Models by their names."""

    def __init__(
        self,
        folders: Mapping[str, str],
        load: "Callable[[Path], Model]",
        *,
        megabytes: int | None,
        targets: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`targets` has the language of each name that stands for one of several languages of a model."""
        self._targets = targets
        self._folders = folders
        self._load = load
        self._megabytes = megabytes
        self._loaded: dict[str, Model] = {}  # the most recently used last
        self._bytes: dict[str, int] = {}  # what each model took when it was loaded last

    @property
    def names(self) -> list[str]:
        """The models in memory, the least recently used first."""
        return list(self._loaded)

    def __getitem__(self, name: str) -> "Model":
        """Return a model, loaded and tried out if it is not in memory; raise TransduceError if that fails."""
        model = self._loaded.pop(name, None)
        if model is None:
            folder = find_model(self._folders[name])
            size = self._bytes.get(name) or ((folder / WEIGHTS).stat().st_size if (folder / WEIGHTS).exists() else 0)
            self._drop_while_above(size, keep=0)
            before = resident_bytes() or 0
            model = self._toward_other_language(name) or self._load(folder)
            if name in self._targets:
                assert isinstance(model, Translator), "only a model that translates has several targets"
                model = toward(model, self._targets[name])
            try_out(model, _TRIAL_TEXT)
            give_back_freed_memory()
            self._bytes[name] = max(1, (resident_bytes() or 0) - before)
        self._loaded[name] = model
        return model

    def _toward_other_language(self, name: str) -> "Model | None":
        """Return a translator of the same model into another language, whose weights can be shared."""
        same = (own for own in self._loaded if own in self._targets and self._folders[own] == self._folders[name])
        return next((self._loaded[own] for own in same if name in self._targets), None)

    def require_room(self, name: str) -> None:
        """Raise ModelError if the model that was used last does not fit into the limit alone."""
        self.drop_surplus()
        if self._megabytes is not None and self._excess(0) > 0:
            taken = (resident_bytes() or 0) / 1e6
            raise ModelError(
                f"memory_limit = {self._megabytes} MB, but the model process takes {taken:,.0f} MB with the model "
                f"{name} alone. Raise the limit."
            )

    def drop_surplus(self) -> None:
        """Drop models while the process is above the limit, and keep the one that was used last."""
        self._drop_while_above(0, keep=1)

    def _drop_while_above(self, needed: int, *, keep: int) -> None:
        while len(self._loaded) > keep and self._excess(needed) > 0:
            del self._loaded[next(iter(self._loaded))]
            gc.collect()  # tokenizers' caches refer to them
            give_back_freed_memory()

    def _excess(self, needed: int) -> float:
        return 0 if self._megabytes is None else (resident_bytes() or 0) + needed - self._megabytes * 1e6
