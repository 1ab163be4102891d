"""Sampling: outputs drawn at random from the model's distribution, token by token. The paper has no sampling.

Each token is drawn from p(y_t | x, y_<t)^(1 / temperature). `top_k` keeps only the most probable tokens, and of these
`top_p` keeps as few as hold that share of their probability (Holtzman et al. 2020); the rest is renormalised.

A draw takes one random number u in [0, 1) and yields the first token at which the cumulative probability exceeds u. The
numbers come from Philox, a counter-based generator. They depend only on the seed, the sentence's number, the draw's
number and the position, so a sample does not depend on the other sentences of the batch or on their order.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transduce.decoding.candidates import require_numbers, stable_topk
from transduce.decoding.config import DecodingConfig
from transduce.decoding.hypothesis import Hypothesis
from transduce.decoding.request import OutputRequest
from transduce.decoding.search_loop import run_search
from transduce.networks.stepwise import Booleans, Ids, LogProbabilities, State, Stepwise

NUCLEUS = 64  # tokens; more are sorted only if these do not hold the share
RUN = 128  # tokens; a draw first chooses a run by its sum, then a token within the run
Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class TokenSampler:
    """The settings with which a token is drawn from a distribution."""

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0

    def draw(self, log_probabilities_RV: LogProbabilities, uniform_R: Doubles) -> Ids:
        """Return one token for each row, shape (R,), decided by the row's number in [0, 1)."""
        if self.top_k is None and self.top_p == 1.0:
            return _draw_in_runs(self._weights(log_probabilities_RV), uniform_R)
        if self.top_k is not None:
            log_probabilities_RC, tokens_RC = stable_topk(log_probabilities_RV, count=self.top_k)
            weights_RC = self._weights(log_probabilities_RC)
            probabilities_RC = weights_RC / weights_RC.sum(axis=1, keepdims=True)
        else:
            weights_RV = self._weights(log_probabilities_RV)
            probabilities_RV = weights_RV / weights_RV.sum(axis=1, keepdims=True)
            probabilities_RC, tokens_RC = _nucleus(probabilities_RV, share=self.top_p)
        before_RC = probabilities_RC.cumsum(axis=1) - probabilities_RC
        kept_RC = np.where(before_RC >= self.top_p, 0.0, probabilities_RC)
        place_R, _ = _draw_place(kept_RC, uniform_R)
        drawn_R: Ids = tokens_RC[np.arange(len(tokens_RC)), place_R]
        return drawn_R

    def _weights(self, log_probabilities_RC: LogProbabilities) -> Doubles:
        """Return weights proportional to p^(1 / temperature)."""
        logits_RC = log_probabilities_RC.astype(np.float64)
        with np.errstate(invalid="ignore"):  # a row in which nothing is possible becomes NaN, which is refused
            logits_RC -= logits_RC.max(axis=1, keepdims=True)
        if self.temperature != 1.0:
            logits_RC /= self.temperature
        weights_RC: Doubles = np.exp(logits_RC, out=logits_RC)
        return weights_RC


