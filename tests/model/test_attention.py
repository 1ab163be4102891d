"""Section 3.2: laws of softmax and attention, torch's own attention as oracle, and values worked out by hand."""

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.testing import assert_close

from transduce.model import ModelConfig
from transduce.model.attention import MultiHeadAttention, attend, attend_fast, attention_weights, softmax
from transduce.model.masks import visible_to_the_left

B, H, Q, K, E, G = 2, 3, 11, 13, 5, 7

finite_rows = st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=20)
rows_with_hidden_entries = st.tuples(
    finite_rows, st.lists(st.just(-math.inf), max_size=5), st.randoms(use_true_random=False)
).map(lambda parts: parts[2].sample(parts[0] + parts[1], len(parts[0]) + len(parts[1])))


def exact(row: object) -> Tensor:
    return torch.tensor(row, dtype=torch.float64)


class TestSoftmax:
    @given(rows_with_hidden_entries)
    def test_a_row_sums_to_one(self, row: list[float]) -> None:
        assert softmax(exact(row)).sum().item() == pytest.approx(1.0, abs=1e-12)

    @given(rows_with_hidden_entries)
    def test_every_entry_is_a_probability(self, row: list[float]) -> None:
        probabilities = softmax(exact(row))
        assert bool(((probabilities >= 0.0) & (probabilities <= 1.0)).all())
        hidden = exact(row) == -math.inf
        assert bool((probabilities[hidden] == 0.0).all())

    @given(rows_with_hidden_entries, st.integers(-10_000, 10_000))
    def test_adding_a_constant_changes_nothing(self, row: list[float], constant: int) -> None:
        assert_close(softmax(exact(row) + constant), softmax(exact(row)), rtol=1e-9, atol=1e-9)

    @given(rows_with_hidden_entries)
    def test_the_larger_logit_never_gets_less(self, row: list[float]) -> None:
        order = exact(row).argsort()
        assert bool((softmax(exact(row))[order].diff() >= 0.0).all())

    @given(rows_with_hidden_entries)
    def test_it_is_torchs(self, row: list[float]) -> None:
        assert_close(softmax(exact(row)), torch.softmax(exact(row), dim=-1))

    def test_by_hand(self) -> None:
        odds = exact([1.0, 2.0, 5.0])
        assert_close(softmax(odds.log()), odds / 8)

    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
    def test_logits_of_ten_thousand_neither_overflow_nor_vanish(self, dtype: torch.dtype) -> None:
        logits = torch.tensor([[1e4, 1e4, -1e4, -math.inf], [-1e4, -1e4, -math.inf, -math.inf]], dtype=dtype)
        assert softmax(logits).tolist() == [[0.5, 0.5, 0.0, 0.0], [0.5, 0.5, 0.0, 0.0]]

    def test_only_the_last_axis_is_normalised(self) -> None:
        assert_close(softmax(torch.randn(2, 3, 5)).sum(dim=-1), torch.ones(2, 3))


class TestAttentionWeights:
    def test_a_row_sums_to_one_or_is_zero(self) -> None:
        visible_BHQK = torch.rand(B, H, Q, K) < 0.15
        assert bool((~visible_BHQK.any(dim=-1)).any()), "some row should see nothing"
        weights_BHQK = attention_weights(100 * torch.randn(B, H, Q, K), visible_BHQK=visible_BHQK)
        assert_close(weights_BHQK.sum(dim=-1), visible_BHQK.any(dim=-1).float())
        assert bool((weights_BHQK[~visible_BHQK] == 0.0).all())

    def test_it_is_the_written_out_softmax(self) -> None:
        scores_BHQK = torch.randn(B, H, Q, K, dtype=torch.float64)
        assert_close(attention_weights(scores_BHQK, visible_BHQK=None), softmax(scores_BHQK))

    def test_hidden_is_hidden_however_low_the_visible_scores_are(self) -> None:
        scores_BHQK = torch.tensor([[[[0.0, -1e12, -1e12]]]])
        weights_BHQK = attention_weights(scores_BHQK, visible_BHQK=torch.tensor([[[[False, True, True]]]]))
        assert weights_BHQK.tolist() == [[[[0.0, 0.5, 0.5]]]]

    def test_a_network_that_has_diverged_is_not_hidden(self) -> None:
        scores_BHQK = torch.tensor([[[[math.nan, 1.0]]]])
        weights_BHQK = attention_weights(scores_BHQK, visible_BHQK=torch.tensor([[[[True, True]]]]))
        assert bool(weights_BHQK.isnan().all())


