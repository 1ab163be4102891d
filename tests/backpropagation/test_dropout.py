import pytest
import torch

from transduce.backpropagation.dropout import KeyedDropout


@pytest.mark.parametrize("probability", [0.1, 0.3, 0.5])
def test_it_drops_the_share_it_is_told_and_keeps_the_mean(probability: float) -> None:
    ones = torch.ones(997, 1009)
    kept = KeyedDropout(3).keep(ones, probability=probability)
    assert kept is not None
    dropped = kept.times(ones)
    share = float((dropped == 0).double().mean())
    assert share == pytest.approx(probability, abs=4 * (probability / ones.numel()) ** 0.5)
    assert float(dropped.double().mean()) == pytest.approx(1.0, abs=0.005)
    assert dropped.max().item() == pytest.approx(1 / (1 - probability), rel=1e-4)


def test_neighbours_are_independent() -> None:
    """Four neighbours share a random word: each pair of them must still be dropped together p² of the time."""
    kept = KeyedDropout(3).keep(torch.ones(250_000, 4), probability=0.3)
    assert kept is not None
    dropped = 1.0 - kept.kept.double()
    together = (dropped.T @ dropped / dropped.size(0)).fill_diagonal_(0.09)
    assert (together - 0.09).abs().max() < 0.003


def test_masks_follow_from_the_key_alone_and_differ_from_each_other() -> None:
    like = torch.ones(5, 7)

    def masks(key: int) -> list[torch.Tensor]:
        dropout = KeyedDropout(key)
        found = [dropout.keep(like, probability=0.5) for _ in range(2)]
        return [kept.kept for kept in found if kept is not None]

    first, again, other = masks(1), masks(1), masks(2)
    assert all(torch.equal(one, same) for one, same in zip(first, again, strict=True))
    assert not torch.equal(first[0], first[1])
    assert not torch.equal(first[0], other[0])


def test_no_dropout_draws_nothing() -> None:
    dropout, like = KeyedDropout(1), torch.ones(3, 5)
    assert dropout.keep(like, probability=0.0) is None
    first, fresh = dropout.keep(like, probability=0.5), KeyedDropout(1).keep(like, probability=0.5)
    assert first is not None
    assert fresh is not None
    assert torch.equal(first.kept, fresh.kept)


def test_the_sum_with_a_residual_is_the_product_added() -> None:
    x, branch = torch.randn(11, 13, dtype=torch.float64), torch.randn(11, 13, dtype=torch.float64)
    kept = KeyedDropout(1).keep(branch, probability=0.25)
    assert kept is not None
    torch.testing.assert_close(kept.added_to(x, branch), x + kept.times(branch))
