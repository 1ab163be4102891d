"""The report says what the network did, in the contract's words."""

import base64
import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import numpy as np
import pytest
import torch
from pydantic import ValidationError
from tests.inspection.other_networks import MeanConfig, OneBlockNetwork

from transduce.inspection.contract import ReportEntry, json_schema
from transduce.inspection.pair import forced_pair
from transduce.inspection.report import AttentionReport, TranslationSource, block_entry, inspect
from transduce.model import Transformer
from transduce.networks.attention_axes import Axis
from transduce.networks.attention_block import AttentionBlock
from transduce.networks.log_probabilities import token_log_probabilities
from transduce.text.tokenizer import Tokenizer
from transduce.text.tokenizer_pair import TokenizerPair

SCHEMA = Path(__file__).parents[2] / "docs" / "attention_report.schema.json"
LIMIT = 4_000_000  # bytes of weights for 100 x 100 tokens of a base model


def test_log_probabilities_and_candidates_are_the_models_own(network: Transformer, report: AttentionReport) -> None:
    source_BS, target_BT = torch.tensor([report.source.ids]), torch.tensor([report.target.ids])
    hidden_BTD = network(source_BS, target_BT).detach()
    expected = token_log_probabilities(hidden_BTD, network.output, target_BT)[0]
    assert [token.log_probability for token in report.target.tokens] == pytest.approx(expected.tolist(), abs=1e-5)
    probability_TV = (hidden_BTD[0] @ network.output.matrix_VD.detach().T).softmax(dim=-1)
    for step, row in zip(report.candidates, probability_TV, strict=True):
        best = row.sort(descending=True).values[: len(step)]
        assert [candidate.probability for candidate in step] == pytest.approx(best.tolist(), abs=1e-5)
        assert [float(row[candidate.id]) for candidate in step] == pytest.approx(best.tolist(), abs=1e-5)


def test_float32_stepwise_differs_from_the_pass_shown_by_rounding_alone(report: AttentionReport) -> None:
    assert report.largest_difference < 1e-4


def decoded(block: dict[str, Any]) -> torch.Tensor:
    """Return the weights of a block of the JSON."""
    halves = np.frombuffer(base64.b64decode(block["base64_f16"]), dtype="<f2").astype(np.float32)
    return torch.from_numpy(halves).view(block["shape"])


def test_json_gives_the_weights_back_in_half_precision(report: AttentionReport) -> None:
    content = json.loads(report.to_json())
    assert (content["format"], content["format_version"]) == ("transduce-attention", 2)
    assert list(content["blocks"]) == ["encoder", "decoder", "cross"]
    for name, block in content["blocks"].items():
        assert block["order"] == ["layer", "head", "query", "key"]
        own = report.blocks[name]
        assert (block["queries"], block["keys"]) == (own.queries, own.keys)
        # Half precision has 11 significant bits, and below 2^-14 steps of 2^-24.
        step = (own.weights_LHQK * 2**-11).clamp(min=2**-25)
        assert ((decoded(block) - own.weights_LHQK).abs() <= step).all()
        assert (decoded(block).sum(dim=-1) - 1).abs().max() <= 1e-3


def test_rows_of_many_keys_still_sum_to_one() -> None:
    weights_LHQK = (4 * torch.randn(1, 2, 31, 997)).softmax(dim=-1)
    block = block_entry(AttentionBlock("target", "source", weights_LHQK), has_numbers=False).model_dump()
    assert (decoded(block).sum(dim=-1) - 1).abs().max() <= 1e-3


@pytest.mark.parametrize(
    ("name", "queries", "keys"),
    [("cross", "target", "source"), ("text", "target", "read"), ("encoder", "source", "source")],
)
def test_a_network_with_one_block_and_no_projections(
    tokenizer: Tokenizer, name: str, queries: Axis, keys: Axis
) -> None:
    config = MeanConfig(vocabulary_size=tokenizer.vocabulary_size, d_model=7)
    network = OneBlockNetwork(config, name=name, queries=queries, keys=keys).eval()
    source, target = forced_pair(TokenizerPair.shared(tokenizer), "the dog runs", "der Hund läuft")
    translated = TranslationSource("float32", models=1, is_forced=True, log_probabilities=(0.0,) * len(target.ids))
    report = inspect(network, tokenizer, source, target, translated=translated, with_numbers=True)
    content = json.loads(report.to_json())
    ReportEntry.model_validate(content)
    block = content["blocks"][name]
    assert (block["has_projections"], block["numbers"]) == (False, None)
    lengths = {"source": len(source.ids), "target": len(target.ids), "read": len(target.ids)}
    assert block["shape"] == [1, 1, lengths[queries], lengths[keys]]
    if name == "cross":
        assert content["alignment"]["block"] == "cross"
    else:
        assert content["alignment"] is None


def test_json_keeps_to_the_published_schema(report: AttentionReport) -> None:
    validator = jsonschema_rs.validator_for(json.loads(SCHEMA.read_text(encoding="utf-8")))
    content = json.loads(report.to_json())
    validator.validate(content)
    validator.validate({**content, "alignment": None})
    ReportEntry.model_validate_json(report.to_json())
    lacking = {name: value for name, value in content.items() if name != "alignment"}
    wrong_order, wrong_axis, wrong_name = (json.loads(report.to_json()) for _ in range(3))
    wrong_order["blocks"]["cross"]["order"].reverse()
    wrong_axis["blocks"]["cross"]["keys"] = "middle"
    wrong_name["blocks"]["7"] = wrong_name["blocks"].pop("cross")
    other_versions = [{**content, "format_version": version} for version in (1, 3)]
    for broken in (*other_versions, {**content, "surplus": 1}, lacking, wrong_order, wrong_axis, wrong_name):
        assert not validator.is_valid(broken)
        with pytest.raises(ValidationError):
            ReportEntry.model_validate(broken)


def test_the_published_schema_is_that_of_the_contract() -> None:
    published = json.loads(SCHEMA.read_text(encoding="utf-8"))
    assert published == json_schema(), "write json_schema() of transduce.inspection.contract into the file again"
    described = [field for entry in [published, *published["$defs"].values()] for field in entry["properties"].values()]
    assert all("description" in field for field in described)


def test_weights_of_a_base_model_and_a_hundred_tokens_stay_small() -> None:
    blocks = [AttentionBlock("source", "source", torch.rand(6, 8, 100, 100))] * 3
    assert sum(len(block_entry(block, has_numbers=False).base64_f16) for block in blocks) <= LIMIT
