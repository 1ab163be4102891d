"""Several ranks that train one model: the only place that reads torchrun's environment.

Each rank runs its share of a step; then all gradients are summed over tokens, counts with them, in one operation, and
every rank divides by the same global count and takes the same step. The model knows nothing of it. A world of one
rank costs nothing. Only rank 0 writes.

A rank that dies or falls behind does not leave the others waiting for ever: they give up with a message, and torchrun
can start all of them again from the newest checkpoint. Work that one rank does for all, such as preparing a corpus, may
take hours: there the others listen for its pulse instead, and give up only when that stops.
"""

import contextlib
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TypeVar

import torch
from torch import Tensor, distributed
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from transduce.errors import TrainingError
from transduce.training.config import seconds

Result = TypeVar("Result")
_TURNS = 3
_PULSES_PER_TIMEOUT = 10
_ROLL_CALL_INTERVAL = 0.02
_NCCL_ALARM = "exception_dump"
"""What NCCL's watchdog writes into torchrun's own store, past all prefixes, when a rank fails; it ends who reads it."""


@dataclass(frozen=True)
class World:
    """The ranks that train together, and which of them this process is."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1
    device: str = "cpu"
    """Where tensors must be for the ranks to exchange them."""
    timeout: str = "10m"
    store: Store | None = None
    """A small table that all ranks read and write, each on its own, without the others taking part."""

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
        return text if self.size == 1 else self._text_of(0, text)

    def gather_texts(self, text: str) -> list[str]:
        """Return every rank's text on every rank, in the order of ranks."""
        return [text] if self.size == 1 else [self._text_of(rank, text) for rank in range(self.size)]

    def _text_of(self, rank: int, text: str) -> str:
        """Return the text of one rank, whose own `text` counts; the others' does not."""
        data = torch.frombuffer(bytearray(text.encode("utf-8") + b"\n"), dtype=torch.uint8).to(self.device)
        with self._explained(f"copying from rank {rank}"):
            length = torch.tensor([data.numel()], device=self.device)
            distributed.broadcast(length, src=rank)
            if self.rank != rank:
                data = torch.empty(int(length), dtype=torch.uint8, device=self.device)
            distributed.broadcast(data, src=rank)
        return data.cpu().numpy().tobytes().decode("utf-8")[:-1]

    def any(self, claim: bool) -> bool:
        """Return whether any rank claims it; every rank must ask."""
        return bool(self.sum_(torch.tensor([float(claim)], device=self.device)) > 0)

    def wait_for_all(self) -> None:
        """Return once every rank has come here: what rank 0 wrote before it can be read after it."""
        self.any(False)

    def in_turns(self, work: Callable[[], Result], *, doing: str) -> Result:
        """Return what `work` gives on this rank, once it is this rank's turn.

        Rank 0 works first, then the first rank of each other machine, then the rest: where they share a disk, all but
        rank 0 find everything done.

        It may take as long as it needs. Those who wait give up when nobody who works has been heard of for `timeout`.
        """
        if self.size == 1:
            return work()
        turn = 0 if self.is_main else 1 if self.local_rank == 0 else _TURNS - 1
        table = _Table(self.store, doing)
        table.add(f"members {turn}", 1)
        self.wait_for_all()
        for now in range(_TURNS):
            if now == turn:
                with table.pulse(seconds(self.timeout) / _PULSES_PER_TIMEOUT):
                    result = work()
                table.add(f"done {turn}", 1)
            else:
                self._await_turn(table, now, doing=doing)
        return result

    def _await_turn(self, table: "_Table", turn: int, *, doing: str) -> None:
        """Return when all ranks of a turn are done; give up when they are silent for too long, or one failed."""
        listener = _Listener(table, turn, interval=min(0.1, seconds(self.timeout) / _PULSES_PER_TIMEOUT))
        listener.start()
        while listener.is_alive():
            listener.join(0.1)
            if time.monotonic() - listener.heard_at > seconds(self.timeout):
                raise TrainingError(
                    f"Rank {self.rank} of {self.size} has waited {self.timeout} for a rank that is {doing} and gives "
                    "no sign of life. Look at its machine; the same command goes on from where it stood."
                )
        if listener.fault is not None:
            raise TrainingError(
                f"Rank {self.rank} of {self.size} gave up, for another failed while {doing}. Look for its own message. "
                f"({listener.fault})"
            )

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


