import math
from collections.abc import Callable

import pytest
import torch
from torch.nn import functional

from transduce.data.token_store import TokenStore
from transduce.model.transformer import Transformer
from transduce.training.arithmetic import Arithmetic
from transduce.training.validation import Validation, measure_loss

CPU = Arithmetic(torch.device("cpu"), "float32")


def plain_loss(model: Transformer, store: TokenStore) -> float:
    """Return the mean -log p, one sentence at a time and without padding: the oracle."""
    total, tokens = 0.0, 0
    with torch.no_grad():
        for sentence in range(len(store)):
            source_BS = torch.from_numpy(store.source(sentence).astype("int64"))[None]
            target_BT = torch.from_numpy(store.target(sentence).astype("int64"))[None]
            logits_TV = (model(source_BS, target_BT) @ model.output.matrix_VD.T)[0]
            total += functional.cross_entropy(logits_TV, target_BT[0], reduction="sum").item()
            tokens += target_BT.numel()
    return total / tokens


@pytest.mark.parametrize("tokens_at_once", [20, 64, 10_000])
def test_the_loss_depends_on_no_batching_and_no_dropout(
    make_model: Callable[..., Transformer], store: TokenStore, tokens_at_once: int
) -> None:
    model = make_model(dropout=0.5)
    model.train()
    validation = measure_loss(model, store, tokens_at_once=tokens_at_once, arithmetic=CPU)
    assert model.training
    assert validation.loss == pytest.approx(plain_loss(model.eval(), store), rel=1e-6)
    assert validation.perplexity == pytest.approx(math.exp(validation.loss))
    assert validation.accuracy is not None
    assert 0.0 <= validation.accuracy <= 1.0


def test_a_model_that_knows_nothing_has_the_vocabulary_for_perplexity(
    make_model: Callable[..., Transformer], store: TokenStore
) -> None:
    model = make_model()
    with torch.no_grad():
        model.embeddings.output_VD.zero_()
    assert measure_loss(model, store, tokens_at_once=64, arithmetic=CPU).perplexity == pytest.approx(17.0)


def test_bf16_measures_nearly_the_same(make_model: Callable[..., Transformer], store: TokenStore) -> None:
    model = make_model()
    exact = measure_loss(model, store, tokens_at_once=64, arithmetic=CPU)
    rounded = measure_loss(model, store, tokens_at_once=64, arithmetic=Arithmetic(torch.device("cpu"), "bf16"))
    assert rounded.loss == pytest.approx(exact.loss, rel=1e-2)


def test_a_hopeless_model_overflows_nothing() -> None:
    assert Validation(loss=5000.0).perplexity == math.inf
    assert Validation(loss=5000.0, bleu=0.0).measures() == {"loss": 5000.0, "bleu": 0.0}
