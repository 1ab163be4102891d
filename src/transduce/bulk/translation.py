"""Translation of the parts of a large text; a translation does not depend on which process makes it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

from pydantic import JsonValue

from transduce.bulk.parts import Output, Part
from transduce.decoding.config import DecodingConfig, DecodingOptions
from transduce.translator.lines import on_one_line, translate_lines
from transduce.translator.terminology import Glossary
from transduce.translator.translation import Translation
from transduce.translator.translator import Translator, WantedPrecision


@dataclass(frozen=True)
class PartTranslation:
    """How to translate a part: with which translator, search and glossary."""

    translator: Translator
    search: DecodingConfig
    glossary: Glossary
    leaves_incomplete_out: bool = False
    """Whether a translation that lost or invented a placeholder becomes an empty line."""

    def __call__(self, part: Part) -> Output:
        """Return the translations of a part."""
        found = list(
            translate_lines(self.translator, part.lines, self.search, glossary=self.glossary, first=part.first)
        )
        notes = {
            "left empty": sum(bool(one.refusal) for one in found),
            "without a placeholder, number or term of their source": sum(
                bool(one.missing or one.missing_numbers or self.glossary.absent(one.source, one.text)) for one in found
            ),
            "with bytes that are not UTF-8": part.damaged,
        }
        return Output([on_one_line("" if self._is_left_out(one) else one.text) for one in found], notes)

    def _is_left_out(self, found: Translation) -> bool:
        return self.leaves_incomplete_out and bool(found.missing or found.surplus)

    @property
    def settings(self) -> dict[str, JsonValue]:
        """All that the translations depend on besides the text."""
        calibration = self.translator.calibration
        settings = {
            "model": self.translator.fingerprint,
            "search": self.search.model_dump(mode="json"),
            "glossary": [self.glossary.mode, *map(str, self.glossary.terms)],
            "stand-ins": calibration.stand_ins if calibration else (),
        }
        return dict(json.loads(json.dumps(settings)))


class MapTranslation:
    """A class for `Dataset.map_batches` of Ray Data: adds the translations of a column of texts as another column.

        dataset.map_batches(MapTranslation, fn_constructor_kwargs={"model": "en-de"}, compute=…, num_cpus=1)

    Each actor loads the model once. With `sample` a text's draws depend on its place in its batch.
    """

    def __init__(
        self,
        model: str | Sequence[str],
        *,
        source: str = "text",
        target: str = "translation",
        precision: WantedPrecision = "auto",
        threads: int = 1,
        **options: Unpack[DecodingOptions],
    ) -> None:
        """`model` is a name or path, or several for an ensemble; `options` are those of `Translator.translate`."""
        names = [model] if isinstance(model, str) else model
        self.source, self.target = source, target
        self.translator = Translator.load(*names, precision=precision, threads=threads)
        self.search = self.translator.configure(**options)

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Return the batch, a dictionary of arrays, with its translations."""
        texts = [str(text) for text in batch[self.source]]
        return {**batch, self.target: [one.text for one in self.translator.translate_all(texts, self.search)]}
