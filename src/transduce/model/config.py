"""Sizes of the network and its named departures from the paper.

Every option's default is the paper's choice, so `ModelConfig()` is the base model of Table 3.
"""

import math
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from transduce.model.cost import Window, part_of, transformer_cost
from transduce.model.parameters import transformer_shapes
from transduce.networks.config import NetworkConfig, Probability, Shapes
from transduce.networks.cost import Cost

SIZES: Mapping[str, Literal["any"]] = {
    **dict.fromkeys(("vocabulary_size", "layers", "encoder_layers", "decoder_layers", "learned_positions"), "any"),
    **dict.fromkeys(("d_model", "d_ff", "heads", "d_k", "d_v"), "any"),
    **dict.fromkeys(("dropout", "attention_dropout", "feed_forward_dropout"), "any"),
}
"""Options that are sizes or probabilities: the part of a `Handled` table that all capabilities share."""


class ModelConfig(NetworkConfig, frozen=True):
    """Sizes of the Transformer. The defaults are the base model of Table 3."""

    kind: Literal["transformer"] = "transformer"
    """Which network: `transformer` is the paper's."""
    layers: PositiveInt = 6
    """Layers of the encoder and of the decoder, N in Table 3. (3.1)"""
    encoder_layers: PositiveInt | None = None
    """Layers of the encoder where the two stacks differ; `layers` unless given. The paper's are equal. (3.1)"""
    decoder_layers: PositiveInt | None = None
    """Layers of the decoder where the two stacks differ; `layers` unless given. The paper's are equal. (3.1)"""
    d_ff: PositiveInt = 2048
    """Width of the feed-forward network's inner layer. (3.3)"""
    heads: PositiveInt = 8
    """Attention heads in every attention sub-layer, h in Table 3. (3.2.2)"""
    d_k: PositiveInt | None = None
    """Width of a head's queries and keys; d_model / heads unless given (rows B of Table 3). (3.2.2)"""
    d_v: PositiveInt | None = None
    """Width of a head's values; d_model / heads unless given. (3.2.2)"""
    dropout: Probability = 0.1
    """P_drop, on each sub-layer's output before it is added, and on sums of embeddings and positions. (5.4)"""
    norm: Literal["post", "pre"] = "post"
    """Place of layer normalisation: `post`, LayerNorm(x + Sublayer(x)), is the paper's; `pre`, x +
    Sublayer(LayerNorm(x)) with a final norm on each stack, is the departure of the authors' later code and
    easier to train. (3.1)
    """
    normalization: Literal["layer", "batch"] = "layer"
    """What is normalised: the numbers of one position by `layer` normalisation, as in the paper, or each number over
    all positions of a batch (`batch`), for comparison; in one process and without micro-batches only. (3.1)
    """
    norm_epsilon: PositiveFloat = 1e-6
    """Number that layer normalisation adds to the variance; not in the paper. The default is that of the authors'
    code and of Marian; fairseq, CTranslate2 and PyTorch have 1e-5. (3.1)
    """
    final_norm: bool | None = None
    """Normalise the output of each stack; unless given, only with pre-norm. PyTorch's Transformer always does. (3.1)"""
    decoder_mixer: Literal["attention", "ssru"] = "attention"
    """How a target position reads those before it: by self-`attention` as in the paper, or by an `ssru`, a recurrent
    unit whose state is one vector; Marian's small models have it. (3.2.3)
    """
    positions: Literal["sinusoidal", "sinusoidal_halves", "concatenated", "learned", "none"] = "sinusoidal"
    """Positional encoding: `sinusoidal` is the paper's formula; `sinusoidal_halves` has the same numbers, all sines
    before all cosines, as in Hugging Face's Marian; `concatenated`, as in the authors' code, is sines then cosines
    over slightly longer wavelengths; `learned` is row E of Table 3; `none` leaves a bag of words. (3.5)
    """
    first_position: NonNegativeInt = 0
    """Number of a sentence's first position in the sinusoids. It is 2 in fairseq and 1 in OpenNMT-tf. (3.5)"""
    learned_positions: PositiveInt = 256
    """Rows of each learned position table; longer sentences are refused. [positions] (3.5)"""
    scores: Literal["scaled", "unscaled", "additive"] = "scaled"
    """Compatibility of query and key: `scaled` dot product is the paper's; `unscaled` and `additive` are what
    section 3.2.1 compares it with. (3.2.1)
    """
    neighbourhood: PositiveInt | None = None
    """r, the positions that self-attention sees around its own (in the decoder, before it); all unless given. The last
    row of Table 1, which the paper leaves to future work. [positions] (4)
    """
    attention_bias: bool = False
    """Add biases to W_Q, W_K, W_V and W_O. The equations have none; the first public code had them. (3.2.2)"""
    attention_dropout: Probability = 0.0
    """Dropout on attention weights. Departure: the paper names it for parsing only. (6.3)"""
    feed_forward_dropout: Probability = 0.0
    """Dropout after the feed-forward network's activation. Departure of the authors' later code. (3.3)"""
    activation: Literal["relu", "gelu", "gelu_tanh", "gelu_sigmoid", "silu"] = "relu"
    """Activation of the feed-forward network: `relu`, max(0, x), in the paper; `gelu`, x times the normal distribution
    function, in BERT; approximations of it, `gelu_tanh` in GPT-2 and `gelu_sigmoid`, x σ(1.702 x), in Marian; `silu`,
    x σ(x), in OPUS-MT's models. (3.3)
    """
    tied: Literal["all", "decoder", "inputs", "none"] = "all"
    """Which of the three V x d_model matrices are one: `all` three, the `decoder`'s input and output, the two
    `inputs`' embeddings, or `none`. (3.4)
    """
    source_vocabulary_size: Annotated[int, Field(ge=5)] | None = None
    """Rows of the source embedding where the source has a vocabulary of its own; `vocabulary_size` unless given. Some
    models of fairseq and Marian have two. [pieces] (3.4)
    """
    embedding_scale: PositiveFloat | None = None
    """Factor of the embeddings; √d_model unless given. It is 1 in GPT-2 and BERT. (3.4)"""
    embedding_norm: bool = False
    """Normalise the sums of embeddings and positions, before their dropout, as BERT and BART do. (3.4)"""
    start_from_zeros: bool = False
    """Start from a vector of zeros instead of the start token's embedding, as the authors' code and Marian. (3.4)"""
    output_bias: bool = False
    """Add a learned bias to the logits, as Marian, OpenNMT and PyTorch's tutorials do. (3.4)"""

    @model_validator(mode="after")
    def heads_share_the_width(self) -> Self:
        """Refuse a width that the heads cannot share equally, unless d_k and d_v are given."""
        if (self.d_k is None or self.d_v is None) and self.d_model % self.heads:
            narrower = self.d_model - self.d_model % self.heads
            suggestion = f"{narrower} or {narrower + self.heads}" if narrower else f"{self.heads}"
            raise ValueError(
                f"d_model = {self.d_model} cannot be shared equally by {self.heads} heads. "
                f"Set it to {suggestion}, change heads, or give d_k and d_v."
            )
        return self

    @model_validator(mode="after")
    def sines_come_in_pairs(self) -> Self:
        """Refuse an odd width for positions made of pairs of a sine and a cosine."""
        if self.positions not in ("learned", "none") and self.d_model % 2:
            raise ValueError(
                f"d_model = {self.d_model} is odd, but positions are pairs of a sine and a cosine. "
                f'Set it to {self.d_model + 1}, or choose positions = "learned".'
            )
        return self

    @model_validator(mode="after")
    def options_do_not_contradict_each_other(self) -> Self:
        """Refuse one matrix for two vocabularies, and a first position for positions without a formula."""
        if self.source_vocabulary_size is not None and self.tied in ("all", "inputs"):
            raise ValueError(
                f'tied = "{self.tied}" makes one matrix of the source and the target embedding, but with '
                f"source_vocabulary_size = {self.source_vocabulary_size} they have different rows. "
                'Set tied = "decoder" or "none", or leave out source_vocabulary_size.'
            )
        if self.first_position and self.positions in ("learned", "none"):
            raise ValueError(
                f"first_position = {self.first_position} numbers sinusoids, but positions = "
                f'"{self.positions}". Leave out first_position.'
            )
        return self

    @property
    def depth(self) -> int:
        """How many layers both stacks have."""
        return self.encoder_depth + self.decoder_depth

    @property
    def title(self) -> str:
        """The paper's network."""
        return "A Transformer of *Attention Is All You Need*"

    @property
    def in_words(self) -> str:
        """The sizes in a few words."""
        return f"{self.encoder_depth}+{self.decoder_depth} layers, width {self.d_model}, {self.heads} heads"

    @property
    def has_final_norm(self) -> bool:
        """Whether each stack ends in a layer normalisation of its own."""
        return self.norm == "pre" if self.final_norm is None else self.final_norm

    @property
    def embedding_factor(self) -> float:
        """The factor of the embeddings."""
        return math.sqrt(self.d_model) if self.embedding_scale is None else self.embedding_scale

    @property
    def query_width(self) -> int:
        """d_k, the width of one head's queries and keys (E in shapes)."""
        return self.d_k or self.d_model // self.heads

    @property
    def value_width(self) -> int:
        """d_v, the width of one head's values (G in shapes)."""
        return self.d_v or self.d_model // self.heads

    @property
    def encoder_depth(self) -> int:
        """How many layers the encoder has."""
        return self.encoder_layers or self.layers

    @property
    def decoder_depth(self) -> int:
        """How many layers the decoder has."""
        return self.decoder_layers or self.layers

    @property
    def longest_sentence(self) -> int | None:
        """The number of learned positions; a formula has no bound."""
        return self.learned_positions if self.positions == "learned" else None

    def window(self, stack: str) -> Window | None:
        """Return how many positions before and after its own a query of this stack sees, or None if it sees all."""
        r = self.neighbourhood
        return None if r is None else {"encoder": (r // 2, r // 2), "decoder": (r - 1, 0)}[stack]

    def parameter_shapes(self) -> Shapes:
        """Return the shape of each parameter by name."""
        return transformer_shapes(self)

    def part_of(self, parameter: str) -> str:
        """Return the part of the network that a parameter belongs to, in words."""
        return part_of(parameter)

    def cost(self, source_length: int, target_length: int) -> Cost:
        """Return the cost of a forward pass over a pair of these lengths."""
        return transformer_cost(self, source_length, target_length)
