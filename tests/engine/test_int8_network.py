"""The int8 network against the float32 one, and against itself: in company, reordered, with other kernels, anew."""

import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from transduce.data.padding import pad_ids
from transduce.decoding.config import DecodingConfig
from transduce.decoding.search import search
from transduce.engine import int8_network
from transduce.engine.backend import Backend, fused_backend, torch_backend
from transduce.engine.int8_network import Int8Network
from transduce.model import ModelConfig, Transformer
from transduce.networks.stepwise import Ids, Restrictable
from transduce.networks.torch_stepper import TorchStepper

BACKENDS = [backend for backend in (torch_backend(), fused_backend()) if backend is not None]
pytestmark = pytest.mark.skipif(not BACKENDS, reason="there is no exact int8 product on this processor")
SOURCES = [[5, 9, 31, 3], [7, 3], [40, 41, 42, 43, 44, 45, 46, 3], [11, 12, 3], [7, 8, 9, 10, 11, 12, 3]]


def make(**options: Any) -> Transformer:  # noqa: ANN401
    sizes = {"d_model": 48, "heads": 3, "d_ff": 80, "encoder_layers": 2, "decoder_layers": 3, "dropout": 0.0}
    torch.manual_seed(1)
    model = Transformer(ModelConfig.model_validate({"vocabulary_size": 97, **sizes, **options}))
    for parameter in model.parameters():
        if parameter.dim() == 1:
            torch.nn.init.normal_(parameter, mean=1.0, std=0.2)
    return model.eval()


def frozen(model: Transformer, backend: Backend) -> Int8Network:
    return Int8Network(dict(model.named_parameters()), model.config, backend=backend)


def pad_rows(rows: list[list[int]]) -> Ids:
    return pad_ids(rows, padding=0)


def forced(stepper: Any, source_BS: Ids, target_BT: Ids) -> Tensor:  # noqa: ANN401
    state = stepper.start(source_BS)
    steps = [stepper.step(state, target_BT[:, t : t + 1])[:, 0].copy() for t in range(target_BT.shape[1])]
    return torch.from_numpy(np.stack(steps, axis=1))


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"norm": "pre"},
        {"tied": "none"},
        {"tied": "decoder"},
        {"attention_bias": True, "activation": "gelu", "norm": "pre"},
        {"positions": "learned", "learned_positions": 60},
        {"positions": "concatenated"},
        {"positions": "none"},
        {"scores": "unscaled"},
        {"d_k": 5, "d_v": 5},
        {"d_model": 50, "heads": 5, "d_ff": 70},
        {"d_model": 128, "heads": 2},
    ],
)
def test_log_probabilities_are_near_those_of_float32(backend: Backend, options: dict[str, Any]) -> None:
    model = make(**options)
    target_BT = np.random.default_rng(0).integers(4, 97, (len(SOURCES), 40))
    expected_BTV = forced(TorchStepper(model), pad_rows(SOURCES), target_BT)
    found_BTV = forced(frozen(model, backend), pad_rows(SOURCES), target_BT)
    assert float((found_BTV - expected_BTV).std() / expected_BTV.std()) < 0.1
    torch.testing.assert_close(found_BTV.logsumexp(dim=-1), torch.zeros(len(SOURCES), 40), atol=1e-5, rtol=0)


def test_fused_and_plain_kernels_agree() -> None:
    if len(BACKENDS) < 2:
        pytest.skip("there is no numba here, or no AVX-512 VNNI")
    for norm in ("pre", "post"):
        model, target_BT = make(norm=norm), np.random.default_rng(0).integers(4, 97, (len(SOURCES), 9))
        plain, fused = (forced(frozen(model, backend), pad_rows(SOURCES), target_BT) for backend in BACKENDS)
        # A last bit may round a quantised value the other way; that is a 127th of its row's largest, and rare.
        assert float((plain - fused).abs().median()) < 1e-2
        assert float((plain - fused).abs().max()) < 0.3


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
def test_a_sentence_does_not_depend_on_its_neighbours(backend: Backend) -> None:
    network = frozen(make(norm="pre"), backend)
    config = DecodingConfig(beam=3, extra_length=12)
    together = search(network, pad_rows(SOURCES), config)
    for source, found in zip(SOURCES, together, strict=True):
        alone = search(network, pad_rows([source]), config)[0]
        assert [h.tokens for h in alone] == [h.tokens for h in found]
        if backend.name == "numba":  # bit for bit; torch's sums may differ in their last one
            assert alone == found


