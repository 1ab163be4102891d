"""The report says what the network did, in the contract's words."""

import base64
import json
from pathlib import Path

import jsonschema_rs
import pytest
import torch

from transduce.inspection.contract import ReportEntry, WeightBlock, json_schema
from transduce.inspection.report import AttentionReport, _encoded
from transduce.model import Transformer
from transduce.networks.log_probabilities import token_log_probabilities

SCHEMA = Path(__file__).parents[2] / "docs" / "attention_report.schema.json"
LIMIT = 2_000_000  # bytes of weights for 100 x 100 tokens of a base model


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


def test_json_gives_the_weights_back_to_half_a_step(report: AttentionReport) -> None:
    content = json.loads(report.to_json())
    assert (content["format"], content["format_version"]) == ("transduce-attention", 1)
    for stack in ("encoder", "decoder", "cross"):
        block = content["weights"][stack]
        assert block["order"] == ["layer", "head", "query", "key"]
        raw = torch.frombuffer(bytearray(base64.b64decode(block["base64_u8"])), dtype=torch.uint8)
        again = raw.view(block["shape"]).float() / 255
        weights = getattr(report.recording, stack).weights_LHQK
        assert (again - weights).abs().max() <= 0.5 / 255 + 1e-6


def test_json_keeps_to_the_published_schema(report: AttentionReport) -> None:
    validator = jsonschema_rs.validator_for(json.loads(SCHEMA.read_text(encoding="utf-8")))
    content = json.loads(report.to_json())
    validator.validate(content)
    ReportEntry.model_validate_json(report.to_json())
    lacking = {name: value for name, value in content.items() if name != "alignment"}
    wrong_order = json.loads(report.to_json())
    wrong_order["weights"]["cross"]["order"].reverse()
    for broken in ({**content, "format_version": 2}, {**content, "surplus": 1}, lacking, wrong_order):
        assert not validator.is_valid(broken)


def test_the_published_schema_is_that_of_the_contract() -> None:
    published = json.loads(SCHEMA.read_text(encoding="utf-8"))
    assert published == json_schema(), "write json_schema() of transduce.inspection.contract into the file again"
    described = [field for entry in [published, *published["$defs"].values()] for field in entry["properties"].values()]
    assert all("description" in field for field in described)


def test_weights_of_a_base_model_and_a_hundred_tokens_stay_small() -> None:
    blocks: list[WeightBlock] = [_encoded(torch.rand(6, 8, 100, 100)) for _ in range(3)]
    assert sum(len(block.base64_u8) for block in blocks) <= LIMIT
