"""The C++ core against the plain network and the Python search, and against itself: batches, threads, instructions."""

import random
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch

from transduce.core import has_core, instructions
from transduce.data.padding import pad_ids
from transduce.decoding.beam_search import beam_search
from transduce.decoding.config import DecodingConfig
from transduce.decoding.hypothesis import Hypothesis
from transduce.decoding.search import search
from transduce.engine import FrozenNetwork
from transduce.errors import DataError, ModelError
from transduce.model import ModelConfig, Transformer
from transduce.networks.stepwise import Ids, LogProbabilities
from transduce.networks.torch_stepper import TorchStepper

pytestmark = pytest.mark.skipif(not has_core(), reason="the C++ core was not built")
SOURCES = [[5, 9, 31, 3], [7, 3], [40, 41, 42, 43, 44, 45, 46, 3], [11, 12, 3], [7, 8, 9, 10, 11, 12, 3]]
PRECISIONS = ["int8", "float32"]


def make(**options: Any) -> Transformer:  # noqa: ANN401
    sizes = {"d_model": 48, "heads": 3, "d_ff": 80, "encoder_layers": 2, "decoder_layers": 3, "dropout": 0.0}
    torch.manual_seed(1)
    model = Transformer(ModelConfig.model_validate({"vocabulary_size": 97, **sizes, **options}))
    for parameter in model.parameters():
        if parameter.dim() == 1:
            torch.nn.init.normal_(parameter, mean=1.0, std=0.2)
    return model.eval()


def frozen(model: Transformer, precision: Any = "int8", names: str = "") -> FrozenNetwork:  # noqa: ANN401
    parameters = {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}
    return FrozenNetwork(parameters, model.config, precision=precision, instructions=names)


def pad_rows(rows: list[list[int]]) -> Ids:
    return pad_ids(rows, padding=0)


def forced(stepper: Any, source_BS: Ids, target_BT: Ids) -> LogProbabilities:  # noqa: ANN401
    state = stepper.start(source_BS)
    return np.stack([stepper.step(state, target_BT[:, t : t + 1])[:, 0].copy() for t in range(target_BT.shape[1])], 1)


OPTIONS: list[dict[str, Any]] = [
    {},
    {"norm": "pre", "final_norm": False},
    {"tied": "none", "output_bias": True, "norm_epsilon": 0.1},
    {"tied": "decoder", "source_vocabulary_size": 71, "embedding_norm": True},
    {"attention_bias": True, "activation": "gelu", "norm": "pre"},
    {"activation": "gelu_tanh", "decoder_mixer": "ssru"},
    {"activation": "gelu_sigmoid", "start_from_zeros": True, "final_norm": True},
    {"activation": "silu", "embedding_scale": 1.5, "scores": "unscaled"},
    {"positions": "learned", "learned_positions": 60},
    {"positions": "concatenated", "first_position": 2},
    {"positions": "sinusoidal_halves"},
    {"positions": "none", "d_k": 5, "d_v": 7},
    {"d_model": 50, "heads": 5, "d_ff": 70},
    {"d_model": 128, "heads": 2},
]


@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-5), ("int8", 0.1)])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_log_probabilities_are_near_those_of_the_plain_network(
    precision: str, tolerance: float, options: dict[str, Any]
) -> None:
    model = make(**options)
    target_BT = np.random.default_rng(0).integers(4, 97, (len(SOURCES), 40))
    expected_BTV = forced(TorchStepper(model), pad_rows(SOURCES), target_BT)
    found_BTV = forced(frozen(model, precision), pad_rows(SOURCES), target_BT)
    assert (found_BTV - expected_BTV).std() / expected_BTV.std() < tolerance
    np.testing.assert_allclose(np.exp(found_BTV.astype(np.float64)).sum(axis=-1), 1.0, atol=1e-5)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_instruction_set_gives_the_same_bits(precision: str, options: dict[str, Any]) -> None:
    model, target_BT = make(**options), np.random.default_rng(0).integers(4, 97, (len(SOURCES), 9))
    found = [forced(frozen(model, precision, name), pad_rows(SOURCES), target_BT) for name in instructions()]
    assert len({one.tobytes() for one in found}) == 1
    assert len(np.unique(found[0])) > 1000


CONFIGS = [
    DecodingConfig(beam=3, extra_length=12),
    DecodingConfig(beam=1, extra_length=12),
    DecodingConfig(beam=5, extra_length=30, alternatives=5, length_penalty=1.3, minimum_length=4),
    DecodingConfig(beam=3, extra_length=30, alternatives=2, stop="full"),
    DecodingConfig(beam=2, extra_length=9, maximum_length=3, alternatives=2),
]
PREFIXES = [[], [5, 6], [2], [], [1, 1, 1, 1, 1, 1]]


def lists_of(lengths: list[int]) -> list[list[int]]:
    draw = random.Random(1)
    return [[0, 1, 2, 3, *sorted({5, 6, *draw.sample(range(4, 97), length)})] for length in lengths]