def lists_of(lengths: list[int]) -> list[list[int]]:
    draw = random.Random(1)
    return [[0, 1, 2, 3, *sorted(draw.sample(range(4, 97), length))] for length in lengths]


class Unrestricted:
    """A network that cannot make use of lists: the search takes all its log-probabilities and renormalises."""

    def __init__(self, network: Int8Network) -> None:
        self.start, self.step, self.select = network.start, network.step, network.select
        self.longest_target, self.tokens = network.longest_target, network.tokens
        self.source_padding = network.source_padding


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
@pytest.mark.parametrize("options", [{}, {"norm": "pre", "d_model": 50, "heads": 5}, {"tied": "none"}])
def test_an_output_layer_of_a_list_is_the_whole_one_renormalised(backend: Backend, options: dict[str, Any]) -> None:
    network, lists = frozen(make(**options), backend), lists_of([3, 20, 60, 61, 93])
    config = DecodingConfig(beam=3, extra_length=12, alternatives=3)
    assert isinstance(network, Restrictable)
    assert not isinstance(Unrestricted(network), Restrictable)
    found = search(network, pad_rows(SOURCES), config, lists=lists)
    expected = search(Unrestricted(network), pad_rows(SOURCES), config, lists=lists)
    assert [[h.tokens for h in own] for own in found] == [[h.tokens for h in own] for own in expected]
    for own, others in zip(found, expected, strict=True):
        assert [h.log_probability for h in own] == pytest.approx([h.log_probability for h in others], abs=1e-3)


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
def test_a_list_does_not_depend_on_the_lists_of_neighbours(backend: Backend) -> None:
    network, lists = frozen(make(norm="pre"), backend), lists_of([3, 20, 93, 61, 5])
    config = DecodingConfig(beam=3, extra_length=12)
    together = search(network, pad_rows(SOURCES), config, lists=lists)
    for source, own, found in zip(SOURCES, lists, together, strict=True):
        alone = search(network, pad_rows([source]), config, lists=[own])[0]
        assert [h.tokens for h in alone] == [h.tokens for h in found]
        if backend.name == "numba":
            assert alone == found


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("lengths", [None, [3, 20, 93, 61, 5]])
def test_a_program_does_what_its_calls_do_one_by_one(norm: str, lengths: list[int] | None) -> None:
    if fused_backend() is None:
        pytest.skip("there is no numba here, or no AVX-512 VNNI")
    lists = None if lengths is None else lists_of(lengths)
    network, lone = (frozen(make(norm=norm), BACKENDS[-1]) for _ in range(2))
    assert network._has_programs
    lone._has_programs = False
    # Long enough for every table to be moved, with sentences that leave on the way.
    config = DecodingConfig(beam=3, minimum_length=int8_network.FIRST_STEPS + 3, extra_length=60, alternatives=3)
    found = search(network, pad_rows(SOURCES), config, lists=lists)
    assert found == search(lone, pad_rows(SOURCES), config, lists=lists)
    assert len({len(own[0].tokens) for own in found}) > 1


