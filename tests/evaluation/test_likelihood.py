"""log p(y | x): a law (the chain rule), padding, and search as the oracle."""

import itertools
import math

import pytest
import torch

from transduce.data.padding import pad_ids
from transduce.decoding.config import DecodingConfig
from transduce.decoding.search import search
from transduce.errors import DataError
from transduce.evaluation.likelihood import log_probabilities_of_pairs
from transduce.model.config import ModelConfig
from transduce.model.transformer import Transformer
from transduce.networks.torch_stepper import TorchStepper
from transduce.text.bpe_tokenizer import BpeTokenizer
from transduce.text.placeholders import protect_pair
from transduce.text.tokenizer_pair import TokenizerPair

EOS = 3


@pytest.fixture
def model() -> Transformer:
    torch.manual_seed(5)
    config = ModelConfig(vocabulary_size=11, d_model=16, heads=2, d_ff=24, encoder_layers=2, decoder_layers=2)
    return Transformer(config).double().eval()


def test_all_continuations_together_have_the_probability_of_their_beginning(model: Transformer) -> None:
    """Σ over y₂ of p(y₁, y₂) = p(y₁): probabilities of whole sequences come from one distribution."""
    source = [5, 7, EOS]
    pairs = [(source, [first, second]) for first, second in itertools.product((4, 9), range(11))]
    found = log_probabilities_of_pairs(model, pairs)
    for number, first in enumerate((4, 9)):
        whole = math.fsum(math.exp(math.fsum(row)) for row in found[11 * number : 11 * (number + 1)])
        (beginning,) = log_probabilities_of_pairs(model, [(source, [first])])
        assert whole == pytest.approx(math.exp(beginning[0]), rel=1e-12)


def test_neither_the_order_nor_the_size_of_batches_changes_a_value(model: Transformer) -> None:
    lengths = [(1, 7), (5, 2), (3, 3), (9, 1), (2, 11), (4, 4), (6, 5)]
    pairs = [
        ([*(4 + (n * k) % 7 for k in range(source - 1)), EOS], [*(4 + (n + k) % 7 for k in range(target - 1)), EOS])
        for n, (source, target) in enumerate(lengths)
    ]
    alone = [log_probabilities_of_pairs(model, [pair])[0] for pair in pairs]
    assert [len(row) for row in alone] == [target for _, target in lengths]
    for tokens_at_once in (1, 20, 4096):
        together = log_probabilities_of_pairs(model, pairs, tokens_at_once=tokens_at_once)
        reversed_order = log_probabilities_of_pairs(model, pairs[::-1], tokens_at_once=tokens_at_once)[::-1]
        for row, other, expected in zip(together, reversed_order, alone, strict=True):
            assert row == pytest.approx(expected, abs=1e-12)
            assert other == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("beam", [1, 4])
def test_it_equals_what_search_reports_for_its_own_output(model: Transformer, beam: int) -> None:
    sources = [[5, 7, 4, EOS], [9, EOS], [4, 4, 8, 10, 6, EOS]]
    found = search(TorchStepper(model), pad_ids(sources, padding=0), DecodingConfig(beam=beam, extra_length=6))
    for source, hypotheses in zip(sources, found, strict=True):
        for hypothesis in hypotheses:
            (row,) = log_probabilities_of_pairs(model, [(source, hypothesis.tokens)])
            assert math.fsum(row) == pytest.approx(hypothesis.log_probability, abs=1e-9)


def test_no_pairs_have_no_likelihoods(model: Transformer) -> None:
    assert log_probabilities_of_pairs(model, []) == []


def test_a_pair_longer_than_the_learned_positions_is_refused() -> None:
    config = ModelConfig(
        vocabulary_size=11, d_model=16, heads=2, d_ff=24, layers=1, positions="learned", learned_positions=4
    )
    model = Transformer(config).eval()
    assert len(log_probabilities_of_pairs(model, [([5, EOS], [5, 6, 7, EOS])])[0]) == 4
    with pytest.raises(DataError, match=r"Pair 2 has 5 pieces, but this model learned positions for 4\."):
        log_probabilities_of_pairs(model, [([5, EOS], [5, EOS]), ([5, 6, 7, 8, EOS], [5, EOS])])


def test_text_is_encoded_as_training_encodes_it() -> None:
    tokenizer = BpeTokenizer.learn(["open {file} now", "öffne {file} jetzt"] * 3, vocabulary_size=320)
    (source, target), (_, empty) = TokenizerPair.shared(tokenizer).encode_pairs(
        [("open {file} now", "öffne jetzt {file}"), ("now", "")]
    )
    shared = protect_pair("open {file} now", "öffne jetzt {file}")
    assert source == [*tokenizer.encode(shared.source), EOS]
    assert target == [*tokenizer.encode(shared.target), EOS]
    assert set(source) & set(target) - set(tokenizer.encode("now jetzt")), "the placeholder is one symbol on both sides"
    assert empty == [EOS]
