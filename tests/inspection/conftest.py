"""A tokenizer and small random networks of every kind of score; what is shown must be true of each."""

import pytest
import torch

from transduce.decoding.forced import forced_log_probabilities
from transduce.inspection.pair import forced_pair
from transduce.inspection.report import AttentionReport, TranslationSource, inspect
from transduce.model import ModelConfig, Transformer
from transduce.networks.torch_stepper import TorchStepper
from transduce.text.bpe_tokenizer import BpeTokenizer
from transduce.text.tokenizer_pair import TokenizerPair

HOSTILE = 'the </script><script>alert("x")</script> & dog runs'


@pytest.fixture(scope="session")
def tokenizer() -> BpeTokenizer:
    return BpeTokenizer.learn(["the dog runs", "der Hund läuft"] * 3, vocabulary_size=400)


@pytest.fixture(scope="session", params=["scaled", "unscaled", "additive"])
def network(request: pytest.FixtureRequest, tokenizer: BpeTokenizer) -> Transformer:
    torch.manual_seed(5)
    config = ModelConfig(
        vocabulary_size=tokenizer.vocabulary_size,
        d_model=22,
        heads=11,
        d_ff=13,
        d_v=3,
        d_k=5,
        encoder_layers=2,
        decoder_layers=3,
        scores=request.param,
    )
    return Transformer(config).eval()


@pytest.fixture(scope="session")
def report(network: Transformer, tokenizer: BpeTokenizer) -> AttentionReport:
    source, target = forced_pair(TokenizerPair.shared(tokenizer), HOSTILE, "der Hund läuft")
    asked = tuple(forced_log_probabilities(TorchStepper(network), [(source.ids, target.ids)])[0])
    return inspect(
        network,
        tokenizer,
        source,
        target,
        translated=TranslationSource(precision="float32", models=1, is_forced=True, log_probabilities=asked),
        with_numbers=True,
    )
