"""Minimum risk training against its equation, derived by torch, and against values worked out by hand."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from transduce.data.batch import Batch, Judged
from transduce.data.candidates import CandidateStore, candidate_store_written
from transduce.data.token_store import TokenStore
from transduce.model.config import ModelConfig
from transduce.model.transformer import Transformer
from transduce.training import chunked_loss
from transduce.training.arithmetic import Arithmetic
from transduce.training.batches import TrainingBatches, part_of
from transduce.training.config import TrainingConfig
from transduce.training.distributed import World
from transduce.training.gradient import DerivedGradient, WrittenOutGradient
from transduce.training.loss import Smoothing
from transduce.training.risk import RISK_WEIGHT, SHARPNESS, Candidates
from transduce.training.step import Stepper

EOS = 3
SIZES = {"vocabulary_size": 31, "layers": 2, "d_model": 14, "d_ff": 23, "heads": 7, "dropout": 0.0, "norm": "pre"}
CPU = Arithmetic(torch.device("cpu"), "float32")


def make_model() -> Transformer:
    torch.manual_seed(1706_03762)
    model = Transformer(ModelConfig.model_validate(SIZES)).double()
    for parameter in model.parameters():
        parameter.data = torch.randn_like(parameter) * 0.3
        parameter.grad = torch.zeros_like(parameter)
    return model


def padded(lengths: list[int]) -> Tensor:
    tokens = torch.randint(4, 31, (len(lengths), max(lengths)))
    return tokens.masked_fill(torch.arange(max(lengths)) >= torch.tensor(lengths)[:, None], 0)


@pytest.fixture
def batch() -> Batch:
    """Three pairs: the first with two candidates, the second with none, the third with three."""
    pair_U = torch.tensor([0, 0, 2, 2, 2])
    pairs_BS = padded([5, 2, 7])
    source_BS = torch.cat([pairs_BS, pairs_BS[pair_U]])
    rewards = torch.tensor([0.5, 0.25, 0.125, 0.75, 0.5])
    return Batch(source_BS, padded([4, 3, 6, 5, 2, 7, 6, 1]), np.arange(3), Judged(pair_U, rewards))


def plain_loss(model: Transformer, batch: Batch, smoothing: Smoothing) -> Tensor:
    """Return the loss as the module's docstring has it, row by row: the oracle."""
    assert batch.judged is not None
    hidden_BTD = model(batch.source_BS, batch.target_BT)
    log_p_BTV = torch.log_softmax(hidden_BTD @ model.output_matrix_VD.T, dim=-1)
    pairs = batch.source_BS.size(0) - batch.judged.pair_U.numel()
    total, scores = torch.zeros((), dtype=torch.float64), []
    for row, target_T in enumerate(batch.target_BT):
        length = int((target_T != 0).sum())
        log_p_TV = log_p_BTV[row, :length]
        of_labels_T = log_p_TV[torch.arange(length), target_T[:length]]
        if row < pairs:
            extra = smoothing.true - smoothing.other
            total = total - extra * of_labels_T.sum() - smoothing.other * log_p_TV.sum()
        else:
            scores.append(SHARPNESS * of_labels_T.sum() / length)
    for pair in range(pairs):
        own = [number for number, its in enumerate(batch.judged.pair_U.tolist()) if its == pair]
        if own:
            shares = torch.stack([scores[number] for number in own]).softmax(dim=0)
            length = int((batch.target_BT[pair] != 0).sum())
            total = total - RISK_WEIGHT * length * (shares * batch.judged.reward_U[own]).sum()
    return total


def gradients(model: Transformer) -> dict[str, Tensor]:
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("kind", [DerivedGradient, WrittenOutGradient])
@pytest.mark.parametrize("logits_at_once", [31 * 4, 1 << 24])
def test_the_gradient_is_the_equation_s(
    kind: type[DerivedGradient | WrittenOutGradient],
    logits_at_once: int,
    batch: Batch,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chunked_loss, "LOGITS_AT_ONCE", logits_at_once)
    model, config = make_model(), TrainingConfig(steps=1)
    smoothing = Smoothing.of(0.1, vocabulary_size=31, convention="szegedy")
    expected = plain_loss(model, batch, smoothing)
    expected.backward()
    wanted = gradients(model)
    for parameter in model.parameters():
        assert parameter.grad is not None
        parameter.grad.zero_()
    gradient = kind(model, config, arithmetic=CPU)
    gradient.refresh()
    loss = gradient.add(batch, dropout_key=1)
    assert loss.objective.item() == pytest.approx(expected.item(), rel=1e-9)
    assert loss.tokens == 4 + 3 + 6
    for name, found in gradients(model).items():
        torch.testing.assert_close(found, wanted[name], rtol=1e-6, atol=1e-9, msg=name)


def test_the_gradient_in_bf16_points_where_the_equation_s_does(batch: Batch) -> None:
    """There logits become their own gradient in place, by compiled code where it is installed."""
    exact, model = make_model(), make_model().float()
    plain_loss(exact, batch, Smoothing.of(0.1, vocabulary_size=31, convention="szegedy")).backward()
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    gradient = WrittenOutGradient(model, TrainingConfig(steps=1), arithmetic=Arithmetic(CPU.device, "bf16"))
    gradient.refresh()
    gradient.add(batch, dropout_key=1)
    wanted_P, found_P = (torch.cat([own.flatten().double() for own in gradients(m).values()]) for m in (exact, model))
    assert float((found_P - wanted_P).norm()) < 0.05 * float(wanted_P.norm())


