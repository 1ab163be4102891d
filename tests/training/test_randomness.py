import itertools

import torch

from transduce.training.randomness import dropout_key, mixed_seed


def test_dropout_depends_on_each_part_of_its_key_and_on_nothing_else() -> None:
    keys = list(itertools.product((1, 2), (1, 2, 11), (0, 1), (0, 1)))
    first = {key: dropout_key(seed=key[0], step=key[1], micro_batch=key[2], rank=key[3]) for key in keys}
    torch.rand(1000)
    again = {key: dropout_key(seed=key[0], step=key[1], micro_batch=key[2], rank=key[3]) for key in reversed(keys)}
    assert again == first
    assert len(set(first.values())) == len(keys)


def test_purposes_do_not_share_seeds() -> None:
    assert mixed_seed("weights", 1) != mixed_seed("dropout", 1)
    assert mixed_seed("dropout", 1, 23) != mixed_seed("dropout", 12, 3)
    assert 0 <= mixed_seed("dropout", 1) < 1 << 64
