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
import torch
from numpy.typing import NDArray
from torch import Tensor

from transduce.decoding.candidates import require_numbers, stable_topk
from transduce.decoding.config import DecodingConfig
from transduce.decoding.hypothesis import Hypothesis
from transduce.decoding.request import Request
from transduce.decoding.stepwise import State, Stepwise, take_steps
from transduce.text.tokenizer import EOS, PAD

FIRST_NUCLEUS = 64  # tokens; more are looked at only where these do not hold the share


@dataclass(frozen=True)
class Drawing:
    """How one token is drawn from a distribution."""

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0

    def draw(self, log_probabilities_RV: Tensor, uniform_R: Tensor) -> Tensor:
        """Return one token for each row, shape (R,), decided by the row's number in [0, 1)."""
        probabilities_RC, tokens_RC = self._kept(log_probabilities_RV.double() / self.temperature)
        cumulative_RC = probabilities_RC.cumsum(dim=1)
        total_R1 = cumulative_RC[:, -1:]
        require_numbers(total_R1)
        # Rounding must not lift a number to the total itself, behind which only tokens of probability 0 may stand.
        number_R1 = torch.minimum(uniform_R[:, None] * total_R1, total_R1.nextafter(torch.zeros_like(total_R1)))
        place_R1 = torch.searchsorted(cumulative_RC, number_R1, right=True)
        return (place_R1 if tokens_RC is None else tokens_RC.gather(1, place_R1))[:, 0]

    def _kept(self, logits_RV: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return probabilities in proportion, and whose they are; of all tokens in order, if nobody's."""
        if self.top_k is not None:
            logits_RC, tokens_RC = stable_topk(logits_RV, count=self.top_k)
            probabilities_RC = logits_RC.softmax(dim=1)
        elif self.top_p == 1.0:
            return logits_RV.softmax(dim=1), None
        else:
            probabilities_RC, tokens_RC = _nucleus(logits_RV.softmax(dim=1), share=self.top_p)
        before_RC = probabilities_RC.cumsum(dim=1) - probabilities_RC
        return probabilities_RC.masked_fill(before_RC >= self.top_p, 0.0), tokens_RC


def uniform_numbers(*, seed: int, sentence: int, draw: int, count: int) -> NDArray[np.float64]:
    """Return the numbers in [0, 1) that decide positions 0 … count - 1 of one draw of one sentence."""
    philox = np.random.Philox(key=np.array([seed, sentence], dtype=np.uint64), counter=np.array([0, 0, 0, draw]))
    # The generator's raw stream is fixed for good; numpy's own way from it to floats may change.
    return (philox.random_raw(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _nucleus(probabilities_RV: Tensor, *, share: float) -> tuple[Tensor, Tensor]:
    """Return enough of the most probable tokens of each row to hold `share`, best first: probabilities and tokens."""
    count = FIRST_NUCLEUS
    while True:
        best_RC, tokens_RC = stable_topk(probabilities_RV, count=count)
        if count >= probabilities_RV.size(1) or bool((best_RC.sum(dim=1) >= share).all()):
            return best_RC, tokens_RC
        count *= 8


@dataclass
class _Samples:
    """The sentences of a batch of which some sample has not ended yet."""

    request: Request
    drawing: Drawing
    numbers_B: Tensor
    uniform_BWT: Tensor
    tokens_BWT: Tensor
    log_probabilities_BW: Tensor

    @property
    def newest_BW(self) -> Tensor:
        return self.tokens_BWT[..., -1]

    def advance(self, log_probabilities_BWV: Tensor) -> Tensor:
        """Draw one token for each sample; return which beam each continues, shape (B, W)."""
        position = self.tokens_BWT.size(2)
        self.request.forbid(log_probabilities_BWV, position=position)
        sentences, beams, _ = log_probabilities_BWV.shape
        log_probabilities_BWV = log_probabilities_BWV.expand(-1, self.request.alternatives, -1)
        drawn_R = self.drawing.draw(log_probabilities_BWV.flatten(end_dim=1), self.uniform_BWT[..., position].flatten())
        drawn_BW = drawn_R.view(sentences, -1)
        drawn_log_BW = log_probabilities_BWV.gather(2, drawn_BW[..., None])[..., 0]
        if position:
            has_ended_BW = self._has_ended()
            drawn_BW = drawn_BW.masked_fill(has_ended_BW, PAD)
            drawn_log_BW = drawn_log_BW.masked_fill(has_ended_BW, 0.0)
        self.tokens_BWT = torch.cat([self.tokens_BWT, drawn_BW[..., None]], dim=2)
        self.log_probabilities_BW = self.log_probabilities_BW + drawn_log_BW
        # All samples grow out of the one beam of the first step; from then on each continues itself.
        return torch.arange(self.request.alternatives, device=drawn_R.device).clamp(max=beams - 1).expand_as(drawn_BW)

    def release(self, found: list[list[Hypothesis]]) -> Tensor | None:
        """Put the samples of sentences that are done into `found`; return where the others stood, if not all."""
        is_done_B = self._has_ended().all(dim=1) | (self.tokens_BWT.size(2) >= self.request.limit_B)
        if not bool(is_done_B.any()):
            return None
        for row in is_done_B.nonzero()[:, 0].tolist():
            found[int(self.numbers_B[row])] = self._listed(row)
        staying = (~is_done_B).nonzero()[:, 0]
        self.request = self.request.select(staying)
        self.numbers_B, self.uniform_BWT = self.numbers_B[staying], self.uniform_BWT[staying]
        self.tokens_BWT, self.log_probabilities_BW = self.tokens_BWT[staying], self.log_probabilities_BW[staying]
        return staying

    def _has_ended(self) -> Tensor:
        return (self.newest_BW == EOS) | (self.newest_BW == PAD)

    def _listed(self, row: int) -> list[Hypothesis]:
        return [
            Hypothesis.of(tokens, log_probability=log_probability, alpha=self.request.length_penalty)
            for tokens, log_probability in zip(
                self.tokens_BWT[row].tolist(), self.log_probabilities_BW[row].tolist(), strict=True
            )
        ]


def sample(
    stepper: Stepwise[State],
    source_BS: Tensor,
    config: DecodingConfig,
    *,
    numbers: Sequence[int] | None = None,
    prefixes: Sequence[Sequence[int]] | None = None,
) -> list[list[Hypothesis]]:
    """Return `config.alternatives` independent samples for each source sentence, in the order they were drawn.

    `numbers` name the sentences for the random draws: their places in the whole text, if this is one batch of it;
    their places in the batch unless given. The first n samples are the same however many more are asked for.
    """
    sentences, device = source_BS.size(0), source_BS.device
    request = Request.of(source_BS, config, prefixes=prefixes, longest_target=stepper.longest_target)
    longest = int(request.limit_B.max()) if sentences else 0
    uniform = [
        [uniform_numbers(seed=config.seed, sentence=n, draw=w, count=longest) for w in range(request.alternatives)]
        for n in (range(sentences) if numbers is None else numbers)
    ]
    samples = _Samples(
        request=request,
        drawing=Drawing(temperature=config.temperature, top_k=config.top_k, top_p=config.top_p),
        numbers_B=torch.arange(sentences, device=device),
        uniform_BWT=torch.tensor(np.array(uniform), device=device),
        tokens_BWT=torch.empty(sentences, request.alternatives, 0, dtype=torch.int64, device=device),
        log_probabilities_BW=torch.zeros(sentences, request.alternatives, device=device),
    )
    return take_steps(stepper, source_BS, samples)
