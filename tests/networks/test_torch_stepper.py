"""A network step by step is the network at once, and the best that it chooses itself are those that search chooses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from transduce.decoding.config import DecodingConfig
from transduce.decoding.ensemble import Ensemble
from transduce.decoding.search import search
from transduce.errors import ModelError
from transduce.model import ModelConfig, Transformer
from transduce.model.masks import visible_tokens
from transduce.networks.log_probabilities import log_softmax, token_log_probabilities
from transduce.networks.stepwise import Ids, LogProbabilities, Ranking
from transduce.networks.torch_stepper import TorchStepper
from transduce.special_tokens import OWN_SPECIAL_TOKENS

BOS = OWN_SPECIAL_TOKENS.start
EOS = OWN_SPECIAL_TOKENS.end

if TYPE_CHECKING:
    from torch import Tensor

WAYS = [{"beam": 1}, {"beam": 5, "alternatives": 3}, {"sample": True, "alternatives": 3}]


def small_transformer(seed: int = 0, **changes: object) -> Transformer:
    torch.manual_seed(seed)
    sizes = {"vocabulary_size": 23, "layers": 2, "d_model": 14, "d_ff": 19, "heads": 3, "d_k": 5, "d_v": 7}
    return Transformer(ModelConfig.model_validate(sizes | changes)).double().eval()


def small_sources(count: int) -> Ids:
    """Return `count` sentences of 2 to 8 tokens, padded."""
    generator = np.random.default_rng(5)
    tokens_BS = generator.integers(4, 23, (count, 8))
    last_B1 = generator.integers(1, 8, (count, 1))
    tokens_BS[np.arange(8) == last_B1] = EOS
    tokens_BS[np.arange(8) > last_B1] = 0
    return tokens_BS


def teacher_forced(model: Transformer, source_BS: Tensor, inputs_BT: Tensor) -> Tensor:
    """Return log p of every token after the last of each row of inputs, all positions at once, shape (B, V)."""
    hidden_BTD = model.decode(inputs_BT, model.encode(source_BS), source_visible_BS=visible_tokens(source_BS))
    return log_softmax(hidden_BTD[:, -1] @ model.output.matrix_VD.T)


@torch.no_grad()
def test_a_reordered_cache_gives_what_recomputing_gives() -> None:
    """Sentences leave, beams are copied, swapped and added, and every step equals a decoder that starts afresh."""
    model = small_transformer()
    stepper = TorchStepper(model)
    source_BS = small_sources(5)
    state = stepper.start(source_BS)
    sentences_B = np.arange(5)
    history_BWT = np.full((5, 1, 1), BOS)
    generator = np.random.default_rng(1)
    for staying, width in (([0, 1, 2, 3, 4], 3), ([0, 2, 3, 4], 3), ([3, 0], 2), ([0, 1], 4), ([1], 4)):
        log_probabilities_BWV = stepper.step(state, history_BWT[..., -1])
        for row, sentence in enumerate(sentences_B.tolist()):
            sources_WS = torch.from_numpy(source_BS)[sentence].expand(history_BWT.shape[1], -1)
            expected_WV = teacher_forced(model, sources_WS, torch.from_numpy(history_BWT[row]))
            np.testing.assert_allclose(log_probabilities_BWV[row], expected_WV, rtol=0, atol=1e-12)
        kept = np.array(staying)
        beams_BW = generator.integers(history_BWT.shape[1], size=(len(staying), width))
        state = stepper.select(state, kept, beams_BW)
        sentences_B = sentences_B[kept]
        newest_BW1 = generator.integers(4, 23, (len(staying), width, 1))
        history_BWT = np.concatenate([history_BWT[kept[:, None], beams_BW], newest_BW1], axis=2)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_what_search_reports_is_the_likelihood_by_teacher_forcing(way: dict[str, object], norm: str) -> None:
    model = small_transformer(norm=norm)
    source_BS = small_sources(7)
    config = DecodingConfig.model_validate({"extra_length": 9, **way})
    found = search(TorchStepper(model), source_BS, config)
    for source_S, outputs in zip(torch.from_numpy(source_BS), found, strict=True):
        for output in outputs:
            target_BT = torch.tensor([output.tokens])
            with torch.no_grad():
                log_p_BT = token_log_probabilities(model(source_S[None], target_BT), model.output, target_BT)
            assert output.log_probability == pytest.approx(float(log_p_BT.sum()), abs=1e-10)


def test_search_leaves_nothing_in_the_network_that_training_could_not_use() -> None:
    model = small_transformer()
    source_BS = small_sources(3)
    search(TorchStepper(model), source_BS, DecodingConfig(extra_length=3))
    assert not any(tensor.is_inference() for tensor in (*model.parameters(), *model.buffers()))
    model.train()
    model(torch.from_numpy(source_BS), torch.from_numpy(source_BS)).sum().backward()


def test_a_network_in_training_is_refused() -> None:
    with pytest.raises(AssertionError, match="eval"):
        TorchStepper(small_transformer().train())


@pytest.mark.parametrize("way", WAYS)
def test_learned_positions_end_an_output_that_would_outgrow_them(way: dict[str, object]) -> None:
    stepper = TorchStepper(small_transformer(positions="learned", learned_positions=11))
    assert stepper.longest_target(5) == 11
    found = search(stepper, small_sources(9), DecodingConfig.model_validate({"minimum_length": 11, **way}))
    assert {len(output.tokens) for outputs in found for output in outputs} == {11}
    assert TorchStepper(small_transformer()).longest_target(5) is None
    assert Ensemble([TorchStepper(small_transformer()), stepper]).longest_target(5) == 11


class Asked(TorchStepper):
    """A stepper on the CPU that chooses the best extensions itself, and counts how it was asked."""

    def __init__(self, network: Transformer) -> None:
        super().__init__(network)
        assert not self.prefers_ranking
        self.prefers_ranking = True
        self.steps = self.ranked = 0

    def step(self, state: Any, tokens_BW: Ids) -> LogProbabilities:  # noqa: ANN401
        self.steps += 1
        return super().step(state, tokens_BW)

    def step_best(self, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401
        self.ranked += 1
        return super().step_best(*arguments, **options)


@pytest.mark.parametrize("precision", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "way",
    [
        {"beam": 1},
        {"beam": 4},
        {"beam": 5, "alternatives": 5, "stop": "full"},
        {"beam": 3, "alternatives": 2, "minimum_length": 7, "length_penalty": 0.0},
        {"beam": 30, "alternatives": 30, "maximum_length": 4},
    ],
)
def test_the_best_that_the_network_chooses_are_those_that_search_chooses(
    way: dict[str, object], precision: torch.dtype
) -> None:
    config = DecodingConfig.model_validate({"extra_length": 9, **way})
    for seed in range(3):
        network = small_transformer(seed).to(precision)
        asked = Asked(network)
        assert isinstance(asked, Ranking)
        assert search(asked, small_sources(11), config) == search(TorchStepper(network), small_sources(11), config)
        assert asked.ranked > asked.steps == 0


def test_where_a_prefix_is_forced_the_network_is_asked_for_everything() -> None:
    network, prefixes = small_transformer(), [[5, 6], [], [1]]
    asked = Asked(network)
    found = search(asked, small_sources(3), DecodingConfig(), prefixes=prefixes)
    assert found == search(TorchStepper(network), small_sources(3), DecodingConfig(), prefixes=prefixes)
    assert asked.steps == 2
    assert asked.ranked > 2


@torch.no_grad()
def test_a_network_that_finds_all_tokens_equal_chooses_the_lower_beam_then_the_lower_token() -> None:
    network = small_transformer()
    for parameter in network.parameters():
        parameter.zero_()
    # The end has the lowest id of what may be generated, so each of the best beams could end; beam 0 takes all places.
    config = DecodingConfig(beam=3, alternatives=3, maximum_length=3, minimum_length=3)
    found = search(Asked(network), small_sources(2), config)
    assert [[own.tokens for own in outputs] for outputs in found] == [[(4, 4, EOS)]] * 2
    assert found == search(TorchStepper(network), small_sources(2), config)


def test_a_network_that_chooses_among_values_that_are_not_numbers_is_refused() -> None:
    network = small_transformer()
    torch.nn.init.constant_(network.embeddings.output_VD, torch.nan)
    with pytest.raises(ModelError, match="not numbers"):
        search(Asked(network), small_sources(2), DecodingConfig())