# Section 9.1 of our notes on the paper: worked out by hand, d_k = 4, so that the scaled scores are halves.
QUERY = [[1, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]]
KEY = [[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0]]
VALUE = [[1, 2], [3, 4], [5, 6]]
THIRD = 1 / 3
BY_HAND = {
    "everything": (
        [[1, 1, 1], [1, 1, 1], [1, 1, 1]],
        [[0.50648039, 0.18632372, 0.30719589], [0.09003057, 0.66524096, 0.24472847], [THIRD, THIRD, THIRD]],
        [[2.60143099, 3.60143099], [3.30939580, 4.30939580], [3, 4]],
    ),
    "to the left": (
        [[1, 0, 0], [1, 1, 0], [1, 1, 1]],
        [[1, 0, 0], [0.11920292, 0.88079708, 0], [THIRD, THIRD, THIRD]],
        [[1, 2], [2.76159416, 3.76159416], [3, 4]],
    ),
    "the last key is padding": (
        [[1, 1, 0], [1, 1, 0], [1, 1, 0]],
        [[0.73105858, 0.26894142, 0], [0.11920292, 0.88079708, 0], [0.5, 0.5, 0]],
        [[1.53788284, 2.53788284], [2.76159416, 3.76159416], [2, 3]],
    ),
}


@pytest.mark.parametrize("attend_either_way", [attend, attend_fast])
class TestAttend:
    @pytest.mark.parametrize("seen", BY_HAND)
    def test_three_words_by_hand(self, attend_either_way: Callable[..., Tensor], seen: str) -> None:
        visible, weights, output = BY_HAND[seen]
        query, key, value = (exact(rows)[None, None] for rows in (QUERY, KEY, VALUE))
        visible_BHQK = torch.tensor([[visible]], dtype=torch.bool)
        weights_BHQK = attention_weights(query @ key.mT / 2, visible_BHQK=visible_BHQK)
        assert_close(weights_BHQK[0, 0], exact(weights), rtol=0, atol=6e-9)
        mixed = attend_either_way(query, key, value, visible_BHQK=visible_BHQK)
        assert_close(mixed[0, 0], exact(output), rtol=0, atol=3e-8)

    def test_two_words_by_hand(self, attend_either_way: Callable[..., Tensor]) -> None:
        words = exact([[1, 0, 1, 0], [0, 1, 0, 1]])
        W_Q = exact([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [0.7, 0.8, 0.9], [0.1, 0.2, 0.3]])
        W_K = exact([[0.2, 0.3, 0.4], [0.5, 0.6, 0.7], [0.8, 0.9, 0.1], [0.2, 0.3, 0.4]])
        W_V = exact([[0.3, 0.4, 0.5], [0.6, 0.7, 0.8], [0.9, 0.1, 0.2], [0.3, 0.4, 0.5]])
        query, key, value = (words @ W for W in (W_Q, W_K, W_V))
        assert_close(query @ key.T, exact([[2.6, 2.78], [1.79, 1.97]]))
        mixed = attend_either_way(query[None, None], key[None, None], value[None, None])
        assert_close(mixed[0, 0], exact([[1.042213, 0.815574, 1.015574]] * 2), rtol=0, atol=6e-7)

    def test_the_scale_can_be_left_out(self, attend_either_way: Callable[..., Tensor]) -> None:
        query, key = (exact(rows)[None, None] for rows in (QUERY, KEY))
        weights = attend_either_way(query, key, torch.eye(3).double()[None, None], scale=1.0)
        assert_close(weights[0, 0, 0], exact([0.66524096, 0.09003057, 0.24472847]), rtol=0, atol=6e-9)

    def test_the_order_of_keys_does_not_matter(self, attend_either_way: Callable[..., Tensor]) -> None:
        query, key, value, visible = operands()
        order = torch.randperm(K)
        shuffled = attend_either_way(query, key[:, :, order], value[:, :, order], visible_BHQK=visible[:, :, :, order])
        assert_close(attend_either_way(query, key, value, visible_BHQK=visible), shuffled)

    def test_what_is_hidden_changes_nothing(self, attend_either_way: Callable[..., Tensor]) -> None:
        query, key, value, visible = operands()
        visible[:, :, :, 4] = False
        before = attend_either_way(query, key, value, visible_BHQK=visible)
        key[:, :, 4], value[:, :, 4] = 1e3, -1e3
        assert torch.equal(attend_either_way(query, key, value, visible_BHQK=visible), before)

    def test_a_query_that_sees_nothing_gets_zeros_and_finite_gradients(
        self, attend_either_way: Callable[..., Tensor]
    ) -> None:
        query, key, value, visible = operands()
        visible[0, :, 3], visible[1, 2] = False, False
        wanting = [tensor.requires_grad_() for tensor in (query, key, value)]
        mixed = attend_either_way(*wanting, visible_BHQK=visible)
        assert bool((mixed[0, :, 3] == 0.0).all())
        assert bool((mixed[1, 2] == 0.0).all())
        gradients = torch.autograd.grad(mixed.square().sum(), wanting)
        assert all(bool(gradient.isfinite().all()) for gradient in gradients)
        assert bool((gradients[0][0, :, 3] == 0.0).all())
        assert gradients[0].abs().sum() > 0


