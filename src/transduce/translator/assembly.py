"""Putting a text's translation together from the outputs for its sentences, and checking it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from transduce.decoding.config import DecodingConfig
from transduce.decoding.hypothesis import Hypothesis
from transduce.text.numbers import missing_numbers
from transduce.text.placeholders import missing, restore, surplus
from transduce.text.sentence_form import keep_form
from transduce.text.tokenizer import Tokenizer
from transduce.translator.checks import doubts_about
from transduce.translator.confidence import ConfidenceModel
from transduce.translator.consensus import Decode
from transduce.translator.cutting import TextPart
from transduce.translator.searching import Sentence
from transduce.translator.tag_placing import with_tight_tags
from transduce.translator.terminology import Glossary
from transduce.translator.translation import Alternative, SentenceOutput, Translation

Found = Mapping[int, tuple[Sentence, Sequence[Hypothesis]]]
"""The sentences of a text and their outputs, best first, by the place of the sentence among the text's parts."""


@dataclass(frozen=True)
class Assembler:
    """Puts translations together for one search."""

    tokenizer: Tokenizer
    """The tokenizer of the targets."""
    decode: Decode
    """Its decoding, which may remember what it decoded."""
    language: str | None
    """The target language."""
    config: DecodingConfig
    glossary: Glossary
    confidence: ConfidenceModel | None

    def translation(self, text: str, parts: Sequence[TextPart], found: Found) -> Translation:
        """Return the translation of a text; its n-th alternative has the n-th output for each sentence, or the last."""
        count = max((len(hypotheses) for _, hypotheses in found.values()), default=1)
        alternatives: dict[str, Alternative] = {}
        for rank in range(count):
            alternative = self._alternative(parts, found, rank=rank)
            if self.config.sample:
                alternatives[f"{rank}"] = alternative
            else:
                alternatives.setdefault(alternative.text, alternative)
        best = [(sentence, self.decode(own[0].tokens)) for sentence, own in found.values()]
        is_checked = self.config.keep_placeholders != "off"
        lost = [each for own, output in best for each in missing(own.protected, output) if is_checked]
        numbers = tuple(n for own, output in best for n in missing_numbers(own.protected.text, output) if is_checked)
        lost += [
            term
            for own, output in best
            for term in self.glossary.lost(own.protected.text, own.without_foreign_symbols(output))
        ]
        first = next(iter(alternatives.values()))
        return Translation(
            source=text,
            alternatives=tuple(alternatives.values()),
            missing=tuple(lost),
            surplus=tuple(more for own, output in best for more in surplus(own.protected, output) if is_checked),
            missing_numbers=numbers,
            doubts=doubts_about(text, first.text, lost_numbers=bool(numbers)),
            confidence=self.confidence.of(text, first) if self.confidence and found else None,
        )

    def _alternative(self, parts: Sequence[TextPart], found: Found, *, rank: int) -> Alternative:
        chosen = {place: (own, outputs[min(rank, len(outputs) - 1)]) for place, (own, outputs) in found.items()}
        written = [
            self._written(part.text, *chosen[place]) if place in chosen else part.text
            for place, part in enumerate(parts)
        ]
        starts = list(accumulate((len(part.text) for part in parts), initial=0))
        hypotheses = [hypothesis for _, hypothesis in chosen.values()]
        outputs = (
            SentenceOutput(
                start=starts[place],
                end=starts[place + 1],
                tokens=hypothesis.tokens,
                log_probability=hypothesis.log_probability,
                source_tokens=len(sentence.ids),
            )
            for place, (sentence, hypothesis) in chosen.items()
        )
        return Alternative(
            text="".join(written),
            score=sum(hypothesis.score for hypothesis in hypotheses),
            log_probability=sum(hypothesis.log_probability for hypothesis in hypotheses),
            tokens=tuple(self.tokenizer.piece(token) for hypothesis in hypotheses for token in hypothesis.tokens),
            is_finished=all(hypothesis.is_finished for hypothesis in hypotheses),
            sentences=tuple(sorted(outputs, key=lambda output: output.start)),
        )

    def _written(self, source: str, sentence: Sentence, hypothesis: Hypothesis) -> str:
        """Return the text of an output, with the placeholders of its source."""
        output = with_tight_tags(self.decode(hypothesis.tokens), sentence.protected)
        output = restore(output, sentence.protected.originals)
        return keep_form(source, output, language=self.language) if self.config.keep_form else output
