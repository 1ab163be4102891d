"""Outputs drawn at random from the model's distribution, token by token; the paper only searches.

Each token is drawn from p(y_t | x, y_<t)^(1 / temperature), of which `top_k` keeps the most probable tokens and
`top_p` the fewest that hold that share of what is left (Holtzman et al. 2020); the kept are renormalised.

A draw takes one number u in [0, 1): it is the first token at which the cumulative probability exceeds u. The numbers
come from Philox, a counter-based generator: they are a function of the seed, the sentence's number, the draw's number
and the position, and of nothing else, so neither a batch's other sentences nor their order change a sample.
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

NUCLEUS = 64  # tokens; more are sorted only where these do not hold the share
RUN = 128  # tokens whose probabilities are added up before one is looked for among them
Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class TokenSampler:
    """How one token is drawn from a distribution."""

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
        """Return p^(1 / temperature), in proportion."""
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
    # The generator's raw stream is fixed for good; numpy's own way from it to floats may change.
    return (philox.random_raw(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _draw_in_runs(weights_RV: Doubles, uniform_R: Doubles) -> Ids:
    """Return the place that `_draw_place` returns, without adding up all weights one after the other."""
    rows_R, size = np.arange(len(weights_RV)), weights_RV.shape[1]
    run_R, within_R = _draw_place(np.add.reduceat(weights_RV, np.arange(0, size, RUN), axis=1), uniform_R)
    place_RN = run_R[:, None] * RUN + np.arange(RUN)
    some_RN = np.where(place_RN < size, weights_RV[rows_R[:, None], np.minimum(place_RN, size - 1)], 0.0)
    return run_R * RUN + _draw_place(some_RN, within_R)[0]


def _draw_place(weights_RC: Doubles, uniform_R: Doubles) -> tuple[Ids, Doubles]:
    """Return the first place in each row at which the share of the weights so far exceeds the row's number in [0, 1).

    Also returns where between the shares before and after that place the number is, in [0, 1].
    """
    cumulative_RC = weights_RC.cumsum(axis=1)
    total_R = cumulative_RC[:, -1]
    require_numbers(total_R)
    # Rounding must not lift a number to the total itself, behind which only places of weight 0 may stand.
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
    """The sentences of a batch of which some sample has not ended yet."""

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
        # All samples grow out of the one beam of the first step; from then on each continues itself.
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
        """Put the samples of sentences that are done into `found`; return the places of the others, if any."""
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

    `numbers` name the sentences for the random draws: their places in the whole text, if this is one batch of it;
    their places in the batch unless given. The first n samples are the same however many more are asked for.
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
