"""The gradient of a micro-batch: by torch's autograd, or by the handwritten backward pass of `backpropagation/`.

    device    network                                           gradient        measured (docs/decisions/0007)
    CPU       those that `backpropagation.handwritten` takes    handwritten     about 1.1 times as fast as autograd
    CPU       the rest                                          autograd
    GPU       all                                               autograd, with torch's fused kernels

Both add the sum over the tokens of the batch to the parameters' gradients, and both compute the equations of `model/`.
"""

from abc import ABC, abstractmethod

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from transduce.backpropagation import HandwrittenLanguageModel, HandwrittenNetwork, handwritten
from transduce.backpropagation.dropout import KeyedDropout
from transduce.backpropagation.pullback import kept_bytes
from transduce.data.batch import Batch
from transduce.networks.network import Network
from transduce.training.arithmetic import Arithmetic
from transduce.training.chunked_loss import LogitsBuffer
from transduce.training.config import TrainingConfig
from transduce.training.loss import Loss, token_loss, token_loss_and_gradient
from transduce.training.smoothing import Smoothing


class Gradient(ABC):
    """Adds the gradients of micro-batches to those of the model's parameters."""

    def __init__(self, model: Network, config: TrainingConfig, *, arithmetic: Arithmetic) -> None:
        self.model, self.arithmetic = model, arithmetic
        self.smoothing = Smoothing.of(
            config.label_smoothing, vocabulary_size=model.config.vocabulary_size, convention=config.smoothing
        )

    @abstractmethod
    def refresh(self) -> None:
        """Read the current weights; they must not change until the next call."""

    @abstractmethod
    def add(self, batch: Batch, *, dropout_key: int) -> Loss:
        """Run one micro-batch forward and backward, with the dropout of this key."""

    @abstractmethod
    def kept_for_backward(self, batch: Batch) -> int:
        """Run a batch and return the bytes that its backward pass keeps, without the weights."""


def gradient_of(model: Network, config: TrainingConfig, *, arithmetic: Arithmetic) -> Gradient:
    """Return the fastest gradient of the table above; the choice depends on model and device, not on timings."""
    network = handwritten(model, dtype=arithmetic.product_dtype or model.output.matrix_VD.dtype)
    if network is not None:
        return HandwrittenGradient(network, config, arithmetic=arithmetic)
    return AutogradGradient(model, config, arithmetic=arithmetic)


class AutogradGradient(Gradient):
    """The gradient that torch's autograd computes."""

    def refresh(self) -> None:
        """Do nothing: autograd reads the weights in every pass."""

    def add(self, batch: Batch, *, dropout_key: int) -> Loss:
        """Run one micro-batch forward and backward."""
        torch.manual_seed(dropout_key)
        with self.arithmetic.forward_pass():
            hidden_BTD = self.model(batch.source_BS, batch.target_BT)
        loss = token_loss(
            hidden_BTD,
            self.model.output,
            batch.target_BT,
            smoothing=self.smoothing,
            product_dtype=self.arithmetic.product_dtype,
            padding=self.model.tokens.padding,
        )
        loss.objective.backward()
        return loss

    def kept_for_backward(self, batch: Batch) -> int:
        """Run a batch and count the tensors that autograd saves."""
        weights = {parameter.untyped_storage().data_ptr() for parameter in self.model.parameters()}
        kept: dict[int, int] = {}

        def count(tensor: Tensor) -> Tensor:
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in weights:
                kept[storage.data_ptr()] = storage.nbytes()
            return tensor

        with saved_tensors_hooks(count, lambda tensor: tensor):
            self.add(batch, dropout_key=0)
        return sum(kept.values())


class HandwrittenGradient(Gradient):
    """The gradient by the handwritten backward pass of `backpropagation/`."""

    def __init__(
        self,
        network: HandwrittenNetwork | HandwrittenLanguageModel,
        config: TrainingConfig,
        *,
        arithmetic: Arithmetic,
    ) -> None:
        super().__init__(network.model, config, arithmetic=arithmetic)
        self.network, self.dtype = network, network.dtype
        self.buffer = LogitsBuffer()

    def refresh(self) -> None:
        """Round the weights once for all micro-batches of a step."""
        self.network.refresh()

    @torch.no_grad()
    def add(self, batch: Batch, *, dropout_key: int) -> Loss:
        """Run one micro-batch forward and backward."""
        forward = self.network.forward(batch.source_BS, batch.target_BT, dropout=KeyedDropout(dropout_key))
        loss, gradient_ND = token_loss_and_gradient(
            forward.padded_ND,
            self.model.output,
            batch.target_BT[batch.target_BT != self.model.tokens.padding],
            smoothing=self.smoothing,
            product_dtype=self.dtype,
            buffer=self.buffer,
        )
        forward.backward(gradient_ND)
        return loss

    def kept_for_backward(self, batch: Batch) -> int:
        """Run a batch forward and count the tensors that its pullbacks hold."""
        forward = self.network.forward(batch.source_BS, batch.target_BT, dropout=KeyedDropout(0))
        return kept_bytes(forward.backward)
