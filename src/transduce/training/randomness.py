"""Keyed randomness: every random number depends on the seed and on its purpose, not on earlier draws.

Each (seed, step, micro-batch, rank) has its own dropout key. So checkpoints need no random state, and a resumed run
draws the same numbers as an uninterrupted one.
"""

import hashlib

import torch


def mixed_seed(purpose: str, *key: int) -> int:
    """Return a 64-bit seed that depends on all of `key`; two keys, or two purposes, give unrelated seeds."""
    text = f"{purpose}:{','.join(str(part) for part in key)}"
    return int.from_bytes(hashlib.blake2b(text.encode("ascii"), digest_size=8).digest(), "little")


def dropout_key(*, seed: int, step: int, micro_batch: int, rank: int) -> int:
    """Return the key that determines the dropout masks of a micro-batch."""
    return mixed_seed("dropout", seed, step, micro_batch, rank)


def seed_weights(seed: int) -> None:
    """Seed torch so that the weights initialised next depend on this seed alone."""
    torch.manual_seed(mixed_seed("weights", seed))
