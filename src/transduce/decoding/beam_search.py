"""Beam search with a length penalty, section 6.1 of "Attention Is All You Need", as the authors' code does it.

Each step extends the `beam` hypotheses that are alive by every token and keeps the 2 · beam best candidates. The `beam`
best candidates that do not end stay alive; those that end compete by score for `beam` places among the finished:

    score(Y) = log P(Y | X) / lp(Y)

All candidates of a step have the same length, so we rank them by log-probability, which gives the same order as score.
A sentence stops when its best finished score exceeds log P(best alive) / lp(limit): log P only falls as a hypothesis
grows, and lp grows at most to lp(limit), so no hypothesis alive can still overtake it. If n alternatives are wanted,
the n-th best finished score must exceed that bound. If no hypothesis finishes within the limit, the search returns
those that are alive.

A departure by name, `stop = "full"`, as in other toolkits: a sentence stops once `beam` hypotheses have finished, with
any score. An end then counts only if it is among the `beam` best candidates of its step; otherwise poor hypotheses
would fill the places, and a sentence would stop too soon.

Width 1 is greedy: one candidate is kept, the most probable token, and the first end token ends the sentence.

Departures: a sentence leaves the batch when it is done (the authors' loop waits for all), and its limit comes from
its own length, so the other sentences of the batch do not change its result. Among equal candidates the lower beam
wins, then the lower token; among equal finished scores the earlier. Unfinished hypotheses get a score like the others.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from transduce.decoding.candidates import best_candidates, require_numbers
from transduce.decoding.config import DecodingConfig
from transduce.decoding.hypothesis import Hypothesis
from transduce.decoding.length_penalty import length_penalty
from transduce.decoding.request import OutputRequest
from transduce.decoding.search_loop import run_search
from transduce.networks.stepwise import BestExtensions, Booleans, Ids, LogProbabilities, Ranking, State, Stepwise

# The result if every token is forbidden or impossible before the output can end.
NOTHING = Hypothesis(tokens=(), log_probability=-math.inf, score=-math.inf, is_finished=False)


@dataclass(frozen=True)
class _Hypotheses:
    """K hypotheses of each of B sentences, best first; log-probability -inf marks an empty place."""

    tokens_BKT: Ids
    log_probabilities_BK: LogProbabilities

    @classmethod
    def empty(cls, sentences: int, places: int) -> Self:
        return cls(np.empty((sentences, places, 0), dtype=np.int64), np.zeros((sentences, places), dtype=np.float32))

    @property
    def length(self) -> int:
        return int(self.tokens_BKT.shape[2])

    def of_sentences(self, sentences: Ids) -> Self:
        return type(self)(self.tokens_BKT[sentences], self.log_probabilities_BK[sentences])

    def at(self, places_BP: Ids) -> Self:
        sentences_B1 = np.arange(len(places_BP))[:, None]
        return type(self)(self.tokens_BKT[sentences_B1, places_BP], self.log_probabilities_BK[sentences_B1, places_BP])

    def first(self, places: int) -> Self:
        return type(self)(self.tokens_BKT[:, :places], self.log_probabilities_BK[:, :places])

    def without(self, is_left_out_BK: Booleans) -> Self:
        kept_BK = np.where(is_left_out_BK, self.log_probabilities_BK.dtype.type(-math.inf), self.log_probabilities_BK)
        return type(self)(self.tokens_BKT, kept_BK)

    def extended(self, best: BestExtensions) -> Self:
        tokens_BCT = self.tokens_BKT[np.arange(len(best.beams_BC))[:, None], best.beams_BC]
        return type(self)(np.concatenate([tokens_BCT, best.tokens_BC[..., None]], axis=2), best.log_probabilities_BC)

    def followed_by(self, longer: Self) -> Self:
        filler_BKT = np.zeros((*self.tokens_BKT.shape[:2], longer.length - self.length), dtype=np.int64)
        tokens_BKT = np.concatenate([self.tokens_BKT, filler_BKT], axis=2)  # behind an end token, so never read
        return type(self)(
            np.concatenate([tokens_BKT, longer.tokens_BKT], axis=1),
            np.concatenate([self.log_probabilities_BK, longer.log_probabilities_BK], axis=1),
        )

    def listed(self, sentence: int, request: OutputRequest) -> list[Hypothesis]:
        return [
            request.hypothesis(tokens, log_probability)
            for tokens, log_probability in zip(
                self.tokens_BKT[sentence].tolist(), self.log_probabilities_BK[sentence].tolist(), strict=True
            )
            if log_probability > -math.inf
        ]


@dataclass
class _BeamSearch:
    """The state of a search: the sentences of a batch that are not done, and their hypotheses so far."""

    request: OutputRequest
    ranking: Ranking | None  # the model, if it chooses the best extensions itself
    beam: int
    numbers_B: Ids
    alive: _Hypotheses
    finished: _Hypotheses
    scores_BF: LogProbabilities  # of the finished

    @property
    def newest_BW(self) -> Ids:
        return self.alive.tokens_BKT[..., -1]

    def advance(self, stepper: Stepwise[State], state: State, tokens_BW: Ids) -> Ids:
        """Take one step; return which beam each hypothesis that is now alive continues, shape (B, W)."""
        best = self._best_extensions(stepper, state, tokens_BW)
        candidates = self.alive.extended(best)
        is_ended_BC = best.tokens_BC == self.request.tokens.end
        if not is_ended_BC.any():
            self.alive = candidates.first(self.beam)
            return best.beams_BC[:, : self.beam]
        is_left_out_BC = ~is_ended_BC
        if self.request.stops_when_full:
            is_left_out_BC[:, self.beam :] = True  # such an end does not count
        self._finish(candidates.without(is_left_out_BC))
        order_BW = is_ended_BC.argsort(axis=1, kind="stable")[:, : self.beam]  # those that have not ended, best first
        self.alive = candidates.without(is_ended_BC).at(order_BW)
        beams_BW: Ids = best.beams_BC[np.arange(len(order_BW))[:, None], order_BW]
        return beams_BW

    def _best_extensions(self, stepper: Stepwise[State], state: State, tokens_BW: Ids) -> BestExtensions:
        position, alive_BW = self.alive.length, self.alive.log_probabilities_BK
        count = 2 * self.beam if self.beam > 1 else 1
        if self.ranking is not None and not self.request.forces(position):
            forbidden = self.request.forbidden(position)
            best = self.ranking.step_best(state, tokens_BW, alive_BW, count=count, forbidden=forbidden)
            require_numbers(best.log_probabilities_BC)
            return best
        log_probabilities_BWV = stepper.step(state, tokens_BW)
        self.request.forbid(log_probabilities_BWV, position=position)
        return best_candidates(log_probabilities_BWV, alive_BW, count=count)

    def _finish(self, ended: _Hypotheses) -> None:
        scores_BC = ended.log_probabilities_BK / length_penalty(ended.length, alpha=self.request.length_penalty)
        all_scores_BK = np.concatenate([self.scores_BF, scores_BC], axis=1)
        places_BF = (-all_scores_BK).argsort(axis=1, kind="stable")[:, : self.beam]
        self.scores_BF = all_scores_BK[np.arange(len(places_BF))[:, None], places_BF]
        self.finished = self.finished.followed_by(ended).at(places_BF)

    def release(self, found: list[list[Hypothesis]]) -> Ids | None:
        """Put the results of done sentences into `found`; return the rows of the others, or None if none is done."""
        is_done_B = self._is_done()
        if not is_done_B.any():
            return None
        for row in np.flatnonzero(is_done_B).tolist():
            best = self.finished.listed(row, self.request) or self.alive.listed(row, self.request) or [NOTHING]
            found[self.numbers_B[row]] = best[: self.request.alternatives]
        staying = np.flatnonzero(~is_done_B)
        self.request = self.request.select(staying)
        self.numbers_B, self.scores_BF = self.numbers_B[staying], self.scores_BF[staying]
        self.alive, self.finished = self.alive.of_sentences(staying), self.finished.of_sentences(staying)
        return staying

    def _is_done(self) -> Booleans:
        best_alive_B = self.alive.log_probabilities_BK[:, 0]
        is_done_B: Booleans = (self.alive.length >= self.request.limit_B) | (best_alive_B == -math.inf)
        if self.request.stops_when_full and self.scores_BF.shape[1] == self.beam:
            return is_done_B | (self.scores_BF[:, -1] > -math.inf)
        wanted = self.request.alternatives
        if self.scores_BF.shape[1] < wanted:
            return is_done_B
        limit_B = self.request.limit_B.astype(best_alive_B.dtype)
        bound_B = best_alive_B / length_penalty(limit_B, alpha=self.request.length_penalty)
        return is_done_B | (self.scores_BF[:, wanted - 1] > bound_B)


def beam_search(
    stepper: Stepwise[State],
    source_BS: Ids,
    config: DecodingConfig,
    *,
    prefixes: Sequence[Sequence[int]] | None = None,
) -> list[list[Hypothesis]]:
    """Return the best hypotheses of each source sentence, best first: as many as `config` asks for, or fewer.

    There are fewer if fewer finish within the limit. `source_BS` is padded. `prefixes` holds, for each sentence, the
    tokens that its outputs must begin with; a prefix may be empty.
    """
    sentences = len(source_BS)
    search = _BeamSearch(
        request=OutputRequest.of(stepper, source_BS, config, prefixes=prefixes),
        ranking=stepper if isinstance(stepper, Ranking) and stepper.prefers_ranking else None,
        beam=config.beam,
        numbers_B=np.arange(sentences),
        alive=_Hypotheses.empty(sentences, 1),
        finished=_Hypotheses.empty(sentences, 0),
        scores_BF=np.empty((sentences, 0), dtype=np.float32),
    )
    return run_search(stepper, source_BS, search)
