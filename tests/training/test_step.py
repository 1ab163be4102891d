import math
from collections.abc import Callable

import pytest
import torch

from transduce.data.batch import Batch
from transduce.data.token_store import TokenStore
from transduce.errors import TrainingError
from transduce.machine import peak_memory
from transduce.model.transformer import Transformer
from transduce.training.arithmetic import Arithmetic
from transduce.training.batches import TrainingBatches
from transduce.training.config import TrainingConfig
from transduce.training.distributed import World
from transduce.training.memory import available_memory, estimated_need, probe
from transduce.training.step import Stepper

MakeModel = Callable[..., Transformer]
MakeConfig = Callable[..., TrainingConfig]


def make_stepper(model: Transformer, config: TrainingConfig, *, precision: str = "float32") -> Stepper:
    arithmetic = Arithmetic(torch.device("cpu"), "bf16" if precision == "bf16" else "float32")
    return Stepper(model, config, arithmetic=arithmetic, world=World())


def take_steps(stepper: Stepper, store: TokenStore, config: TrainingConfig, *, steps: int) -> None:
    batches, step = TrainingBatches(store, config), 0
    while step < steps:
        for sentences in batches.steps(epoch := 0)[: steps - step]:
            step += 1
            stepper.take(step, batches.deal(sentences, epoch=epoch, rank=0, ranks=1))


def test_accumulated_micro_batches_equal_the_whole_batch(
    make_model: MakeModel, make_config: MakeConfig, store: TokenStore
) -> None:
    results = []
    for micro_batch_tokens in (None, 24):
        config = make_config(micro_batch_tokens=micro_batch_tokens, peak=1e-3)
        stepper = make_stepper(make_model(dropout=0.0).double(), config)
        take_steps(stepper, store, config, steps=20)
        results.append(stepper.parameters.values.clone())
    difference = (results[1] - results[0]).abs().max()
    assert 0 < difference < 1e-9  # not 0, for it was another sum: the comparison means something


def test_a_step_divides_by_its_tokens_not_by_its_micro_batches(
    make_model: MakeModel, make_config: MakeConfig, store: TokenStore
) -> None:
    config = make_config()
    stepper = make_stepper(make_model(dropout=0.0).double(), config)
    batches = TrainingBatches(store, config)
    parts = [batches.batch(sentences, epoch=0) for sentences in batches.steps(0)[:2]]
    stepper.take(1, parts)
    tokens = sum(int((part.target_BT != part.padding).sum()) for part in parts)
    reference = make_model(dropout=0.0).double()
    total = sum(
        (
            torch.nn.functional.cross_entropy(
                (reference(part.source_BS, part.target_BT) @ reference.output.matrix_VD.T).flatten(0, 1),
                part.target_BT.flatten(),
                ignore_index=0,
                label_smoothing=0.1,
                reduction="sum",
            )
            for part in parts
        ),
        torch.tensor(0.0),
    )
    (total / tokens).backward()
    expected = dict(reference.named_parameters())
    for name, gradient in stepper.parameters.named_parts(stepper.parameters.gradients):
        reference_gradient = expected[name].grad
        assert reference_gradient is not None
        torch.testing.assert_close(gradient, reference_gradient)


def test_clipping_shortens_the_gradient_and_keeps_its_direction(
    make_model: MakeModel, make_config: MakeConfig, store: TokenStore
) -> None:
    gradients, norms = [], []
    for clip_norm in (None, 0.01):
        config = make_config(clip_norm=clip_norm)
        stepper = make_stepper(make_model(dropout=0.0), config)
        batches = TrainingBatches(store, config)
        report = stepper.take(1, [batches.batch(batches.steps(0)[0], epoch=0)])
        gradients.append(stepper.parameters.gradients.clone())
        norms.append(report.gradient_norm)
    assert norms[0] == norms[1] == pytest.approx(gradients[0].norm().item(), rel=1e-5)
    assert gradients[1].norm().item() == pytest.approx(0.01, rel=1e-5)
    torch.testing.assert_close(gradients[1] / gradients[1].norm(), gradients[0] / gradients[0].norm())


def test_dropout_is_drawn_for_the_step_not_from_what_came_before(
    make_model: MakeModel, make_config: MakeConfig, store: TokenStore
) -> None:
    config = make_config(micro_batch_tokens=20)
    results = []
    for noise in (0, 1000):
        stepper = make_stepper(make_model(dropout=0.3), config)
        torch.rand(noise)
        take_steps(stepper, store, config, steps=3)
        results.append(stepper.parameters.values.clone())
    assert torch.equal(results[0], results[1])
    other_seed = make_stepper(make_model(dropout=0.3), make_config(micro_batch_tokens=20, seed=2))
    take_steps(other_seed, store, config, steps=3)
    assert not torch.equal(results[0], other_seed.parameters.values)


