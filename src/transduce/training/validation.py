"""What a validation tells the trainer, and the part of it that needs no search: loss and perplexity.

    perplexity = exp(-Σ log p(y_t) / tokens)

without label smoothing and without dropout, per piece of the shared vocabulary, as in Table 3. The ranks share the
batches, and what they find is summed in the batches' order, so that their number changes nothing.
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
from transduce.training.distributed import World
from transduce.training.loss import Smoothing, token_loss


@dataclass(frozen=True)
class Sample:
    """A validation sentence as the model translates it now."""

    source: str
    reference: str
    translation: str


@dataclass(frozen=True)
class Validation:
    """What a validation found. `loss` is the mean of -log p over the validation set's tokens."""

    loss: float
    accuracy: float | None = None
    bleu: float | None = None
    samples: tuple[Sample, ...] = ()

    @property
    def perplexity(self) -> float:
        """E to the loss; infinite rather than an overflow for a hopeless model."""
        return math.exp(self.loss) if self.loss < 700.0 else math.inf

    def measures(self) -> dict[str, JsonValue]:
        """Return the numbers for the metrics file."""
        numbers = {"loss": self.loss, "perplexity": self.perplexity, "accuracy": self.accuracy, "bleu": self.bleu}
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
    """Return the mean loss and accuracy over every sentence of a store; every rank takes part and gets the same."""
    world, progress = world or World(), progress or Silent()
    plan = BatchPlan(store.source_lengths, store.target_lengths, tokens_per_step=tokens_at_once, seed=0)
    batches = plan.epoch(0)
    own = range(world.rank, len(batches), world.size)
    unsmoothed = Smoothing(true=1.0, other=0.0)
    # A row for each batch of all ranks, summed in their order whoever filled it: the same number for any ranks.
    found = torch.zeros(len(batches), 3, dtype=torch.float64, device=arithmetic.device)
    was_training = model.training
    model.eval()
    with torch.inference_mode(), progress.stage("validating", total=len(own), unit="batches") as stage:
        for index in own:
            batch = collate(store, batches[index], padding=model.tokens.padding).to(arithmetic.device)
            with arithmetic.forward_pass():
                hidden_BTD = model(batch.source_BS, batch.target_BT)
            loss = token_loss(
                [hidden_BTD],
                model.output,
                batch.target_BT,
                smoothing=unsmoothed,
                product_dtype=arithmetic.product_dtype,
                padding=model.tokens.padding,
            )
            found[index, 0], found[index, 1], found[index, 2] = loss.nll, loss.correct, loss.tokens
            stage.advance()
    model.train(was_training)
    nll, correct, tokens = world.sum_(found).sum(dim=0).tolist()
    return Validation(loss=nll / tokens, accuracy=correct / tokens)