class _Table:
    """Counters that all ranks share, under a name of their own."""

    def __init__(self, store: Store | None, name: str) -> None:
        assert store is not None, "a world of several ranks has a store"
        self.store, self.name = store, name

    def add(self, counter: str, amount: int) -> int:
        """Add to a counter, and return what it is then."""
        return int(self.store.add(f"{self.name}/{counter}", amount))

    @contextmanager
    def pulse(self, interval: float) -> Iterator[None]:
        """Let the others hear that this rank is alive, as long as the block runs; and that it failed, if it does."""
        is_over = threading.Event()

        def beat() -> None:
            with contextlib.suppress(RuntimeError):  # the others are gone, which this rank will notice by itself
                while not is_over.wait(interval):
                    self.add("pulse", 1)

        heart = threading.Thread(target=beat, daemon=True)
        heart.start()
        try:
            yield
        except BaseException:
            with contextlib.suppress(RuntimeError):
                self.add("failed", 1)
            raise
        finally:
            is_over.set()
            heart.join()


class _Listener(threading.Thread):
    """Waits for the ranks of a turn.

    The table itself may be on a machine that answers no more, so the rank waits beside this thread and not for it.
    """

    def __init__(self, table: _Table, turn: int, *, interval: float) -> None:
        super().__init__(daemon=True)
        self.table, self.turn, self.interval = table, turn, interval
        self.heard_at = time.monotonic()
        self.fault: str | None = None

    def run(self) -> None:
        """Listen until the turn is over, or one of its ranks says that it failed."""
        heard = None
        try:
            while (done := self.table.add(f"done {self.turn}", 0)) < self.table.add(f"members {self.turn}", 0):
                if self.table.add("failed", 0):
                    self.fault = "it said so"
                    return
                pulse = self.table.add("pulse", 0)
                if (done, pulse) != heard:
                    heard, self.heard_at = (done, pulse), time.monotonic()
                time.sleep(self.interval)
        except RuntimeError as fault:
            self.fault = str(fault).partition("\n")[0]


class _RollCall:
    """The ranks of this attempt find each other, on a store that remembers those of earlier attempts.

    torchrun keeps its store over all restarts, and does not tell the ranks of several machines the same number of
    restarts. Who died left addresses and counters there, which those who follow must not believe. So rank 0 announces
    a meeting under a name that was never used; every other rank signs the newest announcement with a name of its own;
    rank 0 closes the list, and whoever finds itself on it is among the living.
    """

    def __init__(self, store: Store, rank: int, size: int) -> None:
        self.store, self.rank, self.size = store, rank, size
        self.own = uuid.uuid4().hex

    def meet(self, patience: float) -> Store:
        """Return a part of the store that only the ranks of this attempt have ever seen."""
        deadline = time.monotonic() + patience
        if self.rank == 0:
            self.store.set("meeting", self.own)
        while (meeting := self._called() if self.rank == 0 else self._signed()) is None:
            if time.monotonic() > deadline:
                raise RuntimeError("not all of them came")
            time.sleep(_ROLL_CALL_INTERVAL)
        return PrefixStore(f"meeting {meeting}", self.store)

    def _called(self) -> str | None:
        """Return the meeting once every other rank has signed it, and say so: rank 0's part."""
        signed = [self._read(f"{self.own}/{rank}") for rank in range(1, self.size)]
        if None in signed:
            return None
        self.store.delete_key(_NCCL_ALARM)
        self.store.set(f"{self.own}/list", " ".join(str(name) for name in signed))
        return self.own

    def _signed(self) -> str | None:
        """Return the meeting if its list is closed and names this process; sign it before."""
        meeting = self._read("meeting")
        if meeting is None:
            return None
        self.store.set(f"{meeting}/{self.rank}", self.own)
        return meeting if self.own in (self._read(f"{meeting}/list") or "").split() else None

    def _read(self, key: str) -> str | None:
        return bytes(self.store.get(key)).decode("ascii") if self.store.check([key]) else None


@contextmanager
def join_world(*, device: str = "cpu", timeout: str = "10m") -> Iterator[World]:
    """Yield the world that torchrun has set up, or a world of one when it has not."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield World()
        return
    alone = World(
        rank=int(os.environ["RANK"]),
        size=size,
        local_rank=int(os.environ.get("LOCAL_RANK", "0")),
        local_size=int(os.environ.get("LOCAL_WORLD_SIZE", "1")),
        device=device,
        timeout=timeout,
    )
    if device == "cuda":
        torch.cuda.set_device(alone.local_rank)
    with alone._explained("meeting them"):
        patience = timedelta(seconds=seconds(timeout))
        store, _, _ = next(rendezvous("env://", alone.rank, size, timeout=patience))
        store = _RollCall(store, alone.rank, size).meet(seconds(timeout))
        distributed.init_process_group(
            "nccl" if device == "cuda" else "gloo",
            store=PrefixStore("group", store),
            rank=alone.rank,
            world_size=size,
            timeout=patience,
        )
    try:
        yield replace(alone, store=PrefixStore("transduce", store))
    finally:
        distributed.destroy_process_group()
