"""Beam search for outputs with given terms: the grid of Hokamp and Liu (2017), the banks of Post and Vilar (2018).

Hypotheses are grouped by how many tokens of the constraints they have met. Each group is a bank with a beam of its own,
and hypotheses compete only within their bank. In one beam, a hypothesis that begins a term early has added improbable
tokens and would lose to one that has not begun it. With banks both survive, and log P decides among the complete
hypotheses where in the sentence the term goes.

A step's candidates are

- for each hypothesis, the 2 · beam most probable tokens;
- for each hypothesis that has just written a term, the 2 · beam most probable tokens that do not extend its last word;
- for each hypothesis, all tokens that begin or continue a term, however improbable.

A hypothesis ends only when all constraints are met. Everything else, from scores to when a sentence is done, is as in
`beam_search`. Without constraints there is one bank, and the result is that of `beam_search`.

Post and Vilar divide one fixed beam among the banks, so that more constraints narrow the search. Here each bank has the
whole beam, as in the grid, as long as a sentence has at most `MOST_ROWS` hypotheses.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from transduce.decoding.candidates import stable_topk
from transduce.decoding.config import DecodingConfig
from transduce.decoding.constraints import ConstraintProgress, Constraints, Tokens
from transduce.decoding.hypothesis import Hypothesis
from transduce.decoding.length_penalty import length_penalty
from transduce.decoding.request import OutputRequest
from transduce.decoding.search_loop import run_search
from transduce.networks.stepwise import Booleans, Ids, LogProbabilities, State, Stepwise

MOST_ROWS = 128  # hypotheses of one sentence; a bank's beam narrows, down to 1, where there are too many banks


@dataclass(frozen=True)
class _PartialOutput:
    tokens: Tokens
    log_probability: float
    progress: ConstraintProgress
    beam: int  # the beam that it continues


@dataclass(frozen=True)
class _Extension:
    log_probability: float  # of all tokens
    beam: int
    token: int
    progress: ConstraintProgress


@dataclass
class _ConstrainedSentence:
    """The state of the search for one sentence: its hypotheses that are alive and those that finished."""

    number: int
    constraints: Constraints
    beam: int
    is_closed_by_V: Booleans
    alive: list[_PartialOutput]
    finished: list[Hypothesis] = field(default_factory=list)

    def extend(self, more: dict[tuple[int, int], float], request: OutputRequest) -> None:
        """Take one step, given the log-probability of each token that may extend one of the beams."""
        banks: defaultdict[int, list[_Extension]] = defaultdict(list)
        for (beam, token), log_probability in more.items():
            old = self.alive[beam]
            progress = self.constraints.advance(old.progress, old.tokens, token)
            extension = _Extension(old.log_probability + log_probability, beam, token, progress)
            banks[self.constraints.bank(progress)].append(extension)
        before, self.alive = self.alive, []
        for bank in sorted(banks, reverse=True):
            best = sorted(banks[bank], key=lambda e: (-e.log_probability, e.beam, e.token))
            best = best[: 2 * self.beam if self.beam > 1 else 1]
            for e in best[: self.beam] if request.stops_when_full else best:
                if e.token == request.tokens.end:
                    self.finished.append(request.hypothesis((*before[e.beam].tokens, e.token), e.log_probability))
            unended = [e for e in best if e.token != request.tokens.end][: self.beam]
            self.alive += [
                _PartialOutput((*before[e.beam].tokens, e.token), e.log_probability, e.progress, e.beam)
                for e in unended
            ]
        self.finished = sorted(self.finished, key=lambda hypothesis: -hypothesis.score)[: self.beam]

    def may_end(self, beam: int, *, end: int) -> bool:
        """Return whether a hypothesis would meet all constraints with the end token."""
        hypothesis = self.alive[beam]
        return not self.constraints.advance(hypothesis.progress, hypothesis.tokens, end).unmet

    def found(self, request: OutputRequest) -> list[Hypothesis]:
        """Return the finished hypotheses; if there are none, those alive that only lack the end token."""
        end = request.tokens.end
        whole = [hypothesis for beam, hypothesis in enumerate(self.alive) if self.may_end(beam, end=end)]
        unfinished = [
            request.hypothesis(own.tokens, own.log_probability)
            for own in sorted(whole, key=lambda own: -own.log_probability)
        ]
        return (self.finished or unfinished)[: request.alternatives]

    def is_done(self, request: OutputRequest, *, limit: int) -> bool:
        if not self.alive or len(self.alive[0].tokens) >= limit:
            return True
        if request.stops_when_full:
            return len(self.finished) == self.beam
        wanted = min(request.alternatives, self.beam)
        if len(self.finished) < wanted:
            return False
        best_alive = max(hypothesis.log_probability for hypothesis in self.alive)
        bound = best_alive / length_penalty(limit, alpha=request.length_penalty)
        return self.finished[wanted - 1].score > bound


@dataclass
class _ConstrainedSearch:
    """The state of the search for a batch: the sentences that are not done."""

    request: OutputRequest
    sentences: list[_ConstrainedSentence]
    count: int  # of candidates for each hypothesis
    width: int = 1  # the most hypotheses of a sentence when the last step was taken

    @property
    def newest_BW(self) -> Ids:
        return self._padded([[hypothesis.tokens[-1] for hypothesis in own.alive] for own in self.sentences])

    def advance(self, stepper: Stepwise[State], state: State, tokens_BW: Ids) -> Ids:
        """Take one step; return which beam each hypothesis that is now alive continues, shape (B, W)."""
        position = len(self.sentences[0].alive[0].tokens)
        log_probabilities_BWV = stepper.step(state, tokens_BW)
        self.request.forbid(log_probabilities_BWV, position=position)
        for sentence, more in zip(self.sentences, self._extensions(log_probabilities_BWV), strict=True):
            sentence.extend(more, self.request)
        self.width = max(len(own.alive) for own in self.sentences)
        return self._padded([[hypothesis.beam for hypothesis in own.alive] for own in self.sentences])

    def release(self, found: list[list[Hypothesis]]) -> Ids | None:
        """Put the results of done sentences into `found`; return the rows of the others, or None if none is done."""
        limits = self.request.limit_B.tolist()
        staying = []
        for row, (sentence, limit) in enumerate(zip(self.sentences, limits, strict=True)):
            if sentence.is_done(self.request, limit=limit):
                found[sentence.number] = sentence.found(self.request)
            else:
                staying.append(row)
        if len(staying) == len(self.sentences):
            return None
        self.sentences = [self.sentences[row] for row in staying]
        staying_B = np.array(staying, dtype=np.int64)
        self.request = self.request.select(staying_B)
        return staying_B

    def _extensions(self, log_probabilities_BWV: LogProbabilities) -> list[dict[tuple[int, int], float]]:
        """Return the candidate extensions of each sentence: log p by the beam and the token that extends it."""
        places = [(row, beam) for row, own in enumerate(self.sentences) for beam in range(len(own.alive))]
        rows_R, beams_R = np.array(places).T
        log_probabilities_RV = log_probabilities_BWV[rows_R, beams_R]
        end = self.request.tokens.end
        cannot_end = [r for r, (row, beam) in enumerate(places) if not self.sentences[row].may_end(beam, end=end)]
        log_probabilities_RV[cannot_end, end] = -math.inf
        for r, (row, beam) in enumerate(places):
            hypothesis = self.sentences[row].alive[beam]
            forbidden = self.sentences[row].constraints.forbidden(hypothesis.progress, hypothesis.tokens)
            log_probabilities_RV[r, forbidden] = -math.inf
        chosen = [*self._likeliest(log_probabilities_RV), *self._of_terms(log_probabilities_RV, places)]
        extensions: list[dict[tuple[int, int], float]] = [{} for _ in self.sentences]
        for r, token, log_probability in chosen:
            if log_probability > -math.inf:
                row, beam = places[r]
                extensions[row][beam, token] = log_probability
        return extensions

    def _likeliest(self, log_probabilities_RV: LogProbabilities) -> list[tuple[int, int, float]]:
        best_RC, tokens_RC = stable_topk(log_probabilities_RV, count=self.count)
        both = zip(tokens_RC.tolist(), best_RC.tolist(), strict=True)
        return [(r, *pair) for r, (tokens, best) in enumerate(both) for pair in zip(tokens, best, strict=True)]

    def _of_terms(
        self, log_probabilities_RV: LogProbabilities, places: Sequence[tuple[int, int]]
    ) -> list[tuple[int, int, float]]:
        wanted: list[tuple[int, int]] = []
        awaiting: list[int] = []
        for r, (row, beam) in enumerate(places):
            own, hypothesis = self.sentences[row].constraints, self.sentences[row].alive[beam]
            wanted += [(r, token) for token in own.wanted(hypothesis.progress, hypothesis.tokens)]
            if own.awaits_edge(hypothesis.progress):
                awaiting.append(r)
        chosen: list[tuple[int, int, float]] = []
        if wanted:
            rows_N, tokens_N = np.array(wanted).T
            values = log_probabilities_RV[rows_N, tokens_N].tolist()
            chosen += [(r, token, value) for (r, token), value in zip(wanted, values, strict=True)]
        if awaiting:
            is_closed_by_AV = np.stack([self.sentences[places[r][0]].is_closed_by_V for r in awaiting])
            whole_AV = log_probabilities_RV[awaiting]
            whole_AV[~is_closed_by_AV] = -math.inf
            chosen += [(awaiting[a], token, value) for a, token, value in self._likeliest(whole_AV)]
        return chosen

    def _padded(self, rows: list[list[int]]) -> Ids:
        """Return the rows as one array; a row that is too short repeats its first value, which is ignored."""
        padded = [[*row, *(row[:1] or [0]) * (self.width - len(row))] for row in rows]
        return np.array(padded, dtype=np.int64).reshape(len(rows), self.width)


def constrained_search(
    stepper: Stepwise[State],
    source_BS: Ids,
    config: DecodingConfig,
    *,
    constraints: Sequence[Constraints],
    prefixes: Sequence[Sequence[int]] | None = None,
) -> list[list[Hypothesis]]:
    """Return the best hypotheses of each source sentence that meet all its constraints, best first.

    The list of a sentence is empty if its constraints do not fit within the limit. The rest is as in `beam_search`.
    """
    request = OutputRequest.of(stepper, source_BS, config, prefixes=prefixes)
    sentences = [
        _ConstrainedSentence(
            number,
            own,
            beam=bank_beam(own, config),
            is_closed_by_V=np.array(own.edges.is_closed_by),
            alive=[_PartialOutput((), 0.0, own.start, beam=0)],
        )
        for number, own in enumerate(constraints)
    ]
    count = 2 * config.beam if config.beam > 1 else 1
    return run_search(stepper, source_BS, _ConstrainedSearch(request, sentences, count))


def bank_beam(constraints: Constraints, config: DecodingConfig) -> int:
    """Return how many hypotheses each bank of a sentence keeps."""
    return max(1, min(config.beam, MOST_ROWS // constraints.banks))
