"""Validation of a language model during training: loss over the held-out text, and samples that continue parts of it.

    bits per character = loss · tokens / (characters · ln 2)

Loss and perplexity are per token, so they are comparable only between models with one vocabulary; bits per character
and per byte are comparable between all.
"""

import math
from dataclasses import replace

from transduce.data.token_store import TokenStore
from transduce.decoding.generation import GenerationConfig, decode_text, generate_tokens
from transduce.networks.network import Network
from transduce.networks.torch_stepper import TorchStepper
from transduce.pipeline.validation import evenly_spread
from transduce.progress import Progress
from transduce.text.tokenizer_pair import TokenizerPair
from transduce.training.arithmetic import Arithmetic
from transduce.training.distributed import World
from transduce.training.metrics import Sample
from transduce.training.validation import Validation, measure_loss

SAMPLES = 3
SAMPLED = GenerationConfig(tokens=200, temperature=0.8)


class TextValidator:
    """Validates a language model with its current weights."""

    def __init__(
        self,
        model: Network,
        store: TokenStore,
        tokenizers: TokenizerPair,
        *,
        tokens_at_once: int,
        arithmetic: Arithmetic,
        world: World,
        progress: Progress,
    ) -> None:
        self.model, self.store, self.tokenizer = model, store, tokenizers.target
        self.tokens_at_once, self.arithmetic, self.world, self.progress = tokens_at_once, arithmetic, world, progress

    def __call__(self) -> Validation:
        """Return loss, bits per character and byte, and samples."""
        measured = self.loss()
        nats = measured.loss * float(self.store.target_lengths.sum())
        bits = {
            f"bits_per_{unit[:-1]}": nats / (self.store.notes[unit] * math.log(2)) for unit in ("characters", "bytes")
        }
        return replace(measured, **bits, samples=self.samples())

    def loss(self) -> Validation:
        """Return the loss alone."""
        return measure_loss(
            self.model,
            self.store,
            tokens_at_once=max(self.tokens_at_once, 8192),
            arithmetic=self.arithmetic,
            world=self.world,
            progress=self.progress,
        )

    def samples(self) -> tuple[Sample, ...]:
        """Return the first halves of some blocks, their true rest, and what the model writes in its place."""
        was_training = self.model.training
        stepper, found = TorchStepper(self.model.eval()), []
        for number in evenly_spread(len(self.store), SAMPLES):
            block = self.store.target(number).tolist()
            begun, rest = block[: len(block) // 2], block[len(block) // 2 :]
            written = list(generate_tokens(stepper, self.store.source(number).tolist() + begun, SAMPLED))
            found.append(Sample(*(decode_text(self.tokenizer, ids) for ids in (begun, rest, written))))
        self.model.train(was_training)
        return tuple(found)
