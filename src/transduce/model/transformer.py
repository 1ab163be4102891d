"""The Transformer, section 3 of "Attention Is All You Need": encoder and decoder.

The encoder maps (x_1, …, x_n) to z = (z_1, …, z_n), here `memory`; the decoder generates (y_1, …, y_m) one symbol
at a time, each depending on z and the symbols before it. "The output embeddings are offset by one position", so
that position i depends only on outputs before i: a start token is put in front of the labels and the last dropped.

Departure: the start token has an embedding of its own; the authors' code starts from a zero vector, as
`ModelConfig.start_from_zeros` does here. Other departures by name: `embedding_norm`, `final_norm`.
"""

from collections.abc import Iterable

from torch import Tensor, nn

from transduce.model.config import ModelConfig
from transduce.model.decoding_cache import DecodingCache
from transduce.model.embedding import Embeddings
from transduce.model.layers import DecoderLayer, EncoderLayer
from transduce.model.masks import as_keys, visible_to_the_left, visible_tokens
from transduce.model.normalization import MaskedBatchNorm, normalization, normalize
from transduce.model.positional_encoding import PositionalEncoding
from transduce.networks.network import MatrixView, Network, offset_by_one
from transduce.networks.output import Output
from transduce.special_tokens import OWN_SPECIAL_TOKENS, SpecialTokens

FIRST_CAPACITY = 32  # tokens; the cache doubles itself when it is full


class Encoder(nn.Module):
    """A stack of identical layers."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.positions = PositionalEncoding(config)
        self.embedding_norm = normalization(config) if config.embedding_norm else nn.Identity()
        self.dropout = nn.Dropout(config.dropout)
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.encoder_depth))
        self.final_norm = normalization(config) if config.has_final_norm else nn.Identity()

    def forward(
        self, embedded_BSD: Tensor, *, visible_BHSS: Tensor | None = None, present_BS: Tensor | None = None
    ) -> Tensor:
        """Return the memory, shape (B, S, D)."""
        x_BSD = self.dropout(normalize(self.embedding_norm, self.positions(embedded_BSD), present_BS))
        for layer in self.layers:
            x_BSD = layer(x_BSD, visible_BHSS=visible_BHSS, present_BS=present_BS)
        return normalize(self.final_norm, x_BSD, present_BS)


class Decoder(nn.Module):
    """A stack of identical layers that also attend over the memory."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.positions = PositionalEncoding(config)
        self.embedding_norm = normalization(config) if config.embedding_norm else nn.Identity()
        self.dropout = nn.Dropout(config.dropout)
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_depth))
        self.final_norm = normalization(config) if config.has_final_norm else nn.Identity()

    def forward(
        self,
        embedded_BTD: Tensor,
        memory_BSD: Tensor,
        *,
        source_visible_BHTS: Tensor | None = None,
        present_BT: Tensor | None = None,
    ) -> Tensor:
        """Return the output before the pre-softmax matrix for every target position, shape (B, T, D)."""
        x_BTD = self.dropout(normalize(self.embedding_norm, self.positions(embedded_BTD), present_BT))
        target_visible_BHTT = visible_to_the_left(x_BTD.size(1), device=x_BTD.device)
        for layer in self.layers:
            x_BTD = layer(
                x_BTD,
                memory_BSD,
                target_visible_BHTT=target_visible_BHTT,
                source_visible_BHTS=source_visible_BHTS,
                present_BT=present_BT,
            )
        return normalize(self.final_norm, x_BTD, present_BT)

    def forward_next(self, embedded_BWD: Tensor, cache: DecodingCache) -> Tensor:
        """Return the output for the next target position of every beam, shape (B, W, D)."""
        # Positions run along axis 1, which here holds beams. All beams are at one position: add an axis of length 1.
        x_BWD = self.positions(embedded_BWD.flatten(end_dim=1)[:, None], after=cache.length).view_as(embedded_BWD)
        x_BWD = self.dropout(self.embedding_norm(x_BWD))
        source_visible_BHWS = as_keys(cache.source_visible_BS)
        for layer, layer_cache in zip(self.layers, cache.layers, strict=True):
            x_BWD = layer.forward_next(x_BWD, layer_cache, source_visible_BHWS=source_visible_BHWS)  # type: ignore[operator]
        cache.length += 1
        hidden_BWD: Tensor = self.final_norm(x_BWD)
        return hidden_BWD


