"""The two language models learn the same text, see the same blocks, and have equally many parameters."""

from pathlib import Path

import pytest
import torch

from transduce.paper.finding import StudyContext
from transduce.paper.language import NETWORKS, held_out_loss, losses, read_text
from transduce.progress import Silent


@pytest.mark.parametrize("kind", NETWORKS)
def test_a_network_learns_to_repeat(kind: str, tmp_path: Path) -> None:
    (tmp_path / "abc.txt").write_text("abcdefgh\n" * 400, encoding="utf-8")
    text_T, symbols = read_text(str(tmp_path / "abc.txt"))
    assert symbols == 9 + 5
    torch.manual_seed(1)
    network = NETWORKS[kind](symbols)
    before = held_out_loss(network, text_T)
    context = StudyContext(tmp_path, 1, Silent(), lambda: False)
    points = losses(network, text_T, context, seconds=3.0)
    assert points is not None
    assert points[-1][1] < 0.3 * before


def test_no_position_sees_the_character_that_it_predicts() -> None:
    for make in NETWORKS.values():
        torch.manual_seed(1)
        network = make(20).eval()
        tokens_BT = torch.randint(5, 20, (2, 12))
        changed_BT = tokens_BT.clone()
        changed_BT[:, 7] = (tokens_BT[:, 7] - 4) % 15 + 5
        differs_T = (network(tokens_BT) != network(changed_BT)).any(dim=-1).any(dim=0)
        assert not differs_T[:7].any()  # position t predicts character t + 1 and has read up to t
        assert differs_T[7]


def test_both_have_equally_many_parameters() -> None:
    counts = [sum(own.numel() for own in make(65 + 5).parameters()) for make in NETWORKS.values()]
    assert counts[0] == pytest.approx(counts[1], rel=0.05)
