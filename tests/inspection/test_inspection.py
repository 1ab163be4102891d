"""Attention reports: what is shown is what the network did."""

import base64
import json

import pytest
import torch

from transduce.inspection.recording import record
from transduce.inspection.report import AttentionReport, inspect
from transduce.model import ModelConfig, Transformer
from transduce.model.attention import MultiHeadAttention
from transduce.model.log_probabilities import token_log_probabilities
from transduce.text.tokenizer import Tokenizer

HOSTILE = 'a </script><script>alert("x")</script> & <b>'


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.learn(["the dog runs", "der Hund läuft"] * 3, vocabulary_size=400)


@pytest.fixture(scope="module", params=["scaled", "unscaled", "additive"])
def network(request: pytest.FixtureRequest, tokenizer: Tokenizer) -> Transformer:
    torch.manual_seed(5)
    size = tokenizer.vocabulary_size
    config = ModelConfig(
        vocabulary_size=size, d_model=22, heads=11, d_ff=13, encoder_layers=2, decoder_layers=3, scores=request.param
    )
    return Transformer(config).eval()


@pytest.fixture
def report(network: Transformer, tokenizer: Tokenizer) -> AttentionReport:
    source, target = [*tokenizer.encode("the dog runs"), 3], [*tokenizer.encode("der Hund"), 3]
    return inspect(network, tokenizer, source, target, texts=(HOSTILE, "der Hund"))


def test_every_row_sums_to_one_and_no_row_looks_ahead(report: AttentionReport) -> None:
    source, target = len(report.source), len(report.target)
    assert report.encoder_LHSS.shape == (2, 11, source, source)
    assert report.decoder_LHTT.shape == (3, 11, target, target)
    assert report.cross_LHTS.shape == (3, 11, target, source)
    for weights in (report.encoder_LHSS, report.decoder_LHTT, report.cross_LHTS):
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones(weights.shape[:-1]))
    assert not report.decoder_LHTT.triu(diagonal=1).any()


def test_the_weights_are_those_that_made_the_output(network: Transformer) -> None:
    source, target = [5, 9, 7, 3], [8, 6, 3]
    recording = record(network, source, target)
    layer = network.encoder.layers[0]
    embedded_BSD = network.embeddings.embed_source(torch.tensor([source]))
    inputs_BSD = network.encoder.positions(embedded_BSD)
    attention = layer.self_attention
    assert isinstance(attention, MultiHeadAttention)
    _, _, value_BHSG = attention.project(inputs_BSD, inputs_BSD)
    mixed_BHSG = recording.encoder_LHSS[0][None] @ value_BHSG
    expected_BSD = attention.W_O(mixed_BHSG.transpose(1, 2).flatten(start_dim=2))
    torch.testing.assert_close(attention(inputs_BSD, inputs_BSD), expected_BSD)


def test_watching_changes_nothing_and_leaves_nothing_behind(network: Transformer) -> None:
    source_BS, target_BT = torch.tensor([[5, 9, 7, 3]]), torch.tensor([[8, 6, 3]])
    before = network(source_BS, target_BT)
    record(network, source_BS[0].tolist(), target_BT[0].tolist())
    assert torch.equal(network(source_BS, target_BT), before)
    assert not any(module._forward_hooks for module in network.modules())


def test_log_probabilities_are_the_models_own(
    network: Transformer, tokenizer: Tokenizer, report: AttentionReport
) -> None:
    source_BS = torch.tensor([[token.id for token in report.source]])
    target_BT = torch.tensor([[token.id for token in report.target]])
    expected = token_log_probabilities(network(source_BS, target_BT), network.output_matrix_VD, target_BT)[0]
    assert [token.log_probability for token in report.target] == pytest.approx(expected.tolist(), abs=1e-5)
    for step in report.candidates:
        probabilities = [probability for _, probability in step]
        assert probabilities == sorted(probabilities, reverse=True)
        assert sum(probabilities) <= 1.0 + 1e-6


def test_json_gives_the_weights_back_to_half_a_step(report: AttentionReport) -> None:
    content = json.loads(report.to_json())
    assert (content["format"], content["format_version"]) == ("transduce-attention", 1)
    block = content["weights"]["cross"]
    assert block["order"] == ["layer", "head", "query", "key"]
    raw = torch.frombuffer(bytearray(base64.b64decode(block["base64_u8"])), dtype=torch.uint8)
    again = raw.view(block["shape"]).float() / 255
    assert (again - report.cross_LHTS).abs().max() <= 0.5 / 255 + 1e-6


def test_the_page_holds_markup_as_text_and_asks_for_nothing(report: AttentionReport) -> None:
    page = report.to_html()
    assert page.count("<script") == 2
    assert "alert(" in page
    assert "</script><script>alert" not in page
    assert "http://" not in page
    assert "https://" not in page
    assert "<iframe srcdoc=" in report._repr_html_()