def test_risk_by_hand() -> None:
    """Two candidates of two and three tokens, with τ · log p / |u| equal: each has half of the expectation."""
    candidates = Candidates(
        log_probability_U=torch.tensor([-2.0, -3.0], dtype=torch.float64),
        length_U=torch.tensor([2, 3]),
        reward_U=torch.tensor([0.9, 0.5], dtype=torch.float64),
        pair_U=torch.tensor([0, 0]),
        pairs=1,
    )
    risk_G, gradient_U = candidates.risk_and_gradient()
    assert risk_G.tolist() == pytest.approx([-0.7])
    assert gradient_U.tolist() == pytest.approx([-SHARPNESS / 2 * 0.5 * 0.2, SHARPNESS / 3 * 0.5 * 0.2])


def test_what_is_certain_is_not_moved_and_nothing_overflows() -> None:
    candidates = Candidates(
        log_probability_U=torch.tensor([-1e6, -1.0, -5.0]),
        length_U=torch.tensor([1, 1, 1]),
        reward_U=torch.tensor([0.0, 1.0, 0.5]),
        pair_U=torch.tensor([0, 0, 2]),
        pairs=3,
    )
    risk_G, gradient_U = candidates.risk_and_gradient()
    assert risk_G.tolist() == [-1.0, 0.0, -0.5]
    assert gradient_U.tolist() == [0.0, 0.0, 0.0]


def test_a_pair_without_candidates_has_the_usual_loss_alone() -> None:
    model = make_model()
    source_BS, target_BT = padded([5, 2]), padded([3, 6])
    nothing = Judged(torch.zeros(0, dtype=torch.int64), torch.zeros(0))
    gradient = WrittenOutGradient(model, TrainingConfig(steps=1), arithmetic=CPU)
    gradient.refresh()
    found = gradient.add(Batch(source_BS, target_BT, np.arange(2), nothing), dropout_key=1)
    by_risk = gradients(model)
    for parameter in model.parameters():
        assert parameter.grad is not None
        parameter.grad.zero_()
    usual = gradient.add(Batch(source_BS, target_BT, np.arange(2)), dropout_key=1)
    assert found.objective.item() == pytest.approx(usual.objective.item(), rel=1e-12)
    for name, wanted in gradients(model).items():
        torch.testing.assert_close(by_risk[name], wanted)


@pytest.fixture
def candidates(tmp_path: Path, store: TokenStore) -> CandidateStore:
    """Beside each target: itself, worth 1, and its source, worth nothing; the first sentence has none."""
    with candidate_store_written(tmp_path / "candidates") as writer:
        for sentence in range(len(store)):
            target, source = store.target(sentence).tolist(), store.source(sentence).tolist()
            writer.append(*(([target, source], [1.0, 0.0]) if sentence else ([], [])))
    return CandidateStore(tmp_path / "candidates")


def test_steps_make_the_better_candidates_likelier(
    store: TokenStore,
    candidates: CandidateStore,
    make_model: Callable[..., Transformer],
    make_config: Callable[..., TrainingConfig],
) -> None:
    model, config = make_model(dropout=0.0), make_config(batch_tokens=600, peak=1e-2)
    batches = TrainingBatches(store, config, candidates=candidates)
    stepper = Stepper(model, config, arithmetic=CPU, world=World())
    epoch = [batches.batch(step, epoch=0) for step in batches.steps(0)]

    def margin() -> float:
        """Return by how much the better candidates are likelier, a token."""
        total = 0.0
        for batch in epoch:
            assert batch.judged is not None
            with torch.no_grad():
                logits_BTV = model.eval()(batch.source_BS, batch.target_BT) @ model.output_matrix_VD.T
            log_p_BT = logits_BTV.log_softmax(-1).gather(-1, batch.target_BT[:, :, None])[:, :, 0]
            log_p_B = (log_p_BT * (batch.target_BT != 0)).sum(dim=1)[-batch.judged.pair_U.numel() :]
            total += float((log_p_B * (2 * batch.judged.reward_U - 1)).sum())
        return total

    before = margin()
    for step in range(12):
        stepper.take(step + 1, [epoch[step % len(epoch)]])
    assert margin() > before + 10 * math.log(2)


def test_batches_hold_every_pair_once_and_after_it_its_candidates(
    store: TokenStore, candidates: CandidateStore, make_config: Callable[..., TrainingConfig]
) -> None:
    batches = TrainingBatches(store, make_config(batch_tokens=90), candidates=candidates)
    seen: list[int] = []
    for step in batches.steps(2):
        for batch in batches.deal(step, epoch=2, rank=0, ranks=1):
            assert batch.judged is not None
            assert batch.target_BT.size(0) * max(batch.target_BT.size(1), batch.source_BS.size(1)) <= 90
            pairs = len(batch.sentences)
            for row, (pair, reward) in enumerate(
                zip(batch.judged.pair_U.tolist(), batch.judged.reward_U.tolist(), strict=True), start=pairs
            ):
                assert torch.equal(batch.source_BS[row], batch.source_BS[pair])
                wanted = (batch.target_BT if reward else batch.source_BS)[pair]
                assert batch.target_BT[row][batch.target_BT[row] != 0].tolist() == wanted[wanted != 0].tolist()
            assert len(batch.judged.pair_U) == 2 * sum(sentence != 0 for sentence in batch.sentences)
            seen += batch.sentences.tolist()
            assert part_of(batch, 2).judged is None
    assert sorted(seen) == list(range(len(store)))
