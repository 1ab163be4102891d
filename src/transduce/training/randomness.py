"""Keyed randomness: every random number follows from the seed and from what it is for, never from what came before.

Dropout is drawn anew for each (seed, step, micro-batch, rank), so no random state is saved, and a run that was
killed and resumed draws what a run never interrupted would have drawn.
"""

import hashlib

import torch


def mixed_seed(purpose: str, *key: int) -> int:
    """Return a 64-bit seed that depends on all of `key`; two keys, or two purposes, give unrelated seeds."""
    text = f"{purpose}:{','.join(str(part) for part in key)}"
    return int.from_bytes(hashlib.blake2b(text.encode("ascii"), digest_size=8).digest(), "little")


def dropout_key(*, seed: int, step: int, micro_batch: int, rank: int) -> int:
    """Return what the dropout masks of a micro-batch follow from."""
    return mixed_seed("dropout", seed, step, micro_batch, rank)


def seed_weights(seed: int) -> None:
    """Make the next initial weights those of this seed."""
    torch.manual_seed(mixed_seed("weights", seed))
