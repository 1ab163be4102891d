"""Sizes of a text encoder: the encoder of the paper without a decoder, with the options that BERT changed."""

from typing import Literal, Self

from pydantic import PositiveFloat, PositiveInt, model_validator

from transduce.model.config import ModelConfig
from transduce.model.cost import part_of
from transduce.model.parameters import text_encoder_shapes
from transduce.networks.config import NetworkConfig, Shapes
from transduce.networks.cost import Cost


class TextEncoderConfig(NetworkConfig, frozen=True):
    """Sizes of a text encoder. The defaults are those of BERT base but for the vocabulary (Devlin et al. 2019)."""

    kind: Literal["text-encoder"] = "text-encoder"
    """Which network: `text-encoder` is the paper's encoder without a decoder."""
    d_model: PositiveInt = 768
    """Width of the embeddings and of every layer's output. (3.1)"""
    layers: PositiveInt = 12
    """Layers, each with self-attention over the whole text and a feed-forward network. (3.1)"""
    d_ff: PositiveInt = 3072
    """Width of the feed-forward network's inner layer. (3.3)"""
    heads: PositiveInt = 12
    """Attention heads in every layer. (3.2.2)"""
    norm_epsilon: PositiveFloat = 1e-12
    """Number that layer normalisation adds to the variance. (3.1)"""
    embedding_norm: bool = True
    """Normalise the sums of embeddings, positions and token types. (3.4)"""
    learned_positions: PositiveInt = 512
    """Rows of the learned position table: the most tokens that the model reads. (3.5)"""
    token_types: PositiveInt = 2
    """Rows of the table that says which of the texts a token belongs to. (3.4)"""
    activation: Literal["relu", "gelu", "gelu_tanh", "gelu_sigmoid", "silu"] = "gelu"
    """Activation of the feed-forward network and of the masked head, as for the Transformer. (3.3)"""
    tied: bool = True
    """Whether the embedding and the matrix before the softmax are one. (3.4)"""
    masked_head: bool = True
    """Whether there is a layer that predicts masked tokens; without it a text can be embedded alone."""

    @model_validator(mode="after")
    def layers_can_be_built(self) -> Self:
        """Refuse sizes that the Transformer's layers refuse: a width that the heads cannot share."""
        _ = self.of_layers
        return self

    @property
    def of_layers(self) -> ModelConfig:
        """The config of the layers, which are those of the paper's encoder."""
        shared = {key: value for key, value in self if key in ModelConfig.model_fields}
        fixed = {"positions": "learned", "attention_bias": True, "embedding_scale": 1.0, "dropout": 0.0}
        own = {"kind": "transformer", "tied": "all" if self.tied else "inputs", "output_bias": self.masked_head}
        return ModelConfig.model_validate({**shared, **fixed, **own})

    @property
    def depth(self) -> int:
        """How many layers there are."""
        return self.layers

    @property
    def longest_sentence(self) -> int:
        """The number of learned positions."""
        return self.learned_positions

    @property
    def title(self) -> str:
        """What the network is, for a model's card."""
        return "A text encoder, the encoder of *Attention Is All You Need* without a decoder,"

    @property
    def in_words(self) -> str:
        """The sizes in a few words."""
        return f"{self.layers} layers, width {self.d_model}, {self.heads} heads"

    def parameter_shapes(self) -> Shapes:
        """Return the shape of each parameter by name."""
        return text_encoder_shapes(self.of_layers, token_types=self.token_types, masked_head=self.masked_head)

    def part_of(self, parameter: str) -> str:
        """Return the part of the network that a parameter belongs to, in words."""
        return "masked head" if parameter.startswith("masked_head") else part_of(parameter)

    def cost(self, source_length: int, target_length: int) -> Cost:
        """Return the cost of a pass over a text of `source_length`, of which `target_length` tokens are predicted."""
        d, n = self.d_model, source_length
        layer = n * (2 * 4 * d * d + 2 * 2 * d * self.d_ff) + 4 * n * n * d
        output = 2 * target_length * (self.vocabulary_size + d) * d if self.masked_head else 0
        return Cost(
            operations={"encoder": self.layers * layer, "output": output},
            sequential_steps=self.layers,
            path_length=1,
            kept_numbers=n * self.layers * (12 * d + 2 * self.d_ff),
        )
