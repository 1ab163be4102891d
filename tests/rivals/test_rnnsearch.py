"""RNNsearch against its equations, worked out by hand and by an independent loop."""

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from pydantic import ValidationError
from torch.testing import assert_close

from transduce.networks.cost import parameter_count
from transduce.rivals.recurrent import GatedUnit
from transduce.rivals.rnnsearch import RnnSearch
from transduce.rivals.rnnsearch_config import RnnSearchConfig


def test_a_gated_unit_by_hand() -> None:
    unit = GatedUnit(1, 1).double()
    with torch.no_grad():
        unit.input.weight.copy_(torch.tensor([[1.0], [2.0], [0.5]]))  # z, r, candidate
        unit.input.bias.copy_(torch.tensor([0.0, -1.0, 0.25]))
        unit.gates.weight.copy_(torch.tensor([[0.5], [-1.0]]))
        unit.candidate.weight.fill_(2.0)
    x, before = 0.3, 0.4
    update = 1 / (1 + math.exp(-(0.3 + 0.2)))
    reset = 1 / (1 + math.exp(-(0.6 - 1.0 - 0.4)))
    candidate = math.tanh(0.15 + 0.25 + 2.0 * reset * before)
    expected = (1 - update) * before + update * candidate
    found = unit(
        unit.input(torch.tensor([[[x]]], dtype=torch.float64)), torch.tensor([[[before]]], dtype=torch.float64)
    )
    assert float(found.detach()) == pytest.approx(expected, abs=1e-12)


Array = NDArray[np.float64]


def sigmoid(x: Array) -> Array:
    result: Array = 1 / (1 + np.exp(-x))
    return result


class InNumpy:
    """The same equations for one sentence, written as a loop over positions without torch."""

    def __init__(self, network: RnnSearch) -> None:
        self.p = {name: value.detach().numpy() for name, value in network.named_parameters()}

    def unit(self, name: str, x: Array, h: Array, extra: Array | float = 0.0) -> Array:
        d, projected = len(h), self.p[f"{name}.input.weight"] @ x + self.p[f"{name}.input.bias"] + extra
        gates = sigmoid(projected[: 2 * d] + self.p[f"{name}.gates.weight"] @ h)
        z, r = gates[:d], gates[d:]
        candidate = np.tanh(projected[2 * d :] + self.p[f"{name}.candidate.weight"] @ (r * h))
        result: Array = (1 - z) * h + z * candidate
        return result

    def logits(self, source: list[int], inputs: list[int]) -> Array:
        d = len(self.p["first_state.bias"])
        forward, backward = [np.zeros(d)], [np.zeros(d)]
        for token in source:
            forward.append(self.unit("reader", self.p["matrix.source_VE"][token], forward[-1]))
        for token in reversed(source):
            backward.append(self.unit("backward_reader", self.p["matrix.source_VE"][token], backward[-1]))
        h = np.array([np.concatenate([f, b]) for f, b in zip(forward[1:], backward[:0:-1], strict=True)])
        s = np.tanh(self.p["first_state.weight"] @ backward[-1] + self.p["first_state.bias"])
        rows = []
        for token in inputs:
            y = self.p["matrix.target_VE"][token]
            e = (
                np.tanh(self.p["alignment.W_a.weight"] @ s + h @ self.p["alignment.U_a.weight"].T)
                @ self.p["alignment.v_A"]
            )
            a = np.exp(e) / np.exp(e).sum()
            c = a @ h
            t = self.p["readout.weight"] @ np.concatenate([s, y, c]) + self.p["readout.bias"]
            rows.append(self.p["matrix.output_VO"] @ np.maximum(t[0::2], t[1::2]))
            s = self.unit("writer", y, s, self.p["writer_context.weight"] @ c)
        return np.array(rows)


def test_the_whole_network_equals_a_loop_in_numpy() -> None:
    torch.manual_seed(7)
    config = RnnSearchConfig(vocabulary_size=23, d_model=5, embedding_width=3, alignment_width=7, output_width=2)
    network = RnnSearch(config).double().eval()
    source, labels = [5, 9, 12, 3], [7, 20, 3]
    found = network.output.logits(network(torch.tensor([source]), torch.tensor([labels])))[0]
    assert_close(found.detach(), torch.from_numpy(InNumpy(network).logits(source, [2, 7, 20])))


def test_parameters_by_the_formula() -> None:
    v, d, e, a, o = 8000, 448, 256, 448, 256
    config = RnnSearchConfig(
        vocabulary_size=v, d_model=d, embedding_width=e, alignment_width=a, output_width=o, tied="all"
    )
    gated = 3 * (e * d + d * d + d)
    alignment = d * a + 2 * d * a + a
    decoder = gated + 3 * 2 * d * d + d * d + d
    assert parameter_count(config) == v * e + 2 * gated + alignment + decoder + (3 * d + e) * 2 * o + 2 * o


def test_two_vocabularies_need_two_matrices() -> None:
    with pytest.raises(ValidationError, match="they have different rows"):
        RnnSearchConfig(tied="inputs", source_vocabulary_size=50)


def test_one_matrix_needs_one_width() -> None:
    with pytest.raises(ValidationError, match="Set both to one width"):
        RnnSearchConfig(tied="all")


def test_the_papers_weights_are_normal_and_the_recurrent_ones_orthogonal() -> None:
    torch.manual_seed(1)
    sizes = {"vocabulary_size": 200, "d_model": 64, "embedding_width": 40, "alignment_width": 64, "output_width": 40}
    weights = dict(RnnSearch(RnnSearchConfig.model_validate({**sizes, "initialization": "paper"})).named_parameters())
    for name, std in (("alignment.U_a.weight", 0.001), ("writer_context.weight", 0.01), ("matrix.target_VE", 0.01)):
        assert float(weights[name].detach().std()) == pytest.approx(std, rel=0.05)
    assert all(not bool(weights[name].any()) for name in ("alignment.v_A", "reader.input.bias", "readout.bias"))
    candidate = weights["writer.candidate.weight"].detach()
    assert_close(candidate @ candidate.T, torch.eye(64))
