"""The numbers behind a head are enough to compute its weights again."""

import base64

import numpy as np
import pytest
import torch
from tests.inspection.other_networks import MeanConfig, OneBlockNetwork

from transduce.errors import DataError
from transduce.inspection.contract import FloatBlock
from transduce.inspection.head_numbers import head_numbers
from transduce.inspection.report import AttentionReport
from transduce.model import Transformer

SOURCE, TARGET = [5, 9, 7, 3], [8, 6, 4, 21, 3]


def decoded(block: FloatBlock) -> torch.Tensor:
    numbers = np.frombuffer(base64.b64decode(block.base64_f32), dtype="<f4").astype(np.float32)
    return torch.from_numpy(numbers).view(block.shape)


@pytest.mark.parametrize("stack", ["encoder", "decoder", "cross"])
def test_softmax_of_the_scores_is_the_row_of_weights(network: Transformer, stack: str) -> None:
    weights_LHQK = network.attention(SOURCE, TARGET)[stack].weights_LHQK
    numbers = head_numbers(network, SOURCE, TARGET, stack, 1, 7)
    query_QE, key_KE = decoded(numbers.query), decoded(numbers.key)
    if numbers.additive is not None:
        scores_QK = ((query_QE[:, None] + key_KE).tanh() * decoded(numbers.additive)).sum(dim=-1)
    else:
        scores_QK = query_QE @ key_KE.T * numbers.scale
    if stack == "decoder":
        scores_QK = scores_QK.masked_fill(torch.ones_like(scores_QK).triu(diagonal=1).bool(), -torch.inf)
    torch.testing.assert_close(scores_QK.softmax(dim=-1), weights_LHQK[1, 7])


def test_a_page_that_carries_all_numbers_carries_these(network: Transformer, report: AttentionReport) -> None:
    numbers = head_numbers(network, report.source.ids, report.target.ids, "cross", 2, 10)
    carried = report.to_entry().blocks["cross"].numbers
    assert carried is not None
    assert (carried.scores, carried.scale) == (numbers.scores, numbers.scale)
    assert torch.equal(decoded(carried.key)[2, 10], decoded(numbers.key))
    assert torch.equal(decoded(carried.value)[2, 10], decoded(numbers.value))
    assert (carried.additive is None) == (numbers.additive is None)


def test_what_does_not_exist_is_refused(network: Transformer) -> None:
    for layer, head in ((2, 0), (0, 11), (-1, 0)):
        with pytest.raises(DataError, match="it has layers 0 to 1 and heads 0 to 10"):
            head_numbers(network, SOURCE, TARGET, "encoder", layer, head)
    with pytest.raises(DataError, match="There is no middle attention in this network; it has encoder, decoder, cross"):
        head_numbers(network, SOURCE, TARGET, "middle", 0, 0)
    plain = OneBlockNetwork(MeanConfig(vocabulary_size=23), name="cross", queries="target", keys="source").eval()
    with pytest.raises(DataError, match="The cross attention of this network has no queries, keys and values"):
        head_numbers(plain, SOURCE, TARGET, "cross", 0, 0)