def tokens_of(found: list[list[Hypothesis]]) -> list[list[tuple[int, ...]]]:
    return [[hypothesis.tokens for hypothesis in own] for own in found]


class Stepped:
    """A network without its own beam search and lists, so that the search in Python runs on it."""

    def __init__(self, network: FrozenNetwork) -> None:
        self.start, self.step, self.select = network.start, network.step, network.select
        self.longest_target, self.tokens = network.longest_target, network.tokens
        self.source_padding = network.source_padding


@pytest.mark.parametrize("config", CONFIGS, ids=str)
@pytest.mark.parametrize("prefixes", [None, PREFIXES])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_its_search_is_the_search_in_python(
    precision: str, config: DecodingConfig, prefixes: list[list[int]] | None
) -> None:
    model = make(norm="pre")
    network = frozen(model, precision)
    found = search(network, pad_rows(SOURCES), config, prefixes=prefixes)
    assert found == beam_search(network, pad_rows(SOURCES), config, prefixes=prefixes)  # bit for bit
    if precision == "float32":
        expected = beam_search(TorchStepper(model), pad_rows(SOURCES), config, prefixes=prefixes)
        assert tokens_of(found) == tokens_of(expected)
        for own, others in zip(found, expected, strict=True):
            assert [one.score for one in own] == pytest.approx([one.score for one in others], abs=1e-4)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_a_list_is_the_whole_vocabulary_renormalised(precision: str, config: DecodingConfig) -> None:
    network, lists = frozen(make(tied="none"), precision), lists_of([3, 20, 60, 61, 90])
    prefixes = [[], [5, 6], [2], [], []]
    found = search(network, pad_rows(SOURCES), config, lists=lists, prefixes=prefixes)
    expected = search(Stepped(network), pad_rows(SOURCES), config, lists=lists, prefixes=prefixes)
    assert tokens_of(found) == tokens_of(expected)
    for own, others, listed in zip(found, expected, lists, strict=True):
        assert [one.log_probability for one in own] == pytest.approx([one.log_probability for one in others], abs=1e-3)
        assert all(token in listed for one in own for token in one.tokens)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("lengths", [None, [3, 20, 60, 61, 90]])
def test_a_sentence_does_not_depend_on_the_others_of_its_batch(precision: str, lengths: list[int] | None) -> None:
    network, config = frozen(make(), precision), DecodingConfig(beam=3, extra_length=12, alternatives=2)
    lists = None if lengths is None else lists_of(lengths)
    together = search(network, pad_rows(SOURCES), config, lists=lists)
    for number, (source, found) in enumerate(zip(SOURCES, together, strict=True)):
        own = None if lists is None else [lists[number]]
        assert search(network, pad_rows([source]), config, lists=own) == [found]


def test_threads_do_not_disturb_each_other() -> None:
    network, config = frozen(make()), DecodingConfig(beam=3, extra_length=30)
    alone = [search(network, pad_rows([source]), config) for source in SOURCES]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            assert list(pool.map(lambda source: search(network, pad_rows([source]), config), SOURCES)) == alone


