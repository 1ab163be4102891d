"""The default schedule of a run that starts from the weights of another model (`training.start_from`).

A trained network needs neither the paper's 4,000 steps of warm-up nor its batches of 25,000 tokens: 3,000 captions are
three such batches. Here batches are small, so that there are many updates; the rate rises within some steps and is
lower than for random weights; validation comes early and ends training; little text gets more dropout. The optimizer
starts fresh. docs/fine_tuning.md has the measurements.

Departure: the paper trains from random weights only. `training.schedule = "paper"` gives its schedule instead. Keys
that the user sets override these defaults.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from transduce.experiment import merged

_RATE_TIMES_WIDTH = 0.128  # the rate 5e-4 at d_model = 256, which was measured; wider networks need a lower rate
_PATIENCE = 5


@dataclass(frozen=True)
class _Amount:
    """An amount of text, and the settings that suit it."""

    least_pairs: int
    in_words: str
    batch_tokens: int
    warmup_steps: int
    least_dropout: float


_AMOUNTS = (
    _Amount(100_000, "much text", batch_tokens=4096, warmup_steps=200, least_dropout=0.0),
    _Amount(10_000, "some text", batch_tokens=2048, warmup_steps=100, least_dropout=0.0),
    _Amount(0, "little text", batch_tokens=1024, warmup_steps=100, least_dropout=0.2),
)


def fine_tuned(asked: Mapping[str, Any], model: Mapping[str, Any], *, pairs: int) -> tuple[dict[str, Any], str]:
    """Return the settings for adapting a network with the sizes `model` to `pairs` pairs, and why.

    The keys in `asked`, which the user set, override the defaults.
    """
    amount = next(amount for amount in _AMOUNTS if pairs >= amount.least_pairs)
    every = min(500, max(10, pairs // 30))
    chosen = {
        "data": {"held_out_valid": min(2000, max(pairs // 50, min(100, pairs // 10), 1))},
        "model": {"dropout": max(model["dropout"], amount.least_dropout)},
        "training": {
            "batch_tokens": amount.batch_tokens,
            "schedule": "inverse_sqrt",
            "peak": round(_RATE_TIMES_WIDTH / model["d_model"], 6),
            "warmup_steps": amount.warmup_steps,
            "validate_every": every,
            "checkpoint_every": every,
            "patience": _PATIENCE,
        },
    }
    is_text = model.get("kind") == "language-model"
    things = "lines" if is_text else "pairs"
    if is_text:  # its validation is the end of the text, and its loss is compared with that before
        chosen = merged(chosen, {"training": {"label_smoothing": 0.0, "clip_norm": 1.0}})
        del chosen["data"]
    settings = merged(chosen, asked)
    training = settings["training"]
    reason = (
        f"{pairs:,} {things} are {amount.in_words}: batches of {training['batch_tokens']} tokens, dropout "
        f"{settings['model']['dropout']}, a rate of at most {training['peak']} after {training['warmup_steps']} steps, "
        f"validation every {training['validate_every']} steps until {training['patience']} in a row are no better"
    )
    return settings, reason
