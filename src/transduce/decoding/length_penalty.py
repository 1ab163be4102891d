"""The length penalty of GNMT (Wu et al. 2016, equation 14), which section 6.1 of the paper uses with α = 0.6.

    lp(Y) = (5 + |Y|)^α / (5 + 1)^α          score(Y) = log P(Y | X) / lp(Y)

|Y| counts the generated tokens with their end token, as in the authors' code. Log-probabilities are negative and add
up, so without the penalty short outputs win; dividing by an lp that grows with |Y| compensates for that.
"""

from typing import overload

import numpy as np
from numpy.typing import NDArray


@overload
def length_penalty(length: int, *, alpha: float) -> float: ...
@overload
def length_penalty(length: NDArray[np.floating], *, alpha: float) -> NDArray[np.floating]: ...
def length_penalty(length: int | NDArray[np.floating], *, alpha: float) -> float | NDArray[np.floating]:
    """Return lp of one length, or of each length in an array."""
    penalty: float | NDArray[np.floating] = ((5.0 + length) / 6.0) ** alpha
    return penalty
