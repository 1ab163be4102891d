"""log p of given pairs, one position at a time, against one forward pass of the network."""

import pytest
import torch

from transduce.decoding.forced import forced_log_probabilities
from transduce.errors import DataError
from transduce.evaluation.likelihood import log_probabilities_of_pairs
from transduce.model import ModelConfig, Transformer
from transduce.networks.torch_stepper import TorchStepper

PAIRS = [([5, 6, 7, 3], [8, 3]), ([9, 3], [10, 11, 12, 13, 3]), ([4, 5, 3], [6, 7, 3])]


def test_it_equals_teacher_forcing_for_pairs_of_all_lengths() -> None:
    torch.manual_seed(3)
    network = Transformer(ModelConfig(vocabulary_size=23, d_model=12, d_ff=7, heads=3, layers=2)).eval()
    stepped = forced_log_probabilities(TorchStepper(network), PAIRS)
    for own, expected in zip(stepped, log_probabilities_of_pairs(network, PAIRS), strict=True):
        assert own == pytest.approx(expected, abs=1e-5)


def test_a_pair_beyond_the_learned_positions_is_refused() -> None:
    sizes = {"vocabulary_size": 23, "d_model": 12, "d_ff": 7, "heads": 3, "layers": 1}
    config = ModelConfig.model_validate({**sizes, "positions": "learned", "learned_positions": 4})
    with pytest.raises(DataError, match=r"Pair 2 has 5 pieces, but this model learned positions for 4"):
        forced_log_probabilities(TorchStepper(Transformer(config).eval()), PAIRS)
