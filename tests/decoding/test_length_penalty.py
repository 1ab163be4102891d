import numpy as np
import pytest

from transduce.decoding.length_penalty import length_penalty


@pytest.mark.parametrize(
    ("alpha", "length", "expected"),
    [
        (0.6, 1, 1.0),
        (0.6, 2, 1.09690262),
        (0.6, 5, 1.35865518),
        (0.6, 10, 1.73286211),
        (0.6, 20, 2.35436208),
        (0.6, 50, 3.77856470),
        (0.3, 2, 1.04733119),
        (0.3, 10, 1.31638220),
        (0.3, 50, 1.94385306),
    ],
)
def test_the_penalty_has_the_values_worked_out_by_hand(alpha: float, length: int, expected: float) -> None:
    assert length_penalty(length, alpha=alpha) == pytest.approx(expected, abs=1e-8)
    lengths = np.array([length, length], dtype=np.float64)
    assert length_penalty(lengths, alpha=alpha).tolist() == pytest.approx([expected, expected], abs=1e-8)


def test_a_longer_output_may_beat_a_likelier_shorter_one() -> None:
    longer, shorter = -6.0 / length_penalty(10, alpha=0.6), -5.5 / length_penalty(6, alpha=0.6)
    assert longer == pytest.approx(-3.46247977, abs=1e-8)
    assert shorter == pytest.approx(-3.82311911, abs=1e-8)


def test_no_penalty_leaves_log_probabilities_alone() -> None:
    assert all(length_penalty(length, alpha=0.0) == 1.0 for length in range(1, 100))
