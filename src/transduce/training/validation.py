"""The result of a validation, and the part of it that needs no search: loss and perplexity.

    perplexity = exp(-Σ log p(y_t) / tokens)

without label smoothing or dropout, per token of the vocabulary, as in Table 3. The ranks share the batches. Their
results are summed in the order of the batches, so the number of ranks does not change the result.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from pydantic import JsonValue

from transduce.data.batch import collate
from transduce.data.batching import BatchPlan
from transduce.data.token_store import TokenStore
from transduce.networks.network import Network
from transduce.progress import Progress, Silent
from transduce.training.arithmetic import Arithmetic
from transduce.training.batches import pairs_that_fit
from transduce.training.distributed import World
from transduce.training.loss import token_loss
from transduce.training.metrics import Sample
from transduce.training.smoothing import Smoothing


@dataclass(frozen=True)
class Validation:
    """The result of a validation; `loss` is the mean of -log p over the tokens of the validation set."""

    loss: float
    accuracy: float | None = None
    bleu: float | None = None
    bits_per_character: float | None = None
    """Of a language model; also per byte."""
    bits_per_byte: float | None = None
    samples: tuple[Sample, ...] = ()

    @property
    def perplexity(self) -> float:
        """exp(loss), or infinity where that would overflow."""
        return math.exp(self.loss) if self.loss < 700.0 else math.inf

    def measures(self) -> dict[str, JsonValue]:
        """Return the numbers for the metrics file."""
        numbers = {"loss": self.loss, "perplexity": self.perplexity, "accuracy": self.accuracy, "bleu": self.bleu}
        numbers |= {"bits_per_character": self.bits_per_character, "bits_per_byte": self.bits_per_byte}
        return {name: number for name, number in numbers.items() if number is not None and math.isfinite(number)}


Validate = Callable[[], Validation]


def measure_loss(
    model: Network,
    store: TokenStore,
    *,
    tokens_at_once: int,
    arithmetic: Arithmetic,
    world: World | None = None,
    progress: Progress | None = None,
) -> Validation:
    """Return the mean loss and accuracy over a store, the same on every rank; all ranks must call it."""
    world, progress = world or World(), progress or Silent()
    fits = pairs_that_fit(model, store)
    plan = BatchPlan(store.source_lengths, store.target_lengths, tokens_per_step=tokens_at_once, seed=0, fits=fits)
    batches = plan.epoch(0)
    own = range(world.rank, len(batches), world.size)
    unsmoothed = Smoothing(true=1.0, other=0.0)
    # One row for each batch of all ranks: the order of the sum does not depend on the number of ranks.
    sums = torch.zeros(len(batches), 3, dtype=torch.float64, device=arithmetic.device)
    was_training = model.training
    model.eval()
    with torch.inference_mode(), progress.stage("validating", total=len(own), unit="batches") as stage:
        for index in own:
            batch = collate(store, batches[index], padding=model.tokens.padding).to(arithmetic.device)
            with arithmetic.forward_pass():
                hidden_BTD = model(batch.source_BS, batch.target_BT)
            loss = token_loss(
                hidden_BTD,
                model.output,
                batch.target_BT,
                smoothing=unsmoothed,
                product_dtype=arithmetic.product_dtype,
                padding=model.tokens.padding,
            )
            sums[index, 0], sums[index, 1], sums[index, 2] = loss.nll, loss.correct, loss.tokens
            stage.advance()
    model.train(was_training)
    nll, correct, tokens = world.sum_(sums).sum(dim=0).tolist()
    return Validation(loss=nll / tokens, accuracy=correct / tokens)
