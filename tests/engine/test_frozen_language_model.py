"""A language model in the core: a prompt read in one pass, texts of unequal prompts, beams, and the search."""

import numpy as np
import pytest
import torch

from transduce.core import has_core
from transduce.decoding.config import DecodingConfig
from transduce.decoding.search import search
from transduce.engine.frozen_language_model import FrozenLanguageModel
from transduce.engine.frozen_network import FrozenPrecision
from transduce.model.language_model import LanguageModel
from transduce.model.language_model_config import LanguageModelConfig
from transduce.networks.torch_stepper import TorchStepper

pytestmark = pytest.mark.skipif(not has_core(), reason="the C++ core was not built")
PADDING, START = 0, 2
LONG = [START, *(5 + 7 * place % 83 for place in range(299))]  # longer than what is read at once


def make(precision: FrozenPrecision = "float32", *, positions: int = 320) -> tuple[LanguageModel, FrozenLanguageModel]:
    torch.manual_seed(6)
    config = LanguageModelConfig(
        vocabulary_size=89, layers=2, heads=3, d_model=33, d_ff=41, learned_positions=positions, dropout=0.0
    )
    network = LanguageModel(config).eval()
    for parameter in network.parameters():
        parameter.data = torch.randn_like(parameter) * 0.3
    weights = {name: parameter.detach().numpy() for name, parameter in network.named_parameters()}
    return network, FrozenLanguageModel(weights, config, precision=precision)


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_a_prompt_in_one_pass_gives_the_bits_of_one_token_at_a_time(precision: FrozenPrecision) -> None:
    _, frozen = make(precision)
    at_once, one_by_one = frozen.start(np.array([LONG])), frozen.start(np.array([LONG[:1]]))
    expected = frozen.step(one_by_one, np.array([[START]])).copy()
    for token in LONG[1:]:
        expected = frozen.step(one_by_one, np.array([[token]])).copy()
    np.testing.assert_array_equal(frozen.step(at_once, np.array([[START]])), expected)


def test_texts_with_prompts_of_different_lengths_and_beams_are_those_of_torch() -> None:
    network, frozen = make()
    plain = TorchStepper(network)
    prompts = np.array(
        [[START, 11, 12, 13, 14], [START, PADDING, PADDING, PADDING, PADDING], [START, 9, 8, PADDING, PADDING]]
    )
    others, zeros = np.array([2, 0]), np.zeros((2, 1), dtype=np.int64)
    ours, theirs = (own.select(own.start(prompts), others, zeros) for own in (frozen, plain))
    np.testing.assert_allclose(frozen.step(ours, zeros), plain.step(theirs, zeros), atol=1e-5)
    ours, theirs = frozen.start(prompts), plain.start(prompts)
    first = np.full((3, 1), START)
    np.testing.assert_allclose(frozen.step(ours, first), plain.step(theirs, first), atol=1e-5)
    kept, beams = np.array([0, 2]), np.zeros((2, 2), dtype=np.int64)
    ours, theirs = frozen.select(ours, kept, beams), plain.select(theirs, kept, beams)
    for newest in ([[5, 6], [7, 8]], [[9, 10], [11, 12]]):
        np.testing.assert_allclose(frozen.step(ours, np.array(newest)), plain.step(theirs, np.array(newest)), atol=1e-5)
        beams = np.array([[1, 1], [1, 0]])
        ours, theirs = frozen.select(ours, np.arange(2), beams), plain.select(theirs, np.arange(2), beams)
    np.testing.assert_allclose(frozen.step(ours, np.array(newest)), plain.step(theirs, np.array(newest)), atol=1e-5)


def test_beam_search_finds_what_it_finds_with_torch() -> None:
    network, frozen = make()
    asked = DecodingConfig(beam=4, maximum_length=12, length_penalty=0.0)
    prompt = np.array([[START, 11, 12]])
    (ours,), (theirs,) = search(frozen, prompt, asked), search(TorchStepper(network), prompt, asked)
    assert ours[0].tokens == theirs[0].tokens
    assert ours[0].log_probability == pytest.approx(theirs[0].log_probability, abs=1e-4)


def test_no_more_than_the_learned_positions_are_read() -> None:
    network, frozen = make(positions=7)
    assert [frozen.longest_target(length) for length in (1, 7, 9)] == [
        network.longest_target(length) for length in (1, 7, 9)
    ]
    state = frozen.start(np.array([LONG[:7]]))
    frozen.step(state, np.array([[START]]))
    with pytest.raises(ValueError, match="the 7 positions that the model has learned"):
        frozen.step(state, np.array([[5]]))
    with pytest.raises(ValueError, match="the 7 positions that the model has learned"):
        frozen.start(np.array([LONG[:9]]))