@pytest.mark.parametrize("mixer", ["attention", "ssru"])
@pytest.mark.parametrize(
    ("sentences", "beams", "paths"),
    [
        ([2, 1], [[1, 1], [1, 0]], [(2, [60, 70]), (2, [60, 71]), (1, [40, 72]), (1, [30, 73])]),
        ([0, 1, 2], [[1, 0], [0, 0], [1, 1]], [(0, [20, 70]), (0, [10, 71]), (1, [30, 72]), (1, [30, 73])]),
    ],
)
def test_a_row_that_continues_another_has_its_past(
    mixer: str, sentences: list[int], beams: list[list[int]], paths: list[tuple[int, list[int]]]
) -> None:
    network = frozen(make(decoder_mixer=mixer))
    state = network.start(pad_rows(SOURCES[:3]))
    network.step(state, np.full((3, 1), 2))
    state = network.select(state, np.array([0, 1, 2]), np.zeros((3, 2), dtype=np.int64))
    network.step(state, np.array([[10, 20], [30, 40], [50, 60]]))
    state = network.select(state, np.array(sentences), np.array(beams))
    found_BWV = network.step(state, 70 + np.arange(2 * len(sentences)).reshape(-1, 2))
    for place, (sentence, path) in enumerate(paths):
        alone_TV = forced(network, pad_rows([SOURCES[sentence]]), np.array([[2, *path]]))[0]
        np.testing.assert_array_equal(found_BWV[place // 2, place % 2], alone_TV[-1])


def test_a_long_output_outgrows_its_tables_without_harm() -> None:
    network, beams, steps = frozen(make()), 4, 200
    state = network.start(pad_rows(SOURCES[:1]))
    network.step(state, np.full((1, 1), 2))
    for step in range(steps):  # all continue the last beam, so that they share all of their past
        state = network.select(state, np.array([0]), np.full((1, beams), 0 if step == 0 else beams - 1))
        found_BWV = network.step(state, np.arange(10, 10 + beams)[None])
    path = np.array([[2, *[10 + beams - 1] * (steps - 1), 10]])
    np.testing.assert_array_equal(found_BWV[0, 0], forced(network, pad_rows(SOURCES[:1]), path)[0, -1])


def test_it_does_not_keep_the_weights_that_it_was_given() -> None:
    model = make()
    network = frozen(model)
    before = forced(network, pad_rows(SOURCES), np.full((5, 2), 9))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    np.testing.assert_array_equal(before, forced(network, pad_rows(SOURCES), np.full((5, 2), 9)))


def test_int8_weights_with_scales_are_taken_as_they_are() -> None:
    model = make()
    plain = {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}
    stored = dict(plain)
    for name, matrix in plain.items():
        if matrix.ndim == 2:
            scale = np.abs(matrix).max(axis=1) / np.float32(127)
            stored[name], stored[f"{name}.scale"] = np.round(matrix / scale[:, None]).astype(np.int8), scale
    target_BT = np.full((5, 4), 9)
    first, second = (forced(FrozenNetwork(one, model.config), pad_rows(SOURCES), target_BT) for one in (plain, stored))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", ["embeddings.source_VD", "decoder.layers.1.feed_forward.W_1.weight"])
def test_damaged_weights_are_an_error(precision: str, name: str) -> None:
    model = make()
    with torch.no_grad():
        dict(model.named_parameters())[name][5:9, 3] = torch.nan
    for searched in (search, beam_search):
        with pytest.raises(ModelError, match="not numbers"):
            searched(frozen(model, precision), pad_rows(SOURCES), DecodingConfig(beam=2))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"encoder.layers.0.feed_forward.W_1.weight": None}, "W_1.weight are missing"),
        ({"encoder.layers.0.feed_forward.W_1.weight": np.zeros((80, 47), np.float32)}, "shape (80, 47), not (80, 48)"),
        ({"encoder.layers.0.feed_forward.W_1.weight": np.zeros((80, 48))}, "neither float32 nor int8"),
        ({"encoder.layers.0.feed_forward.W_1.weight": np.zeros((48, 80), np.float32).T}, "not contiguous"),
        ({"encoder.layers.0.feed_forward.W_1.weight": np.zeros((80, 48), np.int8)}, "W_1.weight.scale"),
        ({"encoder.layers.9.feed_forward.W_1.weight": np.zeros((80, 48), np.float32)}, "no place in this network"),
    ],
)
def test_weights_that_do_not_fit_are_refused(change: dict[str, Any], message: str) -> None:
    model = make()
    parameters = {name: parameter.detach().numpy() for name, parameter in model.named_parameters()} | change
    parameters = {name: array for name, array in parameters.items() if array is not None}
    with pytest.raises((ModelError, KeyError), match=re.escape(message)):
        FrozenNetwork(parameters, model.config)


def test_ids_out_of_bounds_are_refused() -> None:
    network = frozen(make())
    with pytest.raises(ValueError, match="token 97 is outside the vocabulary of 97"):
        network.start(np.array([[5, 97, 3]]))
    state = network.start(pad_rows(SOURCES))
    for tokens_BW in (np.full((5, 1), 97), np.full((5, 1), -1), np.full((4, 1), 2), np.full((5, 2), 2)):
        with pytest.raises(ValueError, match=r"outside the vocabulary|negative|rows, not"):
            network.step(state, tokens_BW)
    for sentences, beams in (([5], [[0]]), ([-1], [[0]]), ([0], [[1]]), ([0, 1], [[0]])):
        with pytest.raises(ValueError, match=r"no row|no such beam|negative|its beams"):
            network.select(state, np.array(sentences), np.array(beams))
    with pytest.raises(ValueError, match="outside the vocabulary"):
        network.restrict(state, np.full((5, 64), 97), np.zeros((5, 64), dtype=np.bool_))
    with pytest.raises(ValueError, match="lacks the token"):
        search(network, pad_rows(SOURCES), DecodingConfig(), lists=[[5]] * 5)


def test_more_tokens_than_learned_positions_are_refused() -> None:
    network = frozen(make(positions="learned", learned_positions=6))
    with pytest.raises(DataError, match="A sentence of 8 tokens is longer than the 6 positions"):
        search(network, pad_rows(SOURCES), DecodingConfig())
    found = search(network, pad_rows(SOURCES[:2]), DecodingConfig(minimum_length=50))
    assert [len(own[0].tokens) for own in found] == [6, 6]


def test_an_unknown_instruction_set_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ModelError, match=f"no instructions sse9 here; this processor has {', '.join(instructions())}"):
        frozen(make(), names="sse9")