def uniform_numbers(*, seed: int, sentence: int, draw: int, count: int) -> Doubles:
    """Return the numbers in [0, 1) that decide positions 0 … count - 1 of one draw of one sentence."""
    philox = np.random.Philox(key=np.array([seed, sentence], dtype=np.uint64), counter=np.array([0, 0, 0, draw]))
    # numpy guarantees the generator's raw stream for every version, but not its conversion to floats.
    return (philox.random_raw(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _draw_in_runs(weights_RV: Doubles, uniform_R: Doubles) -> Ids:
    """Return the place that `_draw_place` returns, faster: choose a run by its sum, then a place within the run."""
    rows_R, size = np.arange(len(weights_RV)), weights_RV.shape[1]
    run_R, within_R = _draw_place(np.add.reduceat(weights_RV, np.arange(0, size, RUN), axis=1), uniform_R)
    place_RN = run_R[:, None] * RUN + np.arange(RUN)
    some_RN = np.where(place_RN < size, weights_RV[rows_R[:, None], np.minimum(place_RN, size - 1)], 0.0)
    return run_R * RUN + _draw_place(some_RN, within_R)[0]


def _draw_place(weights_RC: Doubles, uniform_R: Doubles) -> tuple[Ids, Doubles]:
    """Return the first place in each row at which the share of the weights so far exceeds the row's number in [0, 1).

    Also returns where the number is between the shares before and after that place, from 0 to 1.
    """
    cumulative_RC = weights_RC.cumsum(axis=1)
    total_R = cumulative_RC[:, -1]
    require_numbers(total_R)
    # If rounding made a number equal to the total, it would select a place of weight 0 after the last positive one.
    number_R = np.minimum(uniform_R * total_R, np.nextafter(total_R, 0.0))
    place_R = (cumulative_RC <= number_R[:, None]).sum(axis=1)
    rows_R = np.arange(len(place_R))
    weight_R, after_R = weights_RC[rows_R, place_R], cumulative_RC[rows_R, place_R]
    return place_R, np.clip(1.0 - (after_R - number_R) / weight_R, 0.0, 1.0)


def _nucleus(probabilities_RV: Doubles, *, share: float) -> tuple[Doubles, Ids]:
    """Return enough of the most probable tokens of each row to hold `share`, best first: probabilities and tokens."""
    best_RC, tokens_RC = stable_topk(probabilities_RV, count=NUCLEUS)
    is_short_R = best_RC.sum(axis=1) < share
    if is_short_R.any() and best_RC.shape[1] < probabilities_RV.shape[1]:
        more = ((0, 0), (0, probabilities_RV.shape[1] - best_RC.shape[1]))
        best_RC, tokens_RC = np.pad(best_RC, more), np.pad(tokens_RC, more)
        tokens_RC[is_short_R] = (-probabilities_RV[is_short_R]).argsort(axis=1, kind="stable")
        best_RC[is_short_R] = np.take_along_axis(probabilities_RV[is_short_R], tokens_RC[is_short_R], axis=1)
    return best_RC.astype(np.float64, copy=False), tokens_RC


@dataclass
class _Samples:
    """The state of sampling: the sentences of a batch with a sample that has not ended."""

    request: OutputRequest
    sampler: TokenSampler
    numbers_B: Ids
    uniform_BWT: Doubles
    tokens_BWT: Ids
    log_probabilities_BW: LogProbabilities
    has_ended_BW: Booleans

    @property
    def newest_BW(self) -> Ids:
        return self.tokens_BWT[..., -1]

    def advance(self, stepper: Stepwise[State], state: State, tokens_BW: Ids) -> Ids:
        """Draw one token for each sample; return which beam each continues, shape (B, W)."""
        position = self.tokens_BWT.shape[2]
        log_probabilities_BWV = stepper.step(state, tokens_BW)
        self.request.forbid(log_probabilities_BWV, position=position)
        # At the first step all samples continue the only beam; from then on each sample continues its own.
        beams_BW: Ids = np.minimum(np.indices(self.has_ended_BW.shape)[1], tokens_BW.shape[1] - 1)
        sentences_B1 = np.arange(len(beams_BW))[:, None]
        rows_RV = log_probabilities_BWV[sentences_B1, beams_BW].reshape(beams_BW.size, -1)
        drawn_R = self.sampler.draw(rows_RV, self.uniform_BWT[..., position].reshape(-1))
        drawn_log_R = rows_RV[np.arange(len(drawn_R)), drawn_R]
        tokens = self.request.tokens
        newest_BW = np.where(self.has_ended_BW, tokens.padding, drawn_R.reshape(beams_BW.shape))
        self.log_probabilities_BW = self.log_probabilities_BW + np.where(
            self.has_ended_BW, drawn_log_R.dtype.type(0.0), drawn_log_R.reshape(beams_BW.shape)
        )
        self.tokens_BWT = np.concatenate([self.tokens_BWT, newest_BW[..., None]], axis=2)
        self.has_ended_BW = self.has_ended_BW | (newest_BW == tokens.end)
        return beams_BW

    def release(self, found: list[list[Hypothesis]]) -> Ids | None:
        """Put the samples of done sentences into `found`; return the rows of the others, or None if none is done."""
        is_done_B = self.has_ended_BW.all(axis=1) | (self.tokens_BWT.shape[2] >= self.request.limit_B)
        if not is_done_B.any():
            return None
        for row in np.flatnonzero(is_done_B).tolist():
            samples = zip(self.tokens_BWT[row].tolist(), self.log_probabilities_BW[row].tolist(), strict=True)
            found[self.numbers_B[row]] = [self.request.hypothesis(*own) for own in samples]
        staying = np.flatnonzero(~is_done_B)
        self.request = self.request.select(staying)
        self.numbers_B, self.uniform_BWT = self.numbers_B[staying], self.uniform_BWT[staying]
        self.tokens_BWT, self.log_probabilities_BW = self.tokens_BWT[staying], self.log_probabilities_BW[staying]
        self.has_ended_BW = self.has_ended_BW[staying]
        return staying


def sample(
    stepper: Stepwise[State],
    source_BS: Ids,
    config: DecodingConfig,
    *,
    numbers: Sequence[int] | None = None,
    prefixes: Sequence[Sequence[int]] | None = None,
) -> list[list[Hypothesis]]:
    """Return `config.alternatives` independent samples for each source sentence, in the order they were drawn.

    `numbers` are the keys of the sentences for the random draws, such as their places in the whole text; unless given,
    their places in the batch. The first n samples do not depend on how many are drawn.
    """
    request = OutputRequest.of(stepper, source_BS, config, prefixes=prefixes)
    shape = (len(source_BS), request.alternatives)
    longest = int(request.limit_B.max(initial=0))
    uniform = [
        [uniform_numbers(seed=config.seed, sentence=n, draw=w, count=longest) for w in range(request.alternatives)]
        for n in (range(len(source_BS)) if numbers is None else numbers)
    ]
    samples = _Samples(
        request=request,
        sampler=TokenSampler(temperature=config.temperature, top_k=config.top_k, top_p=config.top_p),
        numbers_B=np.arange(len(source_BS)),
        uniform_BWT=np.array(uniform),
        tokens_BWT=np.empty((*shape, 0), dtype=np.int64),
        log_probabilities_BW=np.zeros(shape, dtype=np.float32),
        has_ended_BW=np.zeros(shape, dtype=np.bool_),
    )
    return run_search(stepper, source_BS, samples)
