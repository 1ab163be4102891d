"""Validation of a language model during training: loss over the held-out text, and samples that continue parts of it.

    bits per character = loss · tokens / (characters · ln 2)

Loss and perplexity are per token, so they are comparable only between models with one vocabulary; bits per character
and per byte are comparable between all.
"""

import math
from dataclasses import replace

from transduce.decoding.generation import GenerationConfig, decode_text, generate_tokens, text_pieces
from transduce.networks.torch_stepper import TorchStepper
from transduce.pipeline.validation import LossValidator, evenly_spread
from transduce.training.metrics import Sample
from transduce.training.validation import Validation

SAMPLES = 3
SAMPLED = GenerationConfig(tokens=200, temperature=0.8)


class TextValidator(LossValidator):
    """Validates a language model."""

    fewest_tokens_at_once = 8192
    end: str | None = None
    """Where a text of `data.unit` ends, and so a sample."""

    def __call__(self) -> Validation:
        """Return loss, bits per character and byte, and samples."""
        measured = self.loss()
        nats = measured.loss * float(self.store.target_lengths.sum())
        bits = {
            f"bits_per_{unit[:-1]}": nats / (self.store.notes[unit] * math.log(2)) for unit in ("characters", "bytes")
        }
        return replace(measured, **bits, samples=self.samples())

    def samples(self) -> tuple[Sample, ...]:
        """Return the first halves of some blocks, their true rest, and what the model writes in its place."""
        was_training = self.model.training
        stepper, tokenizer, found = TorchStepper(self.model.eval()), self.tokenizers.target, []
        for number in evenly_spread(len(self.store), SAMPLES):
            block = self.store.target(number).tolist()
            begun, rest = block[: len(block) // 2], block[len(block) // 2 :]
            prompt = self.store.source(number).tolist() + begun
            tokens = generate_tokens(stepper, prompt, SAMPLED)
            parts = text_pieces(tokenizer, prompt, tokens, () if self.end is None else (self.end,))
            found.append(Sample(decode_text(tokenizer, begun), decode_text(tokenizer, rest), "".join(parts)))
        self.model.train(was_training)
        return tuple(found)
