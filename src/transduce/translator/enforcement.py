"""A second search for sentences whose outputs lack something: a placeholder, a number, or an enforced term.

Every sentence is first searched without requirements. If an output lacks something, a constrained search finds outputs
that have everything (`requirements.py`). So requirements do not change a translation that meets them already, and cost
no time there. Outputs that lack something are kept only if the constrained search finds none within the length limit.

A term must replace the word that the model would write, not be added to it ("Vierbeiner Hund"). So the words by which
the model translates the term alone are not allowed in the second search, if the first output has them.

A number may rightly be written as a word ("two" for 2). So if only numbers are missing, an output with their digits is
taken only if the model finds it almost as probable.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from transduce.decoding.config import DecodingConfig
from transduce.decoding.hypothesis import Hypothesis
from transduce.errors import ConfigError
from transduce.text.numbers import missing_numbers
from transduce.text.placeholders import Protected
from transduce.text.tokenizer_pair import TokenizerPair
from transduce.translator.consensus import all_hypotheses, by_agreement
from transduce.translator.requirements import Requirements, SecondSearch
from transduce.translator.searching import Searcher, Sentence
from transduce.translator.tag_placing import attention_of
from transduce.translator.terminology import Glossary

_WORD = re.compile(r"[^\W\d_]{3,}")
NUMBERS_MAY_COST = 3.0
"""How much lower the score of an output may be if only its numbers are better."""


def refuse_drawn_terms(config: DecodingConfig, glossary: Glossary) -> None:
    """Refuse to enforce terms on random samples."""
    if config.sample and glossary.terms and glossary.mode == "enforced":
        raise ConfigError("Terms are enforced by beam search, not in samples. Leave out sample, or prefer the terms.")


@dataclass(frozen=True)
class Enforcement:
    """The search for outputs that meet the requirements."""

    searcher: Searcher
    tokenizers: TokenizerPair
    config: DecodingConfig
    glossary: Glossary
    stand_ins: tuple[str, ...] = ()

    def search(self, sentences: Sequence[Sentence]) -> list[list[Hypothesis]]:
        """Return the outputs of each sentence, best first."""
        found = self._first_search(sentences)
        if self.config.sample:
            return found
        required = [self._requirements(sentence, own) for sentence, own in zip(sentences, found, strict=True)]
        lacking = [n for n, own in enumerate(found) if not all(self._is_met(required[n], output) for output in own)]
        if not lacking:
            return found
        self._avoid_replaced_words(required, [(n, self._decode(found[n][0].tokens)) for n in lacking])
        attention = attention_of(self.searcher.stepper)
        again = [SecondSearch(required[n], self.tokenizers, self.stand_ins, attention) for n in lacking]
        for n, second, constrained in zip(lacking, again, self._second_search(again), strict=True):
            restored = map(second.with_symbols, constrained)
            found[n] = self._merged(required[n], found[n], [own for own in restored if own is not None])
        return found

    def _second_search(self, again: Sequence[SecondSearch]) -> list[list[Hypothesis]]:
        """Return the outputs for each; a sentence without constraints, such as one that only lost tags, is fast."""
        config = all_hypotheses(self.config) if self.config.consensus else self.config
        sentences, constraints = [own.sentence for own in again], [own.constraints() for own in again]
        bound = [n for n, own in enumerate(constraints) if not own.are_empty]
        free = [n for n, own in enumerate(constraints) if own.are_empty]
        outputs = dict(zip(free, self.searcher.search([sentences[n] for n in free], config), strict=True))
        constrained = self.searcher.search_constrained(
            [sentences[n] for n in bound], config, constraints=[constraints[n] for n in bound]
        )
        outputs.update(zip(bound, constrained, strict=True))
        return [outputs[n] for n in range(len(again))]

    def _first_search(self, sentences: Sequence[Sentence]) -> list[list[Hypothesis]]:
        if not self.glossary.terms or self.glossary.mode == "enforced":
            return self.searcher.search(sentences, self.config)
        found = self.searcher.search(sentences, all_hypotheses(self.config))
        return [
            self.glossary.prefer(own, sentence.protected.text, decode=self._decode)[: self.config.alternatives]
            for sentence, own in zip(sentences, found, strict=True)
        ]

    def _requirements(self, sentence: Sentence, found: Sequence[Hypothesis]) -> Requirements:
        is_enforced = self.config.keep_placeholders == "enforce"
        text = sentence.protected.text
        return Requirements(
            sentence,
            terms=tuple(self.glossary.wanted(text)) if self.glossary.mode == "enforced" else (),
            keeps_placeholders=is_enforced,
            numbers=missing_numbers(text, self._decode(found[0].tokens)) if is_enforced else (),
        )

    def _avoid_replaced_words(self, required: list[Requirements], outputs: Sequence[tuple[int, str]]) -> None:
        """Set the words that each sentence must avoid, given the numbers of sentences and their first outputs."""
        enforced = [(n, output) for n, output in outputs if required[n].terms]
        by_sentence = {n: self.glossary.occurrences(required[n].sentence.protected.text) for n, _ in enforced}
        sources = list(dict.fromkeys(source for own in by_sentence.values() for source, _ in own))
        alone = dict(zip(sources, self._words_for(sources), strict=True))
        for n, output in enforced:
            own = _WORD.findall(output)
            terms = {word.casefold() for term in required[n].terms for word in _WORD.findall(term)}
            replaced = {word for source, _ in by_sentence[n] for word in alone[source]} - terms
            avoided = tuple(dict.fromkeys(word for word in own if word.casefold() in replaced))
            required[n] = replace(required[n], avoided=avoided)

    def _words_for(self, sources: Sequence[str]) -> list[set[str]]:
        """Return, for each term alone, the case-folded words that at least half of its outputs have."""
        terms = [
            Sentence(n, 0, Protected(source, ()), tuple(self.tokenizers.encode_source(source)), key=n)
            for n, source in enumerate(sources)
        ]
        found = self.searcher.search(terms, all_hypotheses(self.config))
        words = [[set(_WORD.findall(self._decode(own.tokens).casefold())) for own in outputs] for outputs in found]
        return [
            {word for word in set().union(*own) if 2 * sum(word in one for one in own) >= len(own)} for own in words
        ]

    def _merged(
        self, required: Requirements, found: Sequence[Hypothesis], constrained: Sequence[Hypothesis]
    ) -> list[Hypothesis]:
        """Return the best outputs of both searches that meet the requirements; those of the first if there are none."""
        met = [own for own in constrained if self._is_met(required, own)]
        first = found[0]
        if self._lacks_only_numbers(required, first) and (not met or met[0].score < first.score - NUMBERS_MAY_COST):
            return list(found)
        together = {own.tokens: own for own in (*met, *found) if self._is_met(required, own)}
        return self._ranked(together.values(), first=first)[: self.config.alternatives] or list(found)

    def _lacks_only_numbers(self, required: Requirements, output: Hypothesis) -> bool:
        text = self._decode(output.tokens)
        others = Requirements(required.sentence, required.terms, keeps_placeholders=required.keeps_placeholders)
        return bool(required.numbers) and others.are_met_by(text)

    def _ranked(self, outputs: Iterable[Hypothesis], *, first: Hypothesis) -> list[Hypothesis]:
        """Return the outputs, best first; the best output of the first search stays first if it is among them."""
        ranked = sorted(outputs, key=lambda own: -own.score)
        if self.config.consensus:
            ranked = by_agreement(ranked, decode=self._decode)
        return sorted(ranked, key=lambda own: own is not first)

    def _is_met(self, required: Requirements, output: Hypothesis) -> bool:
        return required.are_met_by(self._decode(output.tokens))

    def _decode(self, tokens: Sequence[int]) -> str:
        return self.searcher.decode(tuple(tokens))
