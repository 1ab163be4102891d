"""Sizes of a language model: the decoder of the paper without a source, with the options that GPT-2 changed."""

from typing import Literal, Self

from pydantic import PositiveFloat, PositiveInt, model_validator

from transduce.model.config import ModelConfig
from transduce.model.cost import part_of
from transduce.model.parameters import language_model_shapes
from transduce.networks.config import NetworkConfig, Probability, Shapes
from transduce.networks.cost import Cost


class LanguageModelConfig(NetworkConfig, frozen=True):
    """Sizes of a language model. The defaults are those of GPT-2's smallest model, but for dropout and vocabulary."""

    kind: Literal["language-model"] = "language-model"
    """Which network: `language-model` is the paper's decoder without a source."""
    d_model: PositiveInt = 768
    """Width of the embeddings and of every layer's output. (3.1)"""
    layers: PositiveInt = 12
    """Layers, each with self-attention over the tokens before and a feed-forward network. (3.1)"""
    d_ff: PositiveInt | None = None
    """Width of the feed-forward network's inner layer; 4 · d_model unless given. (3.3)"""
    heads: PositiveInt = 12
    """Attention heads in every layer. (3.2.2)"""
    dropout: Probability = 0.1
    """Dropout on each sub-layer's output before it is added, and on sums of embeddings and positions. (5.4)"""
    attention_dropout: Probability = 0.0
    """Dropout on attention weights. (6.3)"""
    feed_forward_dropout: Probability = 0.0
    """Dropout after the feed-forward network's activation. (3.3)"""
    norm: Literal["post", "pre"] = "pre"
    """Place of layer normalisation: `post` in the paper and the first GPT, `pre` with a final norm in GPT-2. (3.1)"""
    norm_epsilon: PositiveFloat = 1e-5
    """Number that layer normalisation adds to the variance. (3.1)"""
    positions: Literal["sinusoidal", "learned", "none"] = "learned"
    """Positional encoding: the paper's sinusoids, a `learned` table as in GPT-2, or `none`, which leaves the causal
    order as the only sign of position. (3.5)
    """
    learned_positions: PositiveInt = 1024
    """Rows of the learned position table: the most tokens that the model reads at once. [positions] (3.5)"""
    attention_bias: bool = True
    """Add biases to W_Q, W_K, W_V and W_O. The paper's equations have none. (3.2.2)"""
    activation: Literal["relu", "gelu", "gelu_tanh", "gelu_sigmoid", "silu"] = "gelu_tanh"
    """Activation of the feed-forward network, as for the Transformer; `gelu_tanh` is GPT-2's. (3.3)"""
    tied: bool = True
    """Whether the embedding and the matrix before the softmax are one. (3.4)"""
    embedding_scale: PositiveFloat | None = 1.0
    """Factor of the embeddings, 1 in GPT-2; √d_model in the paper. (3.4)"""
    output_bias: bool = False
    """Add a learned bias to the logits. (3.4)"""

    @model_validator(mode="after")
    def layers_can_be_built(self) -> Self:
        """Refuse sizes that the Transformer's layers refuse: a width that heads or sines cannot share."""
        _ = self.of_layers
        return self

    @property
    def of_layers(self) -> ModelConfig:
        """The config of the layers: those of the paper's encoder, which here see only the positions before."""
        shared = {key: value for key, value in self if key in ModelConfig.model_fields}
        own = {"kind": "transformer", "d_ff": self.d_ff or 4 * self.d_model, "tied": "all" if self.tied else "inputs"}
        return ModelConfig.model_validate({**shared, **own})

    @property
    def depth(self) -> int:
        """How many layers there are."""
        return self.layers

    @property
    def longest_sentence(self) -> int | None:
        """The number of learned positions; a formula has no bound."""
        return self.of_layers.longest_sentence

    @property
    def title(self) -> str:
        """What the network is, for a model's card."""
        return "A language model, the decoder of *Attention Is All You Need* without a source,"

    @property
    def in_words(self) -> str:
        """The sizes in a few words."""
        return f"{self.layers} layers, width {self.d_model}, {self.heads} heads"

    def parameter_shapes(self) -> Shapes:
        """Return the shape of each parameter by name."""
        return language_model_shapes(self.of_layers)

    def part_of(self, parameter: str) -> str:
        """Return the part of the network that a parameter belongs to, in words."""
        return part_of(parameter)

    def cost(self, source_length: int, target_length: int) -> Cost:
        """Return the cost of a pass over a prompt and a text; in training, a prompt is one token and keeps nothing."""
        d, d_ff, n = self.d_model, self.of_layers.d_ff, source_length + target_length - 1
        layer = n * (2 * 4 * d * d + 2 * 2 * d * d_ff) + 4 * n * n * d
        return Cost(
            operations={"decoder": self.layers * layer, "output": 2 * target_length * self.vocabulary_size * d},
            sequential_steps=self.layers,
            path_length=1,
            kept_numbers=target_length * self.layers * (12 * d + 2 * d_ff),
        )