def operands() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    query, key, value = (torch.randn(shape).double() for shape in ((B, H, Q, E), (B, H, K, E), (B, H, K, G)))
    return query, key, value, torch.rand(B, H, Q, K) < 0.5


@pytest.mark.parametrize("seen", ["all", "some", "nothing in some rows", "same for all heads", "to the left"])
@pytest.mark.parametrize("scale", [None, 1.0])
def test_the_fast_path_is_the_equation_gradients_too(seen: str, scale: float | None) -> None:
    query, key, value, visible = operands()
    choices = {
        "all": None,
        "some": visible | (torch.arange(K) == 0),
        "nothing in some rows": visible & (torch.arange(Q) % 3 != 0)[:, None],
        "same for all heads": visible[:, :1, :1],
        "to the left": visible_to_the_left(K)[:, :, :Q],
    }
    results = []
    for attend_one_way in (attend, attend_fast):
        inputs = [tensor.clone().requires_grad_() for tensor in (query, key, value)]
        mixed = attend_one_way(*inputs, visible_BHQK=choices[seen], scale=scale)
        results.append([mixed, *torch.autograd.grad(mixed.sin().sum(), inputs)])
    for written_out, fast in zip(*results, strict=True):
        assert_close(fast, written_out)


def test_dropout_leaves_the_mean_and_zeroes_the_share_it_is_told() -> None:
    keys = 4096
    query, key = torch.zeros(1, 1, 1, 1), torch.zeros(1, 1, keys, 1)
    kept = attend(query, key, torch.eye(keys)[None, None], dropout=0.25)[0, 0, 0] * keys
    assert kept.unique().tolist() == [0.0, pytest.approx(4 / 3)]
    assert 0.70 < (kept > 0).float().mean().item() < 0.80


