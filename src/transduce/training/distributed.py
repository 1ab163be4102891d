"""Several ranks that train one model: the only place that reads torchrun's environment.

Each rank runs its share of a step; then all gradients are summed over tokens, counts with them, in one operation, and
every rank divides by the same global count and takes the same step. The model knows nothing of it. A world of one
rank costs nothing. Only rank 0 writes.

A rank that dies or falls behind does not leave the others waiting for ever: they give up with a message, and torchrun
can start all of them again from the newest checkpoint.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
from torch import Tensor, distributed

from transduce.errors import TrainingError
from transduce.training.config import seconds


@dataclass(frozen=True)
class World:
    """The ranks that train together, and which of them this process is."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1
    device: str = "cpu"
    """Where tensors must be for the ranks to exchange them."""
    timeout: str = "30m"

    @property
    def is_main(self) -> bool:
        """Whether this rank is the one that writes."""
        return self.rank == 0

    def sum_(self, tensor: Tensor) -> Tensor:
        """Replace `tensor` by its sum over all ranks, which is the same to the last bit on each of them."""
        if self.size > 1:
            with self._explained("adding up gradients"):
                distributed.all_reduce(tensor)
        return tensor

    def broadcast_(self, tensor: Tensor) -> Tensor:
        """Replace `tensor` by rank 0's."""
        if self.size > 1:
            with self._explained("copying from rank 0"):
                distributed.broadcast(tensor, src=0)
        return tensor

    def broadcast_text(self, text: str) -> str:
        """Return rank 0's text on every rank."""
        if self.size == 1:
            return text
        data = torch.frombuffer(bytearray(text.encode("utf-8") or b" "), dtype=torch.uint8).to(self.device)
        length = self.broadcast_(torch.tensor([data.numel()], device=self.device))
        if not self.is_main:
            data = torch.empty(int(length), dtype=torch.uint8, device=self.device)
        return self.broadcast_(data).cpu().numpy().tobytes().decode("utf-8")

    def any(self, claim: bool) -> bool:
        """Return whether any rank claims it; every rank must ask."""
        return bool(self.sum_(torch.tensor([float(claim)], device=self.device)) > 0)

    def wait_for_all(self) -> None:
        """Return once every rank has come here: what rank 0 wrote before it can be read after it."""
        self.any(False)

    @contextmanager
    def _explained(self, doing: str) -> Iterator[None]:
        try:
            yield
        except RuntimeError as fault:
            raise TrainingError(
                f"Rank {self.rank} of {self.size} lost the others while {doing}: one of them died, or did not answer "
                f"within {self.timeout}. Look for its own message; the newest checkpoint stands, and the same command "
                f"goes on from it. ({str(fault).partition(chr(10))[0]})"
            ) from fault


@contextmanager
def join_world(*, device: str = "cpu", timeout: str = "30m") -> Iterator[World]:
    """Yield the world that torchrun has set up, or a world of one when it has not."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield World()
        return
    world = World(
        rank=int(os.environ["RANK"]),
        size=size,
        local_rank=int(os.environ.get("LOCAL_RANK", "0")),
        local_size=int(os.environ.get("LOCAL_WORLD_SIZE", "1")),
        device=device,
        timeout=timeout,
    )
    if device == "cuda":
        torch.cuda.set_device(world.local_rank)
    with world._explained("meeting them"):
        distributed.init_process_group(
            "nccl" if device == "cuda" else "gloo", timeout=timedelta(seconds=seconds(timeout))
        )
    try:
        yield world
    finally:
        distributed.destroy_process_group()
