"""A language model: the decoder of "Attention Is All You Need" without a source, as in GPT (Radford et al. 2018, 2019).

    p(y_1 … y_m | prompt) = Π_t p(y_t | prompt, y_1 … y_{t-1})

A decoder layer without attention over a source is an encoder layer whose positions see only those before them, so this
network is made of the paper's encoder and of the mask of 3.2.3. Its source is a prompt: the tokens before the text. It
holds at least one token; that of a text's beginning is the start token alone.

Departures by name, all in `LanguageModelConfig`: what GPT-2 changed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from transduce.model.embedding import Embeddings
from transduce.model.language_model_config import LanguageModelConfig
from transduce.model.layers import EncoderLayer
from transduce.model.masks import as_keys, visible_to_the_left, visible_tokens
from transduce.model.transformer import Encoder, layer_matrices
from transduce.networks.attention_block import AttentionBlock
from transduce.networks.attention_sublayer import record_attention
from transduce.networks.network import MatrixView, Network
from transduce.networks.output import Output
from transduce.networks.past import KeysAndValues
from transduce.special_tokens import OWN_SPECIAL_TOKENS, SpecialTokens


@dataclass
class PromptCache:
    """The keys and values of the tokens so far, for B prompts with W beams each; a row is a beam."""

    layers: list[KeysAndValues]
    prompt_visible_RP: Tensor
    """Which of the cached positions of the prompts hold a token; P is the longest prompt without its last token."""
    lengths_R: Tensor
    """How many tokens each row has read."""
    unread_R: Tensor | None
    """The last token of each prompt until it is read: it is the first that predicts."""
    beams: int = 1


class LanguageModel(Network):
    """The decoder alone: token ids in, its output before the pre-softmax matrix out."""

    config: LanguageModelConfig

    def __init__(self, config: LanguageModelConfig, tokens: SpecialTokens = OWN_SPECIAL_TOKENS) -> None:
        super().__init__(config, tokens)
        self.embeddings = Embeddings(config.of_layers, tokens)
        self.decoder = Encoder(config.of_layers)

    @property
    def output(self) -> Output:
        """The pre-softmax matrix (3.4) and, where there is one, its bias."""
        return Output(self.embeddings.output_VD, self.embeddings.output_bias_V)

    def longest_target(self, source_length: int) -> int | None:
        """Return how many tokens can follow a prompt; the last of them is not read."""
        longest = self.longest_sentence
        return None if longest is None else max(0, longest - source_length + 1)

    def forward(self, source_BS: Tensor, target_BT: Tensor) -> Tensor:
        """Return the hidden vectors that predict `target_BT` after the prompts `source_BS`, shape (B, T, D)."""
        read_BN = torch.cat([source_BS, target_BT[:, :-1]], dim=1)
        lengths_B = visible_tokens(source_BS, padding=self.tokens.padding).sum(dim=1)
        is_padded = source_BS.size(1) > 1 and bool((lengths_B < source_BS.size(1)).any())
        if is_padded:  # join each prompt with its text: the padding between them moves to the end, which nothing sees
            order_BN = (read_BN == self.tokens.padding).long().argsort(dim=1, stable=True)
            labels_B = visible_tokens(target_BT, padding=self.tokens.padding).sum(dim=1)
            read_BN = read_BN.gather(1, order_BN)[:, : int((lengths_B + labels_B).max()) - 1]
        hidden_BND = self.decoder(
            self.embeddings.embed_target(read_BN),
            visible_BHSS=visible_to_the_left(read_BN.size(1), device=read_BN.device),
        )
        if not is_padded:
            hidden_BTD: Tensor = hidden_BND[:, source_BS.size(1) - 1 :]
            return hidden_BTD
        places_BT = lengths_B[:, None] - 1 + torch.arange(target_BT.size(1), device=read_BN.device)
        places_BT = places_BT.clamp(max=read_BN.size(1) - 1)  # those of padding, whose outputs nothing reads
        picked_BTD: Tensor = hidden_BND.gather(1, places_BT[..., None].expand(-1, -1, hidden_BND.size(-1)))
        return picked_BTD

    def start(self, source_BS: Tensor) -> PromptCache:
        """Read the prompts, all but the last token of each, in one pass."""
        present_BS = visible_tokens(source_BS, padding=self.tokens.padding)
        lengths_B = present_BS.sum(dim=1)
        unread_B = source_BS.gather(1, lengths_B[:, None] - 1)[:, 0]
        visible_BP = torch.arange(source_BS.size(1) - 1, device=source_BS.device) < lengths_B[:, None] - 1
        like_BHKE = self.embeddings.source_VD.new_empty(
            len(source_BS), self.config.heads, 0, self.config.of_layers.query_width
        )
        layers = [KeysAndValues(like_BHKE, like_BHKE) for _ in self.decoder.layers]
        state = PromptCache(layers, visible_BP, torch.zeros_like(lengths_B), unread_B)
        if visible_BP.size(1):
            length = visible_BP.size(1)
            visible_BHPP = visible_to_the_left(length, device=source_BS.device)
            self._read(state, self.decoder.positions(self.embeddings.embed_target(source_BS[:, :-1])), visible_BHPP)
        state.lengths_R = lengths_B - 1
        return state

    def advance(self, state: PromptCache, tokens_BW: Tensor) -> Tensor:
        """Read one more token of each beam; the first is the prompt's last, in place of the start token."""
        tokens_R = tokens_BW.flatten()
        if state.unread_R is not None:
            tokens_R, state.unread_R = state.unread_R, None
        embedded_R1D = self.decoder.positions.at(self.embeddings.embed_target(tokens_R[:, None]), state.lengths_R)
        later = state.layers[0].length + 1 - state.prompt_visible_RP.size(1)
        visible_RK = functional.pad(state.prompt_visible_RP, (0, later), value=True)
        hidden_R1D = self._read(state, embedded_R1D, None if bool(visible_RK.all()) else as_keys(visible_RK))
        state.lengths_R = state.lengths_R + 1
        return hidden_R1D.view(*tokens_BW.shape, -1)

    def select(self, state: PromptCache, sentences_B: Tensor, beams_BW: Tensor) -> PromptCache:
        """Reorder the cache in place."""
        rows_R = (sentences_B[:, None] * state.beams + beams_BW).flatten()
        if not torch.equal(rows_R, torch.arange(state.lengths_R.numel(), device=rows_R.device)):
            for past in state.layers:
                past.select(rows_R)
            state.prompt_visible_RP = state.prompt_visible_RP.index_select(0, rows_R)
            state.lengths_R = state.lengths_R.index_select(0, rows_R)
            state.unread_R = None if state.unread_R is None else state.unread_R.index_select(0, rows_R)
        state.beams = beams_BW.size(1)
        return state

    def attention(self, source: Sequence[int], target: Sequence[int]) -> Mapping[str, AttentionBlock]:
        """Return the attention of a text: a triangle for each head. The prompt is the start token alone."""
        assert len(source) == 1, "a text is shown whole, so that each position reads the start token or its tokens"
        return record_attention(self, source, target)

    def matrices(self) -> Iterable[MatrixView]:
        """Return every linear map of every layer."""
        return layer_matrices(self)

    def _read(self, state: PromptCache, x_RTD: Tensor, visible_RHTK: Tensor | None) -> Tensor:
        """Pass the next tokens through all layers, and keep their keys and values."""
        x_RTD = self.decoder.dropout(x_RTD)
        for layer, past in zip(self.decoder.layers, state.layers, strict=True):
            assert isinstance(layer, EncoderLayer)
            x_RTD = layer.forward_next(x_RTD, past, visible_RHTK=visible_RHTK)
        hidden_RTD: Tensor = self.decoder.final_norm(x_RTD)
        return hidden_RTD