def test_bf16_keeps_master_weights_and_follows_float32(
    make_model: MakeModel, make_config: MakeConfig, store: TokenStore
) -> None:
    config, gradients = make_config(), []
    for precision in ("float32", "bf16"):
        stepper = make_stepper(make_model(dropout=0.0), config, precision=precision)
        take_steps(stepper, store, config, steps=1)
        assert {parameter.dtype for parameter in stepper.model.parameters()} == {torch.float32}
        assert stepper.optimizer.mean.dtype == torch.float32
        gradients.append(stepper.parameters.gradients.clone())
    # A bf16 number is right to 1 part in 512; a gradient has gone through some thirty roundings of that size.
    assert 0 < (gradients[1] - gradients[0]).norm() < 0.05 * gradients[0].norm()


def test_a_step_that_is_not_finite_is_not_applied_and_names_its_batch(
    make_model: MakeModel, make_config: MakeConfig, store: TokenStore
) -> None:
    config = make_config(micro_batch_tokens=20)
    model = make_model(dropout=0.0)
    stepper = make_stepper(model, config)
    batches = TrainingBatches(store, config)
    parts = list(batches.deal(batches.steps(0)[0], epoch=0, rank=0, ranks=1))
    token = int(parts[1].source_BS[0, 0])
    others = [part for part in parts if token not in part.source_BS and token not in part.target_BT]
    parts = [*others, parts[1]]
    with torch.no_grad():
        model.embeddings.source_VD[token] = math.inf
    before, mean = stepper.parameters.values.clone(), stepper.optimizer.mean.clone()
    with pytest.raises(TrainingError) as caught:
        stepper.take(7, parts)
    message = str(caught.value)
    assert "step 7 is not finite" in message
    assert "not applied" in message
    assert "training.clip_norm" in message
    assert str(int(parts[-1].sentences[0])) in message
    assert torch.equal(stepper.parameters.values, before)
    assert torch.equal(stepper.optimizer.mean, mean)


def largest(store: TokenStore, config: TrainingConfig) -> Batch:
    return TrainingBatches(store, config).largest(epoch=0, ranks=1)


def test_the_probe_leaves_no_trace(make_model: MakeModel, make_config: MakeConfig, store: TokenStore) -> None:
    config = make_config(batch_tokens=400)
    stepper = make_stepper(make_model(), config)
    before = stepper.parameters.values.clone()
    probe(stepper, largest(store, config))
    assert torch.equal(stepper.parameters.values, before)
    assert not stepper.parameters.gradients_and_tail.any()


def test_the_estimate_of_a_part_tells_the_whole(
    make_model: MakeModel, make_config: MakeConfig, store: TokenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make_config(batch_tokens=600)
    stepper, batch = make_stepper(make_model(), config), largest(store, config)
    monkeypatch.setattr("transduce.training.memory.LOGITS_AT_ONCE", 0)
    monkeypatch.setattr("transduce.training.memory._BACKWARD_AND_ALLOCATOR", 1.0)
    monkeypatch.setattr("transduce.backpropagation.packing.ROWS_AT_LEAST", 1)  # idle rows weigh in so small a batch
    assert batch.target_BT.size(0) >= 32
    assert estimated_need(stepper, batch) == pytest.approx(stepper.gradient.kept_for_backward(batch), rel=0.1)


def test_too_little_memory_is_told_with_advice(
    make_model: MakeModel, make_config: MakeConfig, store: TokenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make_config(batch_tokens=600)
    stepper = make_stepper(make_model(), config)
    monkeypatch.setattr("transduce.training.memory.available_memory", lambda: 1_000_000)
    with pytest.raises(TrainingError, match=r"largest batch, \d+ sentences .* Halve training\.micro_batch_tokens"):
        probe(stepper, largest(store, config))


def test_an_allocation_that_fails_is_told_with_advice(
    make_model: MakeModel, make_config: MakeConfig, store: TokenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make_config()
    stepper = make_stepper(make_model(), config)

    def run_out(batch: Batch) -> None:
        torch.empty(1 << 60)

    monkeypatch.setattr(stepper, "accumulate", run_out)
    with pytest.raises(TrainingError, match="Memory ran out on the largest batch"):
        probe(stepper, largest(store, config))


def test_memory_is_counted_in_bytes() -> None:
    peak, available = peak_memory(), available_memory()
    assert peak is None or 50e6 < peak < 1e12
    assert available is None or 1e6 < available < 1e14
