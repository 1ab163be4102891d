"""A lesson says what the model does: searches equal beam search, and a removed head is one that W_O does not read."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.learning.conftest import TEXT
from tests.translator.test_generating import write_model as write_language_model

from transduce.decoding.beam_search import beam_search
from transduce.errors import ConfigError
from transduce.inspection.search_record import ALPHAS, DIGITS, WIDEST, searched_with
from transduce.learning.lesson import lesson
from transduce.networks.attention_sublayer import sublayers_by_kind, without_head
from transduce.networks.log_probabilities import token_log_probabilities
from transduce.networks.torch_stepper import TorchStepper
from transduce.translator import Translator


def test_a_removed_head_is_one_whose_columns_of_the_output_matrix_are_zero(
    translator: Translator, content: dict[str, Any]
) -> None:
    network = translator.models[0].read_again().network()
    report = content["report"]
    source, target = (
        torch.tensor([[token["id"] for token in report[side]["tokens"]]]) for side in ("source", "target")
    )
    for kind, sublayers in sublayers_by_kind(network).items():
        for layer, sublayer in enumerate(sublayers):
            width = sublayer.W_O.in_features // sublayer.heads
            for head in range(sublayer.heads):
                kept = sublayer.W_O.weight.detach().clone()
                with torch.no_grad():
                    sublayer.W_O.weight[:, head * width : (head + 1) * width] = 0.0
                    expected = token_log_probabilities(network(source, target), network.output, target)[0]
                    sublayer.W_O.weight.copy_(kept)
                entry = report["without"][kind][layer][head]
                assert entry["log_probabilities"] == pytest.approx(expected.tolist(), abs=2e-5)
                places = zip(report["target"]["tokens"], entry["candidates"], expected.exp().tolist(), strict=True)
                for token, candidates, probability in places:
                    known = {one["id"]: one["probability"] for one in candidates}
                    assert known.get(token["id"], probability) == pytest.approx(probability, abs=2e-5)
                    assert [*known.values()] == sorted(known.values(), reverse=True)


def test_heads_are_removed_only_inside_the_block(translator: Translator) -> None:
    network = translator.models[0].read_again().network()
    sublayer = sublayers_by_kind(network)["cross"][0]
    query, memory = torch.randn(1, 3, 22), torch.randn(1, 5, 22)
    before = sublayer(query, memory)
    with without_head(sublayer, 4):
        assert not torch.equal(sublayer(query, memory), before)
    assert torch.equal(sublayer(query, memory), before)


@pytest.mark.parametrize("beam", range(1, WIDEST + 1))
def test_the_record_answers_every_search_as_the_model_does(
    translator: Translator, content: dict[str, Any], beam: int
) -> None:
    network = translator.models[0].read_again().network()
    source = [token["id"] for token in content["report"]["source"]["tokens"]]
    record = content["search"]
    for alpha in ALPHAS[::5]:
        found = beam_search(TorchStepper(network), np.array([source]), searched_with(beam, alpha, record["limit"]))[0][
            0
        ]
        assert found.is_finished
        total, prefix = 0.0, ()
        for token in found.tokens:
            known = dict(map(tuple, record["nodes"][".".join(map(str, prefix))]))
            total += known[token]
            prefix = (*prefix, token)
        assert total == pytest.approx(found.log_probability, abs=len(prefix) * 10**-DIGITS)


def test_a_reference_and_the_text_come_along(content: dict[str, Any]) -> None:
    assert content["report"]["source"]["text"] == TEXT
    assert content["reference"] == "der Hund läuft."
    assert all(block["numbers"] for block in content["report"]["blocks"].values())


def test_a_model_that_does_not_translate_is_refused(tmp_path: Path) -> None:
    model = Translator.load(write_language_model(tmp_path / "text")[0], precision="float32", threads=1)
    with pytest.raises(ConfigError, match="about a Transformer that translates"):
        lesson(model, "hello")