def test_batches_that_are_searched_side_by_side_do_not_mix() -> None:
    network, config = frozen(make(), BACKENDS[-1]), DecodingConfig(beam=3, extra_length=30)
    alone = [search(network, pad_rows([source]), config) for source in SOURCES]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            assert list(pool.map(lambda source: search(network, pad_rows([source]), config), SOURCES)) == alone


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
def test_beams_that_are_reordered_and_sentences_that_leave_take_their_past_along(backend: Backend) -> None:
    network = frozen(make(), backend)
    source_BS = pad_rows(SOURCES[:3])
    state = network.start(source_BS)
    network.step(state, np.full((3, 1), 2))
    state = network.select(state, np.array([0, 1, 2]), np.zeros((3, 2), dtype=np.int64))
    network.step(state, np.array([[10, 20], [30, 40], [50, 60]]))
    # Sentence 0 leaves; sentence 2 goes on with its second beam twice, sentence 1 with both, exchanged.
    state = network.select(state, np.array([2, 1]), np.array([[1, 1], [1, 0]]))
    found_BWV = network.step(state, np.array([[70, 71], [72, 73]]))
    for place, (sentence, path) in enumerate([(2, [2, 60, 70]), (2, [2, 60, 71]), (1, [2, 40, 72]), (1, [2, 30, 73])]):
        alone_TV = forced(network, pad_rows([SOURCES[sentence]]), np.array([path]))[0]
        torch.testing.assert_close(
            torch.from_numpy(found_BWV.reshape(-1, 97)[place]), alone_TV[-1], atol=1e-4, rtol=1e-4
        )


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
def test_beams_that_change_places_while_all_sentences_stay_take_their_past_along(backend: Backend) -> None:
    network, both = frozen(make(), backend), np.arange(2)
    state = network.start(pad_rows(SOURCES[:2]))
    network.step(state, np.full((2, 1), 2))
    state = network.select(state, both, np.zeros((2, 2), dtype=np.int64))
    network.step(state, np.array([[10, 20], [30, 40]]))
    state = network.select(state, both, np.array([[1, 0], [1, 1]]))
    found_BWV = network.step(state, np.array([[50, 60], [70, 71]]))
    for place, (sentence, path) in enumerate([(0, [2, 20, 50]), (0, [2, 10, 60]), (1, [2, 40, 70]), (1, [2, 40, 71])]):
        alone_TV = forced(network, pad_rows([SOURCES[sentence]]), np.array([path]))[0]
        torch.testing.assert_close(
            torch.from_numpy(found_BWV.reshape(-1, 97)[place]), alone_TV[-1], atol=1e-4, rtol=1e-4
        )


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
def test_what_no_beam_looks_back_at_is_left_behind(backend: Backend) -> None:
    network, beams, steps = frozen(make(), backend), 4, 200
    state = network.start(pad_rows(SOURCES[:1]))
    network.step(state, np.full((1, 1), 2))
    for step in range(steps):  # all continue the last beam, so that they share all of their past
        newest_BW = np.arange(10, 10 + beams)[None]
        state = network.select(state, np.array([0]), np.full((1, beams), 0 if step == 0 else beams - 1))
        found_BWV = network.step(state, newest_BW)
    assert len(state.past[0][0]) < 3 * steps < beams * steps
    path = np.array([[2, *[10 + beams - 1] * (steps - 1), 10]])
    alone_TV = forced(network, pad_rows(SOURCES[:1]), path)[0]
    torch.testing.assert_close(torch.from_numpy(found_BWV[0, 0]), alone_TV[-1], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
def test_sources_encoded_in_parts_are_as_encoded_together(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    network = frozen(make(norm="pre"), backend)
    together = network.start(pad_rows(SOURCES))
    for most in (1, 5, 9, 14):
        monkeypatch.setattr(int8_network, "ENCODED_AT_ONCE", most)
        apart = network.start(pad_rows(SOURCES))
        for whole, part in zip(together.cross, apart.cross, strict=True):
            torch.testing.assert_close(part[0], whole[0])
            torch.testing.assert_close(part[1], whole[1])
            assert backend.name != "numba" or torch.equal(part[0], whole[0])


def test_an_embedding_that_is_tied_is_held_once() -> None:
    backend = fused_backend()
    if backend is None:
        pytest.skip("there is no numba here, or no AVX-512 VNNI")
    network = frozen(make(), backend)
    tables = [network._source[0], network._target[0], network._output.table[0]]  # type: ignore[index]
    assert len({table.data_ptr() for table in tables}) == 1


def test_it_does_not_keep_a_network_that_is_changed_afterwards() -> None:
    model = make()
    network = frozen(model, BACKENDS[-1])
    before = forced(network, pad_rows(SOURCES), np.full((5, 2), 9))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    assert torch.equal(before, forced(network, pad_rows(SOURCES), np.full((5, 2), 9)))


@pytest.mark.slow
def test_a_new_process_gives_the_same_bits() -> None:
    root = Path(__file__).resolve().parents[2]
    program = (
        "import sys; sys.path[:0] = ['tests/engine']\n"
        "import hashlib, numpy as np\n"
        "from test_int8_network import SOURCES, forced, frozen, make, BACKENDS, pad_rows\n"
        "found = forced(frozen(make(), BACKENDS[-1]), pad_rows(SOURCES), np.full((5, 4), 9))\n"
        "print(hashlib.sha256(found.numpy().tobytes()).hexdigest())\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(root / "src")}
    hashes = {
        subprocess.run(
            [sys.executable, "-c", program], cwd=root, env=environment, capture_output=True, check=True
        ).stdout
        for _ in range(2)
    }
    assert len(hashes) == 1
