"""The confidence of a translation: the estimated probability that its chrF against a reference would be at least 60.

A logistic regression on figures that are known after the search, without a further pass of the model:

    p = σ(b + Σ w_i (x_i − mean_i) / deviation_i)

    x_1      log-probability of the output, per token
    x_2      the same for the sentence where it is lowest
    x_3      x_1 · log of the number of output tokens: a long output is less often as good as its mean says
    x_4      log of the number of source tokens
    x_5      |log(characters of the output / characters of the source)|
    x_6      characters of the source per token: rare words are cut into short pieces
    x_7      characters of the output per token
    x_8      1 if the output stutters

The weights belong to one model. `transduce calibrate` fits them to pairs that the model was not trained on.
"""

import math
from collections.abc import Sequence
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, FiniteFloat

from transduce.translator.checks import stutters
from transduce.translator.translation import Alternative

GOOD_CHRF = 60.0
_RIDGE = 1.0
_FARTHEST = 4.0  # deviations from the mean; farther values are clipped, because the fit is not reliable there


FEATURES = 8


class ConfidenceModel(BaseModel, frozen=True, extra="forbid"):
    """The weights of the regression."""

    means: tuple[FiniteFloat, ...]
    deviations: tuple[Annotated[FiniteFloat, Field(gt=0)], ...]
    weights: tuple[FiniteFloat, ...]
    bias: FiniteFloat
    pairs: int
    """How many pairs they were fitted to."""

    def of(self, source: str, output: Alternative) -> float:
        """Return the confidence of an output for a text."""
        return self.of_features(features_of(source, output))

    def of_features(self, features: Sequence[float]) -> float:
        """Return the confidence of an output with these figures."""
        z = self.bias
        for value, mean, deviation, weight in zip(features, self.means, self.deviations, self.weights, strict=True):
            z += weight * max(-_FARTHEST, min(_FARTHEST, (value - mean) / deviation))
        return round(1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, z)))), 3)


def features_of(source: str, output: Alternative) -> tuple[float, ...]:
    """Return the figures x_1 to x_8 of an output."""
    source_tokens = sum(sentence.source_tokens for sentence in output.sentences)
    output_tokens = sum(len(sentence.tokens) for sentence in output.sentences)
    mean = output.log_probability / max(1, output_tokens)
    means = [sentence.log_probability / max(1, len(sentence.tokens)) for sentence in output.sentences]
    return (
        mean,
        min(means, default=0.0),
        mean * math.log(1 + output_tokens),
        math.log(1 + source_tokens),
        abs(math.log((1 + len(output.text)) / (1 + len(source)))),
        len(source) / max(1, source_tokens),
        len(output.text) / max(1, output_tokens),
        float(stutters(source, output.text)),
    )


def fit_confidence(features_NF: NDArray[np.float64], is_good_N: NDArray[np.bool_]) -> ConfidenceModel:
    """Fit the regression by Newton's method, with a small penalty on the weights."""
    means_F, deviations_F = features_NF.mean(axis=0), np.maximum(features_NF.std(axis=0), 1e-6)
    standard_NF = np.clip((features_NF - means_F) / deviations_F, -_FARTHEST, _FARTHEST)
    inputs_NG = np.column_stack([np.ones(len(standard_NF)), standard_NF])
    penalty_G = np.r_[0.0, np.full(features_NF.shape[1], _RIDGE)]
    weights_G = np.zeros(inputs_NG.shape[1])
    for _ in range(50):
        p_N = 1.0 / (1.0 + np.exp(-np.clip(inputs_NG @ weights_G, -30, 30)))
        gradient_G = inputs_NG.T @ (is_good_N - p_N) - penalty_G * weights_G
        curvature_GG = (inputs_NG * (p_N * (1 - p_N))[:, None]).T @ inputs_NG + np.diag(penalty_G + 1e-9)
        step_G = np.linalg.solve(curvature_GG, gradient_G)
        weights_G += step_G
        if np.abs(step_G).max() < 1e-8:
            break
    return ConfidenceModel(
        means=tuple(means_F.tolist()),
        deviations=tuple(deviations_F.tolist()),
        weights=tuple(weights_G[1:].tolist()),
        bias=float(weights_G[0]),
        pairs=len(is_good_N),
    )
