"""Residual connections, layer normalisation and the two kinds of layer, section 3.1 of "Attention Is All You Need".

    LayerNorm(x + Dropout(Sublayer(x)))

is applied to every sub-layer; the dropout is that of section 5.4. An encoder layer has two sub-layers,
self-attention and feed-forward; a decoder layer has a third between them, attention over the encoder's output.

Departures by name: `ModelConfig.norm = "pre"`, x + Dropout(Sublayer(LayerNorm(x))), as in the authors' later code;
`norm_epsilon`; `normalization = "batch"`; `decoder_mixer = "ssru"`, an SSRU as the decoder's first sub-layer.
"""

from collections.abc import Callable

from torch import Tensor, nn

from transduce.model.attention import MultiHeadAttention
from transduce.model.config import ModelConfig
from transduce.model.decoding_cache import LayerCache
from transduce.model.feed_forward import FeedForward
from transduce.model.normalization import normalization, normalize
from transduce.model.ssru import SSRU
from transduce.networks.past import KeysAndValues, RecurrentState


class Residual(nn.Module):
    """Dropout, residual connection and layer normalisation around a sub-layer (section 3.1)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.is_pre_norm = {"post": False, "pre": True}[config.norm]
        self.norm = normalization(config)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self, inputs_BTD: Tensor, sublayer: Callable[[Tensor], Tensor], present_BT: Tensor | None = None
    ) -> Tensor:
        """Return the residual sum, shape (B, T, D), normalised; pre-norm normalises the sub-layer's input instead."""
        if self.is_pre_norm:
            outputs_BTD: Tensor = inputs_BTD + self.dropout(sublayer(normalize(self.norm, inputs_BTD, present_BT)))
        else:
            outputs_BTD = normalize(self.norm, inputs_BTD + self.dropout(sublayer(inputs_BTD)), present_BT)
        return outputs_BTD


class EncoderLayer(nn.Module):
    """Self-attention over the source, then the feed-forward network."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(config, window=config.window("encoder"))
        self.feed_forward = FeedForward(config)
        self.self_attention_residual = Residual(config)
        self.feed_forward_residual = Residual(config)

    def forward(
        self, inputs_BSD: Tensor, *, visible_BHSS: Tensor | None = None, present_BS: Tensor | None = None
    ) -> Tensor:
        """Return the layer's output, shape (B, S, D); works on bare vectors as well as on embeddings."""
        attended_BSD = self.self_attention_residual(
            inputs_BSD, lambda x_BSD: self.self_attention(x_BSD, x_BSD, visible_BHQK=visible_BHSS), present_BS
        )
        outputs_BSD: Tensor = self.feed_forward_residual(attended_BSD, self.feed_forward, present_BS)
        return outputs_BSD

    def forward_next(self, inputs_RTD: Tensor, past: KeysAndValues, *, visible_RHTK: Tensor | None) -> Tensor:
        """Return the output for the next positions of a language model's rows, and extend the cache by them."""

        def read_past(x_RTD: Tensor) -> Tensor:
            query_RHTE, key_RHTE, value_RHTG = self.self_attention.project(x_RTD, x_RTD)
            keys_RHKE, values_RHKG = past.append(key_RHTE, value_RHTG)
            return self.self_attention.combine(query_RHTE, keys_RHKE, values_RHKG, visible_BHQK=visible_RHTK)

        attended_RTD = self.self_attention_residual(inputs_RTD, read_past)
        outputs_RTD: Tensor = self.feed_forward_residual(attended_RTD, self.feed_forward)
        return outputs_RTD


