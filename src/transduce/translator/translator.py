"""The translator: joins tokenizer, network and search, and turns texts into `Translation`s.

It cuts a text into sentences, replaces their placeholders by symbols, encodes them, searches batches of similar length,
and puts the results together in the original order. The translation of a sentence does not depend on the other
sentences of its batch.

Loading and translating leave the host process as it was: torch's threads are set only while a translator computes, and
only if `threads` was given.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal, Unpack, overload

import torch
from pydantic import ValidationError

from transduce.compute import available_cores, torch_threads
from transduce.data.shortlist import Shortlist
from transduce.decoding.config import DecodingConfig, DecodingOptions
from transduce.decoding.ensemble import Ensemble
from transduce.decoding.hypothesis import Hypothesis
from transduce.engine import Int8Network, Precision, choose_precision
from transduce.errors import ConfigError, ModelError
from transduce.evaluation.likelihood import encode_pairs, log_probabilities_of_pairs
from transduce.files import sha256_of_file
from transduce.inspection.head_numbers import HeadNumbers, head_numbers
from transduce.inspection.pair import TokenizedSentence, forced_pair, found_pair
from transduce.inspection.report import AttentionReport
from transduce.model.config import ModelConfig
from transduce.model_directory import SHORTLIST, WEIGHTS, Languages, ModelDirectory, find_model, load_model
from transduce.networks.network import Network
from transduce.networks.stepwise import Stepwise
from transduce.networks.torch_stepper import TorchStepper
from transduce.text.placeholders import Protected, missing, restore, surplus
from transduce.text.sentences import segments, shorter_parts
from transduce.translator.enforcement import refuse_drawn_terms, search_with_terms
from transduce.translator.inspecting import Inspection, choose_all, choose_sentence
from transduce.translator.model_decoding import decoding_of
from transduce.translator.searching import Searcher, Sentence
from transduce.translator.terminology import Glossary
from transduce.translator.translation import Alternative, Likelihood, SentenceOutput, Translation

WantedPrecision = Precision | Literal["auto"]
_LONGEST_UNLESS_KNOWN = 256
# A sentence this many times longer than any that the model has seen is refused: its parts would be nonsense.
_REFUSED_FACTOR = 16
_Found = tuple[Sentence, list[Hypothesis]]


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
        self.precision = choose_precision(precision, [model.description.architecture for model in models])
        if self.precision == "int8":
            steppers: list[Stepwise[Any]] = [_frozen(model) for model in models]
            models = [replace(model, parameters={}) for model in models]  # frees the float32 weights
            self._weights = [model.read_again for model in models]
        else:
            self._weights = [partial(_same, model) for model in models]
            steppers = [TorchStepper(network) for network in self.networks]
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
        """The number of threads that translate: unless given, all cores for int8 and torch's own setting otherwise."""
        return self._threads or (available_cores() if self.precision == "int8" else torch.get_num_threads())

    @property
    def languages(self) -> Languages:
        """The source and target language, if the model names them."""
        return self.models[0].description.languages

    @cached_property
    def networks(self) -> list[Network]:
        """The torch networks, for likelihoods and inspection: in bf16 if the precision is bf16, else in float32."""
        dtype = torch.bfloat16 if self.precision == "bf16" else torch.float32
        return [weights().network().to(dtype) for weights in self._weights]

    @cached_property
    def fingerprint(self) -> str:
        """A text that is equal for equal models of equal precision."""
        weights = [sha256_of_file(model.folder / WEIGHTS) for model in self.models]
        lists = [sha256_of_file(m.folder / SHORTLIST) for m in self.models[:1] if (m.folder / SHORTLIST).is_file()]
        return " ".join([*weights, self.tokenizers.fingerprint, self.precision, *lists])

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
        refuse_drawn_terms(config, glossary)
        refusals = [self._refusal(text) for text in texts]
        parts = [[] if refusal else self._parts(text) for text, refusal in zip(texts, refusals, strict=True)]
        sentences = self._sentences(parts, numbers=numbers, prefixes=prefixes)
        found = self._search(sentences, config, glossary=glossary)
        by_text: list[dict[int, _Found]] = [{} for _ in texts]
        for sentence, hypotheses in zip(sentences, found, strict=True):
            by_text[sentence.text][sentence.place] = (sentence, hypotheses)
        return [
            Translation.refused(text, refusal) if refusal else self._assemble(text, own, found, glossary=glossary)
            for text, own, found, refusal in zip(texts, parts, by_text, refusals, strict=True)
        ]

    def likelihood(self, pairs: Sequence[tuple[str, str]]) -> list[Likelihood]:
        """Return the log-probability of each pair's target, given its source; each is taken as one sentence."""
        assert len(self.models) == 1, "likelihood is defined for one model"
        encoded = encode_pairs(self.tokenizers, pairs)
        with torch_threads(self._threads):
            rows = log_probabilities_of_pairs(self.networks[0], encoded)
        return [
            Likelihood(tuple(self.tokenizers.target.piece(token) for token in target), tuple(row))
            for (_, target), row in zip(encoded, rows, strict=True)
        ]

    def attention(
        self,
        text: str,
        *,
        target: str | Sequence[int] | None = None,
        sentence: int | None = None,
        numbers: bool = False,
        glossary: Glossary = Glossary(()),  # noqa: B008 - it is frozen
        **options: Unpack[DecodingOptions],
    ) -> AttentionReport:
        """Return the attention weights of every head for one sentence and its translation.

        The translation is the search's, or `target`: a text, which is tokenized, or the token ids of an earlier
        translation (`SentenceOutput.tokens`). A text of several sentences needs `sentence`, counted from 1; with
        `target` the text is one sentence.

        The weights come from one teacher-forced pass of the float32 network over the finished translation. The report
        says how much this pass differs from the precision that translated. `numbers` adds each head's q, k and v.
        """
        config = self.configure(**options)
        if isinstance(target, str):
            pair = forced_pair(self.tokenizers, text, target)
        elif target is not None:
            pair = found_pair(self.tokenizers, text, translate=lambda _: target)
        else:
            pair = self._found_pair(choose_sentence(self.sentences_of(text), sentence), config, glossary=glossary)
        inspection = self._inspection(config, is_forced=isinstance(target, str), with_numbers=numbers)
        with torch_threads(self._threads):
            return inspection.report(*pair)

    def attention_by_sentence(
        self,
        text: str,
        *,
        numbers: bool = False,
        glossary: Glossary = Glossary(()),  # noqa: B008 - it is frozen
        **options: Unpack[DecodingOptions],
    ) -> list[AttentionReport]:
        """Return the report that `attention` gives for each sentence of a text."""
        config = self.configure(**options)
        sentences = choose_all(self.sentences_of(text))
        pairs = [self._found_pair(sentence, config, glossary=glossary) for sentence in sentences]
        inspection = self._inspection(config, is_forced=False, with_numbers=numbers)
        with torch_threads(self._threads):
            return [inspection.report(*pair) for pair in pairs]

    def sentences_of(self, text: str) -> list[str]:
        """Return the sentences that a text is cut into, and the parts of those that are too long for the model."""
        return [part for part, is_sentence in self._parts(text) if is_sentence]

    def _found_pair(
        self, text: str, config: DecodingConfig, *, glossary: Glossary
    ) -> tuple[TokenizedSentence, TokenizedSentence]:
        def translate(ids: list[int]) -> tuple[int, ...]:
            whole = Sentence(text=0, place=0, protected=self.tokenizers.protect(text), ids=tuple(ids), key=0)
            return self._search([whole], config, glossary=glossary)[0][0].tokens

        refuse_drawn_terms(config, glossary)
        return found_pair(self.tokenizers, text, translate=translate)

    def _inspection(self, config: DecodingConfig, *, is_forced: bool, with_numbers: bool) -> Inspection:
        return Inspection(
            network=self._weights[0]().network(),
            tokenizer=self.tokenizers.target,
            languages=self.languages,
            stepper=self.stepper,
            precision=self.precision,
            models=len(self.models),
            longest_sentence=self.longest_sentence,
            extra_length=config.extra_length,
            is_forced=is_forced,
            with_numbers=with_numbers,
        )

    def head_numbers(
        self, *, source: Sequence[int], target: Sequence[int], stack: str, layer: int, head: int
    ) -> HeadNumbers:
        """Return q, k and v of one head of the block named `stack`, for the token ids of a report.

        `attention(numbers=True)` gives those of all heads.
        """
        with torch_threads(self._threads):
            return head_numbers(self._weights[0]().network(), source, target, stack, layer, head)

    def _search(
        self, sentences: Sequence[Sentence], config: DecodingConfig, *, glossary: Glossary
    ) -> list[list[Hypothesis]]:
        is_int8 = self.precision == "int8"
        searcher = Searcher(
            self.stepper,
            self.tokenizers.target.decode,
            threads=self.threads if is_int8 else 1,
            shortlist=self._shortlist if config.shortlist else None,
        )
        with torch_threads(None if is_int8 else self._threads):
            return search_with_terms(
                sentences, config, glossary=glossary, searcher=searcher, tokenizer=self.tokenizers.target
            )

    @cached_property
    def _shortlist(self) -> Shortlist:
        """The first model's shortlist; the models of an ensemble share one vocabulary."""
        shortlist = self.models[0].shortlist()
        if shortlist is None:
            raise ConfigError(
                f"{self.models[0].folder} holds no shortlist. Train with training.shortlist = 50, or leave it out."
            )
        return shortlist

    def _refusal(self, text: str) -> str:
        most = _REFUSED_FACTOR * self.longest_sentence
        if len(text) <= most:  # short texts need no tokenization
            return ""
        for segment in segments(text, language=self.languages.source):
            length = self._length(segment.text) if segment.is_sentence and len(segment.text) > most // 4 else 0
            if length > most:
                return (
                    f"it holds a sentence of {length:,} pieces where this model has seen at most "
                    f"{self.longest_sentence:,}; cut it into sentences first"
                )
        return ""

    def _parts(self, text: str) -> list[tuple[str, bool]]:
        parts: list[tuple[str, bool]] = []
        for segment in segments(text, language=self.languages.source):
            if not segment.is_sentence:
                parts.append((segment.text, False))
                continue
            for part in shorter_parts(segment.text, length=self._length, longest=self.longest_sentence):
                inner = part.strip()
                start = part.find(inner)
                pieces = [(part[:start], False), (inner, bool(inner)), (part[start + len(inner) :], False)]
                parts += [piece for piece in pieces if piece[0]]
        return parts

    def _length(self, text: str) -> int:
        return len(self._encode(text)[1])

    def _encode(self, text: str) -> tuple[Protected, tuple[int, ...]]:
        protected = self.tokenizers.protect(text)
        return protected, tuple(self.tokenizers.encode_source(protected.text))

    def _sentences(
        self,
        parts: Sequence[Sequence[tuple[str, bool]]],
        *,
        numbers: Sequence[int] | None,
        prefixes: Sequence[str] | None,
    ) -> list[Sentence]:
        sentences: list[Sentence] = []
        for text, own in enumerate(parts):
            prefix = self.tokenizers.target.encode(prefixes[text]) if prefixes else []
            for place in (place for place, (_, is_sentence) in enumerate(own) if is_sentence):
                protected, ids = self._encode(own[place][0])
                key = (numbers[text] if numbers else text) * 1_000_003 + place
                sentences.append(Sentence(text, place, protected, ids, key=key, prefix=tuple(prefix)))
                prefix = []  # only the first sentence has it
        return sentences

    def _assemble(
        self, text: str, parts: Sequence[tuple[str, bool]], own: dict[int, _Found], *, glossary: Glossary
    ) -> Translation:
        tokenizer = self.tokenizers.target
        count = max((len(hypotheses) for _, hypotheses in own.values()), default=1)
        starts = list(accumulate((len(part) for part, _ in parts), initial=0))
        alternatives = []
        for rank in range(count):
            chosen = {place: (s, hypotheses[min(rank, len(hypotheses) - 1)]) for place, (s, hypotheses) in own.items()}
            written = [
                restore(tokenizer.decode(chosen[place][1].tokens), chosen[place][0].protected.originals)
                if is_sentence
                else part
                for place, (part, is_sentence) in enumerate(parts)
            ]
            hypotheses = [hypothesis for _, hypothesis in chosen.values()]
            outputs = (
                SentenceOutput(starts[place], starts[place] + len(parts[place][0]), hypothesis.tokens)
                for place, (_, hypothesis) in chosen.items()
            )
            alternatives.append(
                Alternative(
                    text="".join(written),
                    score=sum(hypothesis.score for hypothesis in hypotheses),
                    log_probability=sum(hypothesis.log_probability for hypothesis in hypotheses),
                    tokens=tuple(tokenizer.piece(token) for h in hypotheses for token in h.tokens),
                    is_finished=all(hypothesis.is_finished for hypothesis in hypotheses),
                    sentences=tuple(sorted(outputs, key=lambda output: output.start)),
                )
            )
        best = [(s, tokenizer.decode(hypotheses[0].tokens)) for s, hypotheses in own.values()]
        placeholders = (lost for s, output in best for lost in missing(s.protected, output))
        terms = (
            lost for s, output in best for lost in glossary.lost(s.protected.text, s.without_foreign_symbols(output))
        )
        return Translation(
            source=text,
            alternatives=tuple(alternatives),
            missing=(*placeholders, *terms),
            surplus=tuple(extra for s, output in best for extra in surplus(s.protected, output)),
        )


def _frozen(model: ModelDirectory) -> Int8Network:
    config = model.description.architecture
    assert isinstance(config, ModelConfig), "choose_precision declines other networks"
    return Int8Network(model.parameters, config, model.tokenizers.special)


def _same(model: ModelDirectory) -> ModelDirectory:
    return model
