"""Beam search with a length penalty, section 6.1 of "Attention Is All You Need", as the authors' code does it.

Each step extends the `beam` hypotheses that are alive by every token and keeps the 2 · beam best candidates. The best
`beam` of them that do not end stay alive; those that end compete for `beam` places among the finished, by score:

    score(Y) = log P(Y | X) / lp(Y)

All candidates of a step have one length, so their scores rank as their log-probabilities do, and those are what is
compared. A sentence stops when its best finished score exceeds log P(best alive) / lp(limit): log P only falls as a
hypothesis grows and lp grows at most to the limit's, so no hypothesis alive can still overtake it. If n alternatives
are wanted, the n-th best finished score must exceed that bound. Where nothing finished within the limit, the
hypotheses alive are given back.

A departure by name, `stop = "full"`, is what other toolkits do: `beam` hypotheses must have finished, whatever they
score, and of those that end only the ones among the `beam` best candidates count. (Were the others to count, poor ones
would fill the places, and a sentence would stop too soon.)

Width 1 is greedy: one candidate is kept, the most probable token, and the first end token ends the sentence.

Departures: a sentence leaves the batch when it is done (the authors' loop waits for all), and its limit comes from
its own length, so that its neighbours change nothing; equal candidates are taken by the lower beam, then the lower
token, and equal finished scores by the earlier; unfinished hypotheses are given a score like the others.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor
from torch.nn import functional

from transduce.decoding.candidates import best_candidates, stable_topk
from transduce.decoding.config import DecodingConfig
from transduce.decoding.hypothesis import Hypothesis
from transduce.decoding.length_penalty import length_penalty
from transduce.decoding.request import Request
from transduce.decoding.stepwise import State, Stepwise, take_steps
from transduce.text.tokenizer import EOS, PAD

# What is found where every token is forbidden or impossible before the output could end.
NOTHING = Hypothesis(tokens=(), log_probability=-math.inf, score=-math.inf, is_finished=False)


@dataclass(frozen=True)
class _Hypotheses:
    """K hypotheses of each of B sentences, best first; log-probability -inf marks a place that none has taken."""

    tokens_BKT: Tensor
    log_probabilities_BK: Tensor

    @classmethod
    def empty(cls, sentences: int, places: int, *, device: torch.device) -> Self:
        tokens_BKT = torch.empty(sentences, places, 0, dtype=torch.int64, device=device)
        return cls(tokens_BKT, torch.zeros(sentences, places, device=device))

    @property
    def length(self) -> int:
        return self.tokens_BKT.size(2)

    def of_sentences(self, sentences: Tensor) -> Self:
        return type(self)(self.tokens_BKT[sentences], self.log_probabilities_BK[sentences])

    def at(self, places_BP: Tensor) -> Self:
        return type(self)(_rows(self.tokens_BKT, places_BP), self.log_probabilities_BK.gather(1, places_BP))

    def first(self, places: int) -> Self:
        return type(self)(self.tokens_BKT[:, :places], self.log_probabilities_BK[:, :places])

    def without(self, is_left_out_BK: Tensor) -> Self:
        return type(self)(self.tokens_BKT, self.log_probabilities_BK.masked_fill(is_left_out_BK, -math.inf))

    def followed_by(self, longer: Self) -> Self:
        tokens_BKT = functional.pad(self.tokens_BKT, (0, longer.length - self.length), value=PAD)
        return type(self)(
            torch.cat([tokens_BKT, longer.tokens_BKT], dim=1),
            torch.cat([self.log_probabilities_BK, longer.log_probabilities_BK], dim=1),
        )

    def listed(self, sentence: int, *, alpha: float) -> list[Hypothesis]:
        return [
            Hypothesis.of(tokens, log_probability=log_probability, alpha=alpha)
            for tokens, log_probability in zip(
                self.tokens_BKT[sentence].tolist(), self.log_probabilities_BK[sentence].tolist(), strict=True
            )
            if log_probability > -math.inf
        ]


@dataclass
class _Search:
    """The sentences of a batch that are still searched for, and what was found of them so far."""

    request: Request
    beam: int
    numbers_B: Tensor
    alive: _Hypotheses
    finished: _Hypotheses
    scores_BF: Tensor  # of the finished

    @property
    def newest_BW(self) -> Tensor:
        return self.alive.tokens_BKT[..., -1]

    def advance(self, log_probabilities_BWV: Tensor) -> Tensor:
        """Take one step; return which beam each hypothesis that is now alive continues, shape (B, W)."""
        self.request.forbid(log_probabilities_BWV, position=self.alive.length)
        count = 2 * self.beam if self.beam > 1 else 1
        best = best_candidates(log_probabilities_BWV, self.alive.log_probabilities_BK, count=count)
        tokens_BCT = torch.cat([_rows(self.alive.tokens_BKT, best.beams_BC), best.tokens_BC[..., None]], dim=2)
        candidates = _Hypotheses(tokens_BCT, best.log_probabilities_BC)
        is_ended_BC = best.tokens_BC == EOS
        if not bool(is_ended_BC.any()):
            self.alive = candidates.first(self.beam)
            return best.beams_BC[:, : self.beam]
        is_left_out_BC = ~is_ended_BC
        if self.request.stops_when_full:
            is_left_out_BC[:, self.beam :] = True  # such an end does not count
        self._finish(candidates.without(is_left_out_BC))
        order_BW = is_ended_BC.sort(dim=1, stable=True).indices[:, : self.beam]  # those that go on, best first
        self.alive = candidates.without(is_ended_BC).at(order_BW)
        return best.beams_BC.gather(1, order_BW)

    def _finish(self, ended: _Hypotheses) -> None:
        scores_BC = ended.log_probabilities_BK / length_penalty(ended.length, alpha=self.request.length_penalty)
        all_scores_BK = torch.cat([self.scores_BF, scores_BC], dim=1)
        self.scores_BF, places_BF = stable_topk(all_scores_BK, count=self.beam)
        self.finished = self.finished.followed_by(ended).at(places_BF)

    def release(self, found: list[list[Hypothesis]]) -> Tensor | None:
        """Put what was found of the sentences that are done into `found`; return where the others stood, if not all."""
        is_done_B = self._is_done()
        if not bool(is_done_B.any()):
            return None
        leaving, staying = is_done_B.nonzero()[:, 0], (~is_done_B).nonzero()[:, 0]
        alpha = self.request.length_penalty
        for row, number in zip(leaving.tolist(), self.numbers_B[leaving].tolist(), strict=True):
            best = self.finished.listed(row, alpha=alpha) or self.alive.listed(row, alpha=alpha) or [NOTHING]
            found[number] = best[: self.request.alternatives]
        self.request = self.request.select(staying)
        self.numbers_B, self.scores_BF = self.numbers_B[staying], self.scores_BF[staying]
        self.alive, self.finished = self.alive.of_sentences(staying), self.finished.of_sentences(staying)
        return staying

    def _is_done(self) -> Tensor:
        best_alive_B = self.alive.log_probabilities_BK[:, 0]
        is_done_B = (self.alive.length >= self.request.limit_B) | (best_alive_B == -math.inf)
        if self.request.stops_when_full and self.scores_BF.size(1) == self.beam:
            return is_done_B | (self.scores_BF[:, -1] > -math.inf)
        wanted = self.request.alternatives
        if self.scores_BF.size(1) < wanted:
            return is_done_B
        limit_B = self.request.limit_B.to(best_alive_B.dtype)
        bound_B = best_alive_B / length_penalty(limit_B, alpha=self.request.length_penalty)
        return is_done_B | (self.scores_BF[:, wanted - 1] > bound_B)


def beam_search(
    stepper: Stepwise[State],
    source_BS: Tensor,
    config: DecodingConfig,
    *,
    prefixes: Sequence[Sequence[int]] | None = None,
) -> list[list[Hypothesis]]:
    """Return the best hypotheses of each source sentence, best first: as many as `config` asks for, or fewer.

    There are fewer if fewer finish within the limit. `source_BS` is padded; `prefixes`, one for each sentence and
    maybe empty, are tokens that its output must begin with.
    """
    sentences, device = source_BS.size(0), source_BS.device
    search = _Search(
        request=Request.of(source_BS, config, prefixes=prefixes, longest_target=stepper.longest_target),
        beam=config.beam,
        numbers_B=torch.arange(sentences, device=device),
        alive=_Hypotheses.empty(sentences, 1, device=device),
        finished=_Hypotheses.empty(sentences, 0, device=device),
        scores_BF=torch.empty(sentences, 0, device=device),
    )
    return take_steps(stepper, source_BS, search)


def _rows(tokens_BKT: Tensor, places_BP: Tensor) -> Tensor:
    return tokens_BKT.gather(1, places_BP[..., None].expand(-1, -1, tokens_BKT.size(2)))
