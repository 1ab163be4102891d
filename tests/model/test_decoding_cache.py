"""Decoding one token at a time from cached keys and values equals decoding the whole prefix again."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from transduce.model import Transformer, transformer
from transduce.model.decoding_cache import DecodingCache
from transduce.model.masks import visible_tokens
from transduce.networks.past import KeysAndValues, RecurrentState

MakeModel = Callable[..., Transformer]
OPTIONS: list[dict[str, object]] = [
    {},
    {"norm": "pre"},
    {"positions": "learned", "d_model": 17},
    {"positions": "concatenated"},
    {"positions": "none"},
    {"scores": "additive"},
    {"scores": "unscaled", "attention_bias": True},
    {"tied": "none", "encoder_layers": 1, "decoder_layers": 3},
    {"decoder_mixer": "ssru"},
    {"decoder_mixer": "ssru", "norm": "pre", "embedding_norm": True, "final_norm": False},
    {"positions": "sinusoidal_halves", "first_position": 2, "start_from_zeros": True, "embedding_scale": 1.5},
]


class Both:
    """A model decoding the same hypotheses with a cache and without."""

    def __init__(self, model: Transformer, source_BS: Tensor, *, beams: int) -> None:
        self.model, self.source_BS = model, source_BS
        self.cache: DecodingCache = model.start(source_BS)
        self.prefix_BWT = torch.empty(source_BS.size(0), 1, 0, dtype=torch.long)
        self.select(list(range(source_BS.size(0))), [[0] * beams] * source_BS.size(0))

    def step(self) -> None:
        """Append a token of its own to every beam, and hold the cached output against the uncached one."""
        tokens_BW = torch.randint(2, 31, self.prefix_BWT.shape[:2])
        self.prefix_BWT = torch.cat([self.prefix_BWT, tokens_BW[..., None]], dim=-1)
        hidden_BWD = self.model.advance(self.cache, tokens_BW)
        assert_close(hidden_BWD, self.recomputed())
        assert self.cache.length == self.prefix_BWT.size(-1)

    def recomputed(self) -> Tensor:
        beams = self.prefix_BWT.size(1)
        source_RS = self.source_BS.repeat_interleave(beams, dim=0)  # every beam a sentence by itself
        hidden_RTD = self.model.decode(
            self.prefix_BWT.flatten(end_dim=1),
            self.model.encode(source_RS),
            source_visible_BS=visible_tokens(source_RS),
        )
        return hidden_RTD[:, -1].view(-1, beams, hidden_RTD.size(-1))

    def select(self, sentences: list[int], beams: list[list[int]]) -> None:
        chosen, beams_BW = torch.tensor(sentences), torch.tensor(beams)
        self.cache.select(chosen, beams_BW)
        self.source_BS = self.source_BS[chosen]
        self.prefix_BWT = self.prefix_BWT[chosen[:, None], beams_BW]


@pytest.mark.parametrize("option", OPTIONS, ids=str)
@torch.no_grad()
def test_cached_equals_uncached(make_model: MakeModel, source_BS: Tensor, option: dict[str, object]) -> None:
    both = Both(make_model(**option), source_BS, beams=5)
    for _ in range(7):
        both.step()


@pytest.mark.parametrize(
    ("sentences", "beams"),
    [
        ([0, 1, 2], [[0, 1, 2, 3, 4]] * 3),  # nothing moves
        ([0, 1, 2], [[4, 4, 0, 1, 1], [3, 2, 1, 0, 4], [0, 1, 2, 3, 4]]),  # beams are reordered and copied
        ([0, 2], [[0, 1, 2, 3, 4]] * 2),  # a sentence is finished
        ([2, 0], [[1, 0, 2, 4, 3], [3, 3, 3, 3, 3]]),  # all at once
        ([0, 1, 2], [[3], [1], [2]]),  # the beam narrows
        ([1, 1, 0, 2], [[0, 1, 2, 3, 4, 0, 1]] * 4),  # the beam widens, a sentence is doubled
        ([0], [[0, 1, 2, 3, 4]]),  # the first rows stay, the rest goes
    ],
)
@pytest.mark.parametrize("decoder_mixer", ["attention", "ssru"])
@torch.no_grad()
def test_selecting_equals_recomputation(
    make_model: MakeModel, source_BS: Tensor, decoder_mixer: str, sentences: list[int], beams: list[list[int]]
) -> None:
    both = Both(make_model(decoder_mixer=decoder_mixer), source_BS, beams=5)
    both.step()
    both.step()
    both.select(sentences, beams)
    both.step()
    both.step()


@pytest.mark.parametrize("decoder_mixer", ["attention", "ssru"])
@torch.no_grad()
def test_selecting_again_and_again(
    make_model: MakeModel, source_BS: Tensor, decoder_mixer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transformer, "FIRST_CAPACITY", 2)
    both = Both(make_model(decoder_mixer=decoder_mixer), source_BS, beams=5)
    width = 5
    for sentences, next_width in (([0, 1, 2], 3), ([2, 0], 7), ([1, 0], 7), ([1], 2), ([0], 2)):
        both.step()
        both.step()
        both.select(sentences, torch.randint(width, (len(sentences), next_width)).tolist())
        width = next_width
    both.step()


@pytest.mark.parametrize("capacity", [1, 2, 3, 64])
@torch.no_grad()
def test_the_buffer_grows_when_it_is_full(
    make_model: MakeModel, source_BS: Tensor, capacity: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transformer, "FIRST_CAPACITY", capacity)
    both = Both(make_model(), source_BS, beams=2)
    for _ in range(7):
        both.step()
    past = both.cache.layers[0].past
    assert isinstance(past, KeysAndValues)
    assert past.keys_RHKE.size(2) >= 7


@torch.no_grad()
def test_what_comes_from_the_source_is_held_once_per_sentence(make_model: MakeModel, source_BS: Tensor) -> None:
    both = Both(make_model(), source_BS, beams=5)
    both.step()
    layer = both.cache.layers[0]
    assert isinstance(layer.past, KeysAndValues)
    assert layer.cross_keys_BHSE.shape == (3, 3, 11, 5)
    assert layer.cross_values_BHSG.shape == (3, 3, 11, 7)
    assert layer.past.keys_RHKE.shape == (15, 3, 32, 5)
    both.select([2, 0], [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0]])
    assert layer.cross_keys_BHSE.shape == (2, 3, 11, 5)
    assert layer.past.keys_RHKE.shape == (10, 3, 32, 5)


@torch.no_grad()
def test_an_ssru_keeps_one_vector_for_each_row_however_long_the_past(make_model: MakeModel, source_BS: Tensor) -> None:
    both = Both(make_model(decoder_mixer="ssru"), source_BS, beams=5)
    for _ in range(3):
        both.step()
        for layer in both.cache.layers:
            assert isinstance(layer.past, RecurrentState)
            assert layer.past.state_RD is not None
            assert layer.past.state_RD.shape == (15, 14)
