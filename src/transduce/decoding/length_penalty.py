"""The length penalty of GNMT (Wu et al. 2016, equation 14), which section 6.1 of the paper uses with α = 0.6.

    lp(Y) = (5 + |Y|)^α / (5 + 1)^α          score(Y) = log P(Y | X) / lp(Y)

|Y| counts the generated tokens with their end token, as in the authors' code. Log-probabilities are negative and add
up, so without the penalty short outputs win; dividing by a lp that grows with |Y| makes up for it.
"""

from typing import overload

from torch import Tensor


@overload
def length_penalty(length: int, *, alpha: float) -> float: ...
@overload
def length_penalty(length: Tensor, *, alpha: float) -> Tensor: ...
def length_penalty(length: int | Tensor, *, alpha: float) -> float | Tensor:
    """Return lp of one length, or of each length in a tensor."""
    penalty: float | Tensor = ((5.0 + length) / 6.0) ** alpha
    return penalty