class DecoderLayer(nn.Module):
    """Masked self-attention over the target, attention over the encoder's output, the feed-forward network."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.is_recurrent = {"attention": False, "ssru": True}[config.decoder_mixer]
        if self.is_recurrent:
            self.ssru = SSRU(config)
        else:
            self.self_attention = MultiHeadAttention(config, window=config.window("decoder"))
        self.cross_attention = MultiHeadAttention(config)
        self.feed_forward = FeedForward(config)
        self.self_attention_residual = Residual(config)  # around the SSRU if that replaces self-attention
        self.cross_attention_residual = Residual(config)
        self.feed_forward_residual = Residual(config)

    def forward(
        self,
        inputs_BTD: Tensor,
        memory_BSD: Tensor,
        *,
        target_visible_BHTT: Tensor | None = None,
        source_visible_BHTS: Tensor | None = None,
        present_BT: Tensor | None = None,
    ) -> Tensor:
        """Return the layer's output, shape (B, T, D)."""

        def read_past(x_BTD: Tensor) -> Tensor:
            if self.is_recurrent:
                recurrent_BTD: Tensor = self.ssru(x_BTD)[0]
                return recurrent_BTD
            attended_BTD: Tensor = self.self_attention(x_BTD, x_BTD, visible_BHQK=target_visible_BHTT)
            return attended_BTD

        def cross_attend(x_BTD: Tensor) -> Tensor:
            attended_BTD: Tensor = self.cross_attention(x_BTD, memory_BSD, visible_BHQK=source_visible_BHTS)
            return attended_BTD

        attended_BTD = self.self_attention_residual(inputs_BTD, read_past, present_BT)
        informed_BTD = self.cross_attention_residual(attended_BTD, cross_attend, present_BT)
        outputs_BTD: Tensor = self.feed_forward_residual(informed_BTD, self.feed_forward, present_BT)
        return outputs_BTD

    def start_cache(self, memory_BSD: Tensor, *, capacity: int) -> LayerCache:
        """Return the cache of one beam per sentence, with room for `capacity` target positions, all empty."""
        keys_BHSE, values_BHSG = self.cross_attention.project_memory(memory_BSD)
        room = (*keys_BHSE.shape[:2], capacity)
        keys_RHKE, values_RHKG = (each.new_empty(*room, each.size(-1)) for each in (keys_BHSE, values_BHSG))
        past = RecurrentState() if self.is_recurrent else KeysAndValues(keys_RHKE, values_RHKG)
        return LayerCache(past, keys_BHSE.contiguous(), values_BHSG.contiguous())

    def forward_next(self, inputs_BWD: Tensor, cache: LayerCache, *, source_visible_BHWS: Tensor) -> Tensor:
        """Return the output for one more token of each of W beams, shape (B, W, D), and extend the cache by it."""

        def read_past(x_BWD: Tensor) -> Tensor:
            # Each beam has its own past, so here a row is a beam and its one position.
            row_R1D = x_BWD.flatten(end_dim=1)[:, None]
            if isinstance(cache.past, RecurrentState):
                mixed_R1D, cache.past.state_RD = self.ssru.forward(row_R1D, cache.past.state_RD)
            else:
                query_RH1E, key_RH1E, value_RH1G = self.self_attention.project(row_R1D, row_R1D)
                keys_RHKE, values_RHKG = cache.past.append(key_RH1E, value_RH1G)
                mixed_R1D = self.self_attention.combine(query_RH1E, keys_RHKE, values_RHKG, visible_BHQK=None)
            return mixed_R1D.view_as(x_BWD)

        def cross_attend(x_BWD: Tensor) -> Tensor:
            # All beams of a sentence look at the same source, so here they are W queries of one row.
            return self.cross_attention.combine(
                self.cross_attention.project_query(x_BWD),
                cache.cross_keys_BHSE,
                cache.cross_values_BHSG,
                visible_BHQK=source_visible_BHWS,
            )

        attended_BWD = self.self_attention_residual(inputs_BWD, read_past)
        informed_BWD = self.cross_attention_residual(attended_BWD, cross_attend)
        outputs_BWD: Tensor = self.feed_forward_residual(informed_BWD, self.feed_forward)
        return outputs_BWD
