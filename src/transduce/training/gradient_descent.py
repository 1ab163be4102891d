"""The optimizers of the papers that the Transformer's paper compares itself with, on flat parameters.

    sgd         θ ← θ - rate · g
    nesterov    m ← μ m + g,  θ ← θ - rate · (g + μ m)                                         μ is training.beta1
    adadelta    s ← ρ s + (1 - ρ) g²,  Δ = g √(d + ε) / √(s + ε),  d ← ρ d + (1 - ρ) Δ²,  θ ← θ - rate · Δ
                                                          ρ is training.beta2, ε is training.epsilon

Departures by name (`TrainingConfig.optimizer`). Adam's vector `mean` holds m or d, and its vector `square` holds s. A
vector that an optimizer does not use stays zero, so that all checkpoints have one form.
"""

from transduce.training.optimization import Adam


class GradientDescent(Adam):
    """Stochastic gradient descent, as in Sutskever et al. 2014 and Luong et al. 2015."""

    def step(self, *, rate: float) -> None:
        """Move against the gradient."""
        self.parameters.values.sub_(self.parameters.gradients, alpha=rate)


class Nesterov(Adam):
    """Gradient descent with Nesterov's momentum, as in ConvS2S."""

    def step(self, *, rate: float) -> None:
        """Add the gradient to the momentum, then move against both."""
        momentum, gradients = self.config.beta1, self.parameters.gradients
        self.mean.mul_(momentum).add_(gradients)
        self.parameters.values.sub_(gradients.add(self.mean, alpha=momentum), alpha=rate)


class Adadelta(Adam):
    """Adadelta (Zeiler 2012), as in RNNsearch: it derives the size of a step from past steps and gradients."""

    def step(self, *, rate: float) -> None:
        """Scale each number of the gradient by the ratio of its mean past step to its mean past gradient."""
        decay, epsilon, gradients = self.config.beta2, self.config.epsilon, self.parameters.gradients
        self.square.mul_(decay).addcmul_(gradients, gradients, value=1.0 - decay)
        steps = (self.mean + epsilon).sqrt_().div_((self.square + epsilon).sqrt_()).mul_(gradients)
        self.mean.mul_(decay).addcmul_(steps, steps, value=1.0 - decay)
        self.parameters.values.sub_(steps, alpha=rate)
