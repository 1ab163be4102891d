"""The Transformer step by step is the Transformer at once, and an ensemble is a mean of probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from torch import Tensor

from transduce.decoding.config import DecodingConfig
from transduce.decoding.search import search
from transduce.decoding.stepwise import Ensemble, TransformerStepper
from transduce.model import ModelConfig, Transformer
from transduce.model.masks import visible_tokens
from transduce.networks.log_probabilities import log_softmax, token_log_probabilities
from transduce.text.tokenizer import BOS, EOS

if TYPE_CHECKING:
    from tests.decoding.conftest import TableModel

WAYS = [{"beam": 1}, {"beam": 5, "alternatives": 3}, {"sample": True, "alternatives": 3}]


def small_transformer(seed: int = 0, **changes: object) -> Transformer:
    torch.manual_seed(seed)
    sizes = {"vocabulary_size": 23, "layers": 2, "d_model": 14, "d_ff": 19, "heads": 3, "d_k": 5, "d_v": 7}
    return Transformer(ModelConfig.model_validate(sizes | changes)).double().eval()


def small_sources(count: int) -> Tensor:
    """Return `count` sentences of 2 to 8 tokens, padded."""
    generator = torch.Generator().manual_seed(5)
    tokens_BS = torch.randint(4, 23, (count, 8), generator=generator)
    last_B1 = torch.randint(1, 8, (count, 1), generator=generator)
    place_S = torch.arange(8)
    return tokens_BS.masked_fill(place_S == last_B1, EOS).masked_fill(place_S > last_B1, 0)


def teacher_forced(model: Transformer, source_BS: Tensor, inputs_BT: Tensor) -> Tensor:
    """Return log p of every token after the last of each row of inputs, all positions at once, shape (B, V)."""
    hidden_BTD = model.decode(inputs_BT, model.encode(source_BS), source_visible_BS=visible_tokens(source_BS))
    return log_softmax(hidden_BTD[:, -1] @ model.output.matrix_VD.T)


@torch.no_grad()
def test_a_reordered_cache_gives_what_recomputing_gives() -> None:
    """Sentences leave, beams are copied, swapped and added, and every step equals a decoder that starts afresh."""
    model = small_transformer()
    stepper = TransformerStepper(model)
    source_BS = small_sources(5)
    state = stepper.start(source_BS)
    sentences_B = torch.arange(5)
    history_BWT = torch.full((5, 1, 1), BOS)
    generator = torch.Generator().manual_seed(1)
    for staying, width in (([0, 1, 2, 3, 4], 3), ([0, 2, 3, 4], 3), ([3, 0], 2), ([0, 1], 4), ([1], 4)):
        log_probabilities_BWV = stepper.step(state, history_BWT[..., -1])
        for row, sentence in enumerate(sentences_B.tolist()):
            sources_WS = source_BS[sentence].expand(history_BWT.size(1), -1)
            expected_WV = teacher_forced(model, sources_WS, history_BWT[row])
            torch.testing.assert_close(log_probabilities_BWV[row], expected_WV, rtol=0, atol=1e-12)
        kept = torch.tensor(staying)
        beams_BW = torch.randint(history_BWT.size(1), (len(staying), width), generator=generator)
        state = stepper.select(state, kept, beams_BW)
        sentences_B = sentences_B[kept]
        chosen_BWT = history_BWT[kept[:, None], beams_BW]
        newest_BW1 = torch.randint(4, 23, (len(staying), width, 1), generator=generator)
        history_BWT = torch.cat([chosen_BWT, newest_BW1], dim=2)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_what_search_reports_is_the_likelihood_by_teacher_forcing(way: dict[str, object], norm: str) -> None:
    model = small_transformer(norm=norm)
    source_BS = small_sources(7)
    config = DecodingConfig.model_validate({"extra_length": 9, **way})
    found = search(TransformerStepper(model), source_BS, config)
    for source_S, outputs in zip(source_BS, found, strict=True):
        for output in outputs:
            target_BT = torch.tensor([output.tokens])
            with torch.no_grad():
                log_p_BT = token_log_probabilities(model(source_S[None], target_BT), model.output, target_BT)
            assert output.log_probability == pytest.approx(float(log_p_BT.sum()), abs=1e-10)


def test_search_leaves_nothing_in_the_network_that_training_could_not_use() -> None:
    model = small_transformer()
    source_BS = small_sources(3)
    search(TransformerStepper(model), source_BS, DecodingConfig(extra_length=3))
    assert not any(tensor.is_inference() for tensor in (*model.parameters(), *model.buffers()))
    model.train()
    model(source_BS, source_BS).sum().backward()


def test_a_network_in_training_is_refused() -> None:
    with pytest.raises(AssertionError, match="eval"):
        TransformerStepper(small_transformer().train())


@pytest.mark.parametrize("way", WAYS)
def test_learned_positions_end_an_output_that_would_outgrow_them(way: dict[str, object]) -> None:
    stepper = TransformerStepper(small_transformer(positions="learned", learned_positions=11))
    assert stepper.longest_target == 11
    found = search(stepper, small_sources(9), DecodingConfig.model_validate({"minimum_length": 11, **way}))
    assert {len(output.tokens) for outputs in found for output in outputs} == {11}
    assert TransformerStepper(small_transformer()).longest_target is None
    assert Ensemble([TransformerStepper(small_transformer()), stepper]).longest_target == 11


@pytest.mark.parametrize("way", WAYS)
def test_a_model_with_itself_is_itself(way: dict[str, object]) -> None:
    stepper = TransformerStepper(small_transformer())
    config = DecodingConfig.model_validate({"extra_length": 9, **way})
    alone = search(stepper, small_sources(11), config)
    for size in (1, 2, 3):
        together = search(Ensemble([stepper] * size), small_sources(11), config)
        for ours, theirs in zip(together, alone, strict=True):
            assert [output.tokens for output in ours] == [output.tokens for output in theirs]
            assert [output.score for output in ours] == pytest.approx([output.score for output in theirs], abs=1e-12)


def test_an_ensemble_is_searched_as_the_mean_of_its_members_probabilities(table_model: type[TableModel]) -> None:
    members = [table_model.random(seed, symbols=3, sources=5) for seed in range(3)]
    mean = table_model(sum(member.log_table_NMV.exp() for member in members) / 3, memory=7)  # type: ignore[arg-type]
    sources_BS = torch.tensor([[4 + n, EOS] for n in range(5)])
    for way in WAYS:
        config = DecodingConfig.model_validate({"extra_length": 4, **way})
        for ours, theirs in zip(
            search(Ensemble(members), sources_BS, config), search(mean, sources_BS, config), strict=True
        ):
            assert [output.tokens for output in ours] == [output.tokens for output in theirs]
            assert [output.score for output in ours] == pytest.approx([output.score for output in theirs], abs=1e-12)