class Transformer(Network):
    """The whole network: token ids in, the decoder's output before the pre-softmax matrix out."""

    config: ModelConfig

    def __init__(self, config: ModelConfig, tokens: SpecialTokens = OWN_SPECIAL_TOKENS) -> None:
        super().__init__(config, tokens)
        self.embeddings = Embeddings(config, tokens)
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)

    @property
    def output(self) -> Output:
        """The pre-softmax matrix (3.4) and, where there is one, its bias."""
        return Output(self.embeddings.output_VD, self.embeddings.output_bias_V)

    def forward(self, source_BS: Tensor, target_BT: Tensor) -> Tensor:
        """Return the decoder's outputs that predict the labels `target_BT`, shape (B, T, D)."""
        inputs_BT = offset_by_one(target_BT, start=self.tokens.start)
        return self.decode(
            inputs_BT,
            self.encode(source_BS),
            source_visible_BS=self.visible(source_BS),
            target_present_BT=self.visible(target_BT),
        )

    def encode(self, source_BS: Tensor) -> Tensor:
        """Return the memory of a padded batch of source sentences, shape (B, S, D)."""
        present_BS = self.visible(source_BS)
        memory_BSD: Tensor = self.encoder(
            self.embeddings.embed_source(source_BS), visible_BHSS=as_keys(present_BS), present_BS=present_BS
        )
        return memory_BSD

    def decode(
        self,
        target_BT: Tensor,
        memory_BSD: Tensor,
        *,
        source_visible_BS: Tensor,
        target_present_BT: Tensor | None = None,
    ) -> Tensor:
        """Return the decoder's output for inputs that are already offset by one, shape (B, T, D)."""
        hidden_BTD: Tensor = self.decoder(
            self.embeddings.embed_target(target_BT),
            memory_BSD,
            source_visible_BHTS=as_keys(source_visible_BS),
            present_BT=target_present_BT,
        )
        return hidden_BTD

    def visible(self, tokens_BS: Tensor) -> Tensor:
        """Return which positions of a padded batch hold a token, shape (B, S)."""
        return visible_tokens(tokens_BS, padding=self.tokens.padding)

    def start(self, source_BS: Tensor) -> DecodingCache:
        """Encode the sources and return a cache without any target position."""
        memory_BSD = self.encode(source_BS)
        layers = [layer.start_cache(memory_BSD, capacity=FIRST_CAPACITY) for layer in self.decoder.layers]  # type: ignore[operator]
        return DecodingCache(layers, self.visible(source_BS), beams=1)

    def advance(self, state: DecodingCache, tokens_BW: Tensor) -> Tensor:
        """Return the output for one more token of each beam, shape (B, W, D), and advance the cache by it."""
        hidden_BWD: Tensor = self.decoder.forward_next(self.embeddings.embed_target(tokens_BW), state)
        return hidden_BWD

    def statistics(self) -> Iterable[Tensor]:
        """Return the running means of batch normalisation."""
        norms = (module for module in self.modules() if isinstance(module, MaskedBatchNorm))
        return (tensor for norm in norms for tensor in (norm.mean_D, norm.variance_D))

    def matrices(self) -> Iterable[MatrixView]:
        """Return every linear map of every layer."""
        return layer_matrices(self)


def layer_matrices(network: nn.Module) -> Iterable[MatrixView]:
    """Return every linear map of every layer of a network."""
    for name, module in network.named_modules():
        if ".layers." in name and isinstance(module, nn.Linear):
            yield MatrixView(f"{name}.weight", (1, module.out_features, module.in_features))
