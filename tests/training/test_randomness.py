import itertools

import torch

from transduce.training.randomness import mixed_seed, seed_dropout


def draw(seed: int, step: int, micro_batch: int, rank: int) -> tuple[float, ...]:
    seed_dropout(seed=seed, step=step, micro_batch=micro_batch, rank=rank)
    return tuple(torch.rand(4).tolist())


def test_dropout_depends_on_each_part_of_its_key_and_on_nothing_else() -> None:
    keys = list(itertools.product((1, 2), (1, 2, 11), (0, 1), (0, 1)))
    first = {key: draw(*key) for key in keys}
    torch.rand(1000)
    assert {key: draw(*key) for key in reversed(keys)} == first
    assert len(set(first.values())) == len(keys)


def test_purposes_do_not_share_seeds() -> None:
    assert mixed_seed("weights", 1) != mixed_seed("dropout", 1)
    assert mixed_seed("dropout", 1, 23) != mixed_seed("dropout", 12, 3)
    assert 0 <= mixed_seed("dropout", 1) < 1 << 64