class TestMultiHeadAttention:
    def test_two_heads_by_hand(self) -> None:
        attention = MultiHeadAttention(ModelConfig(d_model=4, heads=2)).double()
        W_V = exact([[1, 0, 0, 1], [0, 1, 1, 0], [1, 1, 0, 0], [0, 0, 1, 1]])
        set_weights(attention, exact(range(16)).view(4, 4) / 10, torch.eye(4), W_V, torch.eye(4).flip(0))
        words = exact([[[1, 0, 2, 0], [0, 1, 0, 1], [1, 1, 0, 0]]])
        query, key, _ = attention.project(words, words)
        weights = attention.weights(query, key, visible_BHQK=None)
        head_1 = [[0.16477842, 0.20371739, 0.63150418], [0.17474211, 0.20128717, 0.62397072]]
        head_2 = [[0.76600506, 0.19987374, 0.03412120], [0.74673993, 0.20912345, 0.04413662]]
        head_1.append([0.27171144, 0.31298710, 0.41530147])
        head_2.append([0.50585737, 0.33095774, 0.16318490])
        assert_close(weights[0], exact([head_1, head_2]), rtol=0, atol=6e-9)
        output = [[1, 0.43386869, 1.16477842, 1.12583945], [1, 0.46238353, 1.17474211, 1.14819705]]
        output.append([1, 0.82510037, 1.27171144, 1.23043578])
        assert_close(attention(words, words)[0], exact(output), rtol=0, atol=6e-9)

    @pytest.mark.parametrize("bias", [False, True])
    @pytest.mark.parametrize("is_self_attention", [False, True])
    def test_it_is_torchs_with_the_same_weights(self, bias: bool, is_self_attention: bool) -> None:
        ours = MultiHeadAttention(ModelConfig(d_model=6, heads=3, attention_bias=bias)).double()
        move_biases_off_zero(ours)
        theirs = nn.MultiheadAttention(6, 3, bias=bias, batch_first=True).double()
        copy_to_torch(ours, theirs)
        query_BQD = torch.randn(2, 5, 6).double()
        memory_BKD = query_BQD if is_self_attention else torch.randn(2, 7, 6).double()
        visible_BK = torch.rand(2, memory_BKD.size(1)) < 0.7
        visible_BK[:, 0] = True
        expected, expected_weights = theirs(
            query_BQD, memory_BKD, memory_BKD, key_padding_mask=~visible_BK, average_attn_weights=False
        )
        visible_BHQK = visible_BK[:, None, None]
        assert_close(ours(query_BQD, memory_BKD, visible_BHQK=visible_BHQK), expected)
        query, key, _ = ours.project(query_BQD, memory_BKD)
        assert_close(ours.weights(query, key, visible_BHQK=visible_BHQK), expected_weights)

    @pytest.mark.parametrize("bias", [False, True])
    def test_it_is_the_sentence_of_the_paper_with_free_widths(
        self, make_config: Callable[..., ModelConfig], bias: bool
    ) -> None:
        attention = MultiHeadAttention(make_config(attention_bias=bias)).double()
        move_biases_off_zero(attention)
        query_BQD, memory_BKD = torch.randn(B, Q, 14).double(), torch.randn(B, K, 14).double()
        heads = []
        for i in range(3):
            rows_E, rows_G = slice(5 * i, 5 * i + 5), slice(7 * i, 7 * i + 7)
            q = nn.functional.linear(query_BQD, attention.W_Q.weight[rows_E], part(attention.W_Q.bias, rows_E))
            k = nn.functional.linear(memory_BKD, attention.W_K.weight[rows_E], part(attention.W_K.bias, rows_E))
            v = nn.functional.linear(memory_BKD, attention.W_V.weight[rows_G], part(attention.W_V.bias, rows_G))
            heads.append(softmax(q @ k.mT / math.sqrt(5)) @ v)
        assert_close(attention(query_BQD, memory_BKD), attention.W_O(torch.cat(heads, dim=-1)))

    def test_fused_and_separate_projections_agree(self, make_config: Callable[..., ModelConfig]) -> None:
        attention = MultiHeadAttention(make_config(attention_bias=True)).double()
        move_biases_off_zero(attention)
        inputs_BTD = torch.randn(B, Q, 14).double()
        for fused, apart in zip(
            attention.project(inputs_BTD, inputs_BTD), attention.project(inputs_BTD, inputs_BTD.clone()), strict=True
        ):
            assert_close(fused, apart)

    def test_unscaled_scores_are_scaled_ones_times_the_root_of_d_k(
        self, make_config: Callable[..., ModelConfig]
    ) -> None:
        scaled, unscaled = (MultiHeadAttention(make_config(scores=kind)).double() for kind in ("scaled", "unscaled"))
        unscaled.load_state_dict(scaled.state_dict())
        with torch.no_grad():
            scaled.W_Q.weight.mul_(math.sqrt(5))
        query_BQD, memory_BKD = torch.randn(B, Q, 14).double(), torch.randn(B, K, 14).double()
        assert_close(scaled(query_BQD, memory_BKD), unscaled(query_BQD, memory_BKD))

    def test_additive_scores_are_one_hidden_layer(self, make_config: Callable[..., ModelConfig]) -> None:
        attention = MultiHeadAttention(make_config(scores="additive")).double()
        query, key, value, visible = operands()
        weights = attention.weights(query, key, visible_BHQK=visible)
        b, h, q = 1, 2, 3
        scores_K = torch.stack([attention.v_HE[h] @ torch.tanh(query[b, h, q] + key[b, h, k]) for k in range(K)])
        expected_K = torch.zeros(K).double()
        expected_K[visible[b, h, q]] = softmax(scores_K[visible[b, h, q]])
        assert_close(weights[b, h, q], expected_K)
        mixed = attention.combine(query, key, value, visible_BHQK=visible)
        assert_close(mixed, attention.W_O((weights @ value).transpose(1, 2).flatten(2)))

    @pytest.mark.parametrize("scores", ["scaled", "unscaled", "additive"])
    def test_weights_are_those_the_output_was_made_with(
        self, make_config: Callable[..., ModelConfig], scores: str
    ) -> None:
        attention = MultiHeadAttention(make_config(scores=scores)).double()
        query, key, value, visible = operands()
        mixed = attention.weights(query, key, visible_BHQK=visible) @ value
        expected = attention.W_O(mixed.transpose(1, 2).flatten(start_dim=2))
        assert_close(attention.combine(query, key, value, visible_BHQK=visible), expected)

    @pytest.mark.parametrize("scores", ["scaled", "additive"])
    def test_dropout_on_weights_in_training_only(self, make_config: Callable[..., ModelConfig], scores: str) -> None:
        attention = MultiHeadAttention(make_config(scores=scores, attention_dropout=0.5)).double()
        inputs = torch.randn(B, Q, 14).double()
        assert not torch.equal(attention(inputs, inputs), attention(inputs, inputs))
        attention.eval()
        assert torch.equal(attention(inputs, inputs), attention(inputs, inputs))


def move_biases_off_zero(attention: MultiHeadAttention) -> None:
    for name, parameter in attention.named_parameters():
        if name.endswith("bias"):
            nn.init.normal_(parameter)


def part(bias: Tensor | None, rows: slice) -> Tensor | None:
    return None if bias is None else bias[rows]


def set_weights(attention: MultiHeadAttention, *matrices: Tensor) -> None:
    """Set W_Q, W_K, W_V and W_O as the paper writes them, applied from the right."""
    with torch.no_grad():
        for projection, matrix in zip(
            (attention.W_Q, attention.W_K, attention.W_V, attention.W_O), matrices, strict=True
        ):
            projection.weight.copy_(matrix.T)


def copy_to_torch(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([ours.W_Q.weight, ours.W_K.weight, ours.W_V.weight]))
        theirs.out_proj.weight.copy_(ours.W_O.weight)
        if ours.W_Q.bias is not None:
            theirs.in_proj_bias.copy_(torch.cat([ours.W_Q.bias, ours.W_K.bias, ours.W_V.bias]))
            theirs.out_proj.bias.copy_(ours.W_O.bias)
