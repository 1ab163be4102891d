"""The translator: joins tokenizer, network and search, and turns texts into `Translation`s.

It cuts a text into sentences, replaces their placeholders by symbols, encodes them, searches batches of similar length,
and puts the results together in the original order. The translation of a sentence does not depend on the other
sentences of its batch.

Loading and translating leave the host process as it was: torch's threads are set only while a translator computes, and
only if `threads` was given.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from pydantic import ValidationError

from transduce.data.shortlist import Shortlist
from transduce.decoding.config import DecodingConfig, DecodingOptions
from transduce.decoding.ensemble import Ensemble
from transduce.decoding.forced import forced_log_probabilities
from transduce.decoding.hypothesis import Hypothesis
from transduce.engine import Precision, can_be_frozen, choose_precision, freeze
from transduce.errors import ConfigError, DataError, ModelError
from transduce.extras import require_torch
from transduce.files import sha256_of_file
from transduce.inspection.pair import TokenizedSentence, forced_pair, found_pair, text_alone
from transduce.machine import available_cores
from transduce.model_directory import SHORTLIST, WEIGHTS, Languages, ModelDirectory, find_model, load_model
from transduce.networks.stepwise import Stepwise
from transduce.text.sentence_form import in_small_letters
from transduce.translator.assembly import Assembler
from transduce.translator.calibration import Calibration, read_calibration
from transduce.translator.confidence import ConfidenceModel
from transduce.translator.consensus import Decode
from transduce.translator.cutting import TextCutter, sentences_to_search
from transduce.translator.enforcement import Enforcement, refuse_drawn_terms
from transduce.translator.generating import (
    GenerationOptions,
    each_inside,
    encoded_texts,
    generation_config,
    is_language_model,
    require_language_model,
    windows,
    written_after,
)
from transduce.translator.inspecting import choose_all, choose_lines, choose_sentence
from transduce.translator.model_decoding import decoding_of
from transduce.translator.parsing import parse_all, writes_trees
from transduce.translator.searching import Searcher, Sentence
from transduce.translator.terminology import Glossary
from transduce.translator.translation import Likelihood, Translation

if TYPE_CHECKING:
    from transduce.inspection.contract import HeadNumbersEntry
    from transduce.inspection.report import AttentionReport
    from transduce.torch_models import Inspection, TorchModels

WantedPrecision = Precision | Literal["auto"]
_LONGEST_UNLESS_KNOWN = 256


class Translator:
    """A translator with one model, or with several as an ensemble."""

    def __init__(
        self, models: Sequence[ModelDirectory], *, precision: WantedPrecision = "auto", threads: int | None = None
    ) -> None:
        if not models:
            raise ModelError("Give at least one model to translate with.")
        fingerprints = {model.tokenizers.fingerprint for model in models}
        if len(fingerprints) > 1:
            raise ModelError("Models of an ensemble must share one tokenizer; these have different ones.")
        self.tokenizers = models[0].tokenizers
        self._threads = threads
        configs = [model.description.architecture for model in models]
        self.precision = choose_precision(precision, configs)
        self.is_frozen = can_be_frozen(self.precision, configs)
        if self.is_frozen:
            steppers: list[Stepwise[Any]] = [_frozen(model, self.precision) for model in models]
            models = [replace(model, parameters={}) for model in models]  # frees the float32 weights
            self._weights = [model.read_again for model in models]
        else:
            self._weights = [partial(_same, model) for model in models]
            steppers = self._torch.steppers()
        self.models = tuple(models)
        self.stepper: Stepwise[Any] = steppers[0] if len(steppers) == 1 else Ensemble(steppers)
        self.decoding = decoding_of(models[0])

    @classmethod
    def load(cls, *names: str | Path, precision: WantedPrecision = "auto", threads: int | None = None) -> "Translator":
        """Load a model directory, a run or a bundled model by name; several become an ensemble.

        `precision` is int8, bf16 or float32; auto takes the fastest that this processor has.
        """
        return cls([load_model(find_model(str(name))) for name in names], precision=precision, threads=threads)

    @property
    def threads(self) -> int:
        """The number of threads that translate: unless given, one per processor, or torch's own setting."""
        return self._threads or (available_cores() if self.is_frozen else self._torch.threads)

    @property
    def languages(self) -> Languages:
        """The source and target language, if the model names them."""
        return self.models[0].description.languages

    @cached_property
    def _torch(self) -> "TorchModels":
        """The torch networks: in bf16 if the precision is bf16, else in float32."""
        require_torch("Attention" if self.is_frozen else f"Translating in {self.precision}")
        from transduce.torch_models import TorchModels

        return TorchModels(self._weights, "bf16" if self.precision == "bf16" else "float32", self._threads)

    @cached_property
    def _float32(self) -> Stepwise[Any]:
        """The first model in float32, computed by the C++ core."""
        return self.stepper if self.precision == "float32" else _frozen(self.models[0].read_again(), "float32")

    @cached_property
    def fingerprint(self) -> str:
        """An identifier of models, tokenizers, precision and shortlist: equal for equal ones."""
        weights = [sha256_of_file(model.folder / WEIGHTS) for model in self.models]
        lists = [sha256_of_file(m.folder / SHORTLIST) for m in self.models[:1] if (m.folder / SHORTLIST).is_file()]
        return " ".join([*weights, self.tokenizers.fingerprint, self.precision, *lists])

    def computing(self) -> AbstractContextManager[None]:
        """Return a context in which torch, if it computes, has this translator's threads."""
        return nullcontext() if self.is_frozen else self._torch.computing()

    @property
    def longest_sentence(self) -> int:
        """The length of the longest sentence that the model was trained on, in pieces with the end token."""
        return self.models[0].description.longest_sentence or _LONGEST_UNLESS_KNOWN

    @overload
    def translate(  # type: ignore[overload-overlap]  # a str is an iterable of str, too
        self, text: str, *, glossary: Glossary = ..., **options: Unpack[DecodingOptions]
    ) -> Translation: ...
    @overload
    def translate(
        self, text: Iterable[str], *, glossary: Glossary = ..., **options: Unpack[DecodingOptions]
    ) -> list[Translation]: ...

    def translate(
        self,
        text: str | Iterable[str],
        *,
        glossary: Glossary = Glossary(()),  # noqa: B008 - it is frozen
        **options: Unpack[DecodingOptions],
    ) -> Translation | list[Translation]:
        """Translate a text, or each of several; `options` are those of `DecodingConfig`, such as beam=4.

        A text may be a paragraph: its sentences are translated one by one and put together again.
        """
        config = self.configure(**options)
        if isinstance(text, str):
            return self.translate_all([text], config, glossary=glossary)[0]
        return self.translate_all(list(text), config, glossary=glossary)

    def configure(self, **options: Unpack[DecodingOptions]) -> DecodingConfig:
        """Return the settings of the search: the model's own, replaced by those in `options`."""
        try:
            return DecodingConfig.model_validate({**self.decoding.model_dump(), **options})
        except ValidationError as fault:
            first = fault.errors()[0]
            where = ".".join(map(str, first["loc"]))
            message = first["msg"].removeprefix("Value error, ")
            raise ConfigError(f"{where}: {message}" if where else message) from None

    def translate_all(
        self,
        texts: Sequence[str],
        config: DecodingConfig,
        *,
        numbers: Sequence[int] | None = None,
        prefixes: Sequence[str] | None = None,
        glossary: Glossary = Glossary(()),  # noqa: B008 - it is frozen
    ) -> list[Translation]:
        """Translate texts with one configuration; `numbers` are the keys of the random draws.

        The first sentence of a text must begin with the text's prefix, if `prefixes` are given. Terms of the `glossary`
        are enforced or preferred, as its mode says.
        """
        require_language_model(self.models[0], wanted=False)
        refuse_drawn_terms(config, glossary)
        cut = replace(self._cutter, keep_form=config.keep_form).cut(texts)
        sentences = sentences_to_search(cut, self.tokenizers.target, numbers=numbers, prefixes=prefixes)
        found: list[dict[int, tuple[Sentence, list[Hypothesis]]]] = [{} for _ in texts]
        decode = lru_cache(maxsize=None)(self.tokenizers.target.decode)  # each check and the result need the same texts
        searched = self._search(sentences, config, glossary=glossary, decode=decode)
        for sentence, hypotheses in zip(sentences, searched, strict=True):
            found[sentence.text][sentence.place] = (sentence, hypotheses)
        target, language = self.tokenizers.target, self.languages.target
        assembler = Assembler(target, decode, language, config, glossary, self._confidence)
        return [
            Translation.refused(text, own.refusal) if own.refusal else assembler.translation(text, own.parts, outputs)
            for text, own, outputs in zip(texts, cut, found, strict=True)
        ]

    def likelihood(self, pairs: Sequence[tuple[str, str]]) -> list[Likelihood]:
        """Return the log-probability of each pair's target, given its source; each is taken as one sentence."""
        assert len(self.models) == 1, "likelihood is defined for one model"
        encoded = self.tokenizers.encode_pairs(pairs)
        if self.is_frozen:
            rows = forced_log_probabilities(self._float32, encoded)
        else:
            rows = self._torch.log_probabilities(encoded)
        return [
            Likelihood(tuple(self.tokenizers.target.piece(token) for token in target), tuple(row))
            for (_, target), row in zip(encoded, rows, strict=True)
        ]

    def generate(self, prompt: str = "", **options: Unpack[GenerationOptions]) -> str:
        """Return what a language model writes after a prompt; `options` are those of `GenerationConfig`."""
        return "".join(self.stream(prompt, **options))

    def stream(self, prompt: str = "", **options: Unpack[GenerationOptions]) -> Iterator[str]:
        """Return the parts of the text of `generate`, each as soon as it is written; options are checked before."""
        require_language_model(self.models[0], wanted=True)
        config = generation_config(self.models[0], **options)
        return each_inside(self.computing, written_after(self.stepper, self.tokenizers.target, prompt, config))

    def text_likelihood(self, text: str) -> Likelihood:
        """Return the log-probability of each token of a text under a language model; an end token is a line break.

        A model of lines or documents (`data.unit`) reads each from its beginning, as in training.
        """
        require_language_model(self.models[0], wanted=True)
        texts = encoded_texts(self.models[0], self.tokenizers.target, text)
        longest = self.models[0].description.architecture.longest_sentence
        rows = self._torch.log_probabilities([each for ids in texts for each in windows(ids, longest=longest)])
        pieces = tuple(self.tokenizers.target.piece(token) for ids in texts for token in ids[1:])
        return Likelihood(pieces, tuple(value for row in rows for value in row))

    def attention(
        self,
        text: str,
        *,
        target: str | Sequence[int] | None = None,
        sentence: int | None = None,
        numbers: bool = False,
        glossary: Glossary = Glossary(()),  # noqa: B008 - it is frozen
        **options: Unpack[DecodingOptions],
    ) -> "AttentionReport":
        """Return the attention weights of every head for one sentence and its translation.

        The translation is the search's, or `target`: a text, which is tokenized, or the token ids of an earlier
        translation (`SentenceOutput.tokens`). A text of several sentences needs `sentence`, counted from 1; with
        `target` the text is one sentence.

        The weights come from one teacher-forced pass of the float32 network over the finished translation. The report
        says how much this pass differs from the precision that translated. `numbers` adds each head's q, k and v.
        """
        config = self.configure(**options)
        if is_language_model(self.models[0]):
            pair = text_alone(self.tokenizers.target, text)
        elif isinstance(target, str):
            pair = forced_pair(self.tokenizers, text, target)
        elif writes_trees(self):
            tree = self._parsed(text, config) if target is None else target
            pair = found_pair(self.tokenizers, text, translate=lambda _: tree)
        else:
            own = text if target is not None else choose_sentence(self.sentences_of(text), sentence)
            pair = self._found_pair(own, config, glossary=glossary, target=target)
        inspection = self._inspection(config, is_forced=isinstance(target, str), with_numbers=numbers)
        with self._torch.computing():
            return inspection.report(*pair)

    def attention_by_sentence(
        self,
        text: str,
        *,
        numbers: bool = False,
        glossary: Glossary = Glossary(()),  # noqa: B008 - it is frozen
        **options: Unpack[DecodingOptions],
    ) -> "list[AttentionReport]":
        """Return the report that `attention` gives for each sentence of a text."""
        if writes_trees(self):
            return [self.attention(text, numbers=numbers, **options)]
        if is_language_model(self.models[0]):
            return [self.attention(line, numbers=numbers) for line in choose_lines(text)]
        config = self.configure(**options)
        sentences = choose_all(self.sentences_of(text))
        pairs = [self._found_pair(sentence, config, glossary=glossary) for sentence in sentences]
        inspection = self._inspection(config, is_forced=False, with_numbers=numbers)
        with self._torch.computing():
            return [inspection.report(*pair) for pair in pairs]

    def sentences_of(self, text: str) -> list[str]:
        """Return the sentences of a text; a sentence that is too long for the model is cut into parts."""
        cut = self._cutter.cut([text])[0]
        if cut.refusal:
            raise DataError(f"This text cannot be translated: {cut.refusal}.")
        return [part.text for part in cut.parts if part.encoded is not None]

    def _found_pair(
        self, text: str, config: DecodingConfig, *, glossary: Glossary, target: Sequence[int] | None = None
    ) -> tuple[TokenizedSentence, TokenizedSentence]:
        def translate(ids: list[int]) -> Sequence[int]:
            if target is not None:
                return target
            whole = Sentence(text=0, place=0, protected=self.tokenizers.protect(read), ids=tuple(ids), key=0)
            found = self._search([whole], config, glossary=glossary, decode=self.tokenizers.target.decode)
            return found[0][0].tokens

        read = in_small_letters(text, self.tokenizers.source.encode) if config.keep_form else text
        refuse_drawn_terms(config, glossary)
        return found_pair(self.tokenizers, read, translate=translate)

    def _parsed(self, text: str, config: DecodingConfig) -> list[int]:
        """Return the tokens of the tree of a text, which is one sentence."""
        parsed = parse_all(self, [text], config)[0]
        if parsed is None:
            raise DataError("The text has no words. Give a sentence.")
        return self.tokenizers.encode_targets([" ".join(parsed.symbols)])[0]

    def _inspection(self, config: DecodingConfig, *, is_forced: bool, with_numbers: bool) -> "Inspection":
        network = self._torch.float32_network()
        from transduce.torch_models import Inspection

        return Inspection(
            network=network,
            tokenizer=self.tokenizers.target,
            languages=self.languages,
            stepper=self.stepper,
            precision=self.precision,
            models=len(self.models),
            longest_sentence=self.longest_sentence,
            extra_length=0 if is_language_model(self.models[0]) else config.extra_length,
            is_forced=is_forced,
            with_numbers=with_numbers,
        )

    def head_numbers(
        self, *, source: Sequence[int], target: Sequence[int], stack: str, layer: int, head: int
    ) -> "HeadNumbersEntry":
        """Return q, k and v of one head of the block named `stack`, for the token ids of a report.

        `attention(numbers=True)` gives those of all heads.
        """
        source = source or [self.tokenizers.target.special.start]  # a language model has read the start token
        return self._torch.head_numbers(source=source, target=target, stack=stack, layer=layer, head=head)

    def _search(
        self, sentences: Sequence[Sentence], config: DecodingConfig, *, glossary: Glossary, decode: Decode
    ) -> list[list[Hypothesis]]:
        searcher = Searcher(
            self.stepper,
            decode,
            threads=self.threads if self.is_frozen else 1,
            shortlist=self._shortlist if config.shortlist else None,
        )
        with self.computing():
            return Enforcement(searcher, self.tokenizers, config, glossary, self._stand_ins).search(sentences)

    @cached_property
    def calibration(self) -> Calibration | None:
        """The calibration of the model; None for an ensemble, or if the model has none."""
        return read_calibration(self.models[0].folder) if len(self.models) == 1 else None

    @property
    def _confidence(self) -> ConfidenceModel | None:
        return self.calibration.confidence if self.calibration else None

    @property
    def _stand_ins(self) -> tuple[str, ...]:
        return self.calibration.stand_ins if self.calibration else ()

    @cached_property
    def _shortlist(self) -> Shortlist:
        """The first model's shortlist; the models of an ensemble share one vocabulary."""
        shortlist = self.models[0].shortlist()
        if shortlist is None:
            raise ConfigError(
                f"{self.models[0].folder} holds no shortlist. Train with training.shortlist = 50, or leave it out."
            )
        return shortlist

    @cached_property
    def _cutter(self) -> TextCutter:
        return TextCutter(self.tokenizers, self.languages.source, self.longest_sentence)


def _frozen(model: ModelDirectory, precision: Precision) -> Stepwise[Any]:
    return freeze(model.parameters, model.description.architecture, model.tokenizers.special, precision=precision)


def _same(model: ModelDirectory) -> ModelDirectory:
    return model
