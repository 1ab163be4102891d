"""Training one model in several processes ("ranks"). No other module reads torchrun's environment variables.

Each rank runs its share of a step. One all-reduce then sums the gradients and the counts over the ranks; every rank
divides by the same number of tokens and takes the same step. Only rank 0 writes files. With one rank, nothing is
exchanged.

If a rank dies or stops responding, the others raise a TrainingError after a timeout, and torchrun can restart all of
them from the newest checkpoint. Work that one rank does for all, such as preparing a corpus, can take hours. So the
others then watch the heartbeat of that rank, and raise an error only when it stops.
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
_HEARTBEATS_PER_TIMEOUT = 10
_MEETING_INTERVAL = 0.02
_NCCL_ALARM = "exception_dump"
"""The key that NCCL's watchdog writes to torchrun's store, without a prefix, when a rank fails. A rank that finds it
exits, so it must not survive a restart.
"""


@dataclass(frozen=True)
class World:
    """The ranks that train together, and which of them this process is."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1
    device: str = "cpu"
    """The device of tensors that the ranks exchange."""
    timeout: str = "10m"
    store: Store | None = None
    """A key-value store that each rank can read and write at any time, without a collective operation."""

    @property
    def is_main(self) -> bool:
        """Whether this is rank 0, which writes the files."""
        return self.rank == 0

    def sum_(self, tensor: Tensor) -> Tensor:
        """Replace `tensor` by its sum over all ranks, bit for bit the same on each."""
        if self.size > 1:
            with self._explained("adding up gradients"):
                distributed.all_reduce(tensor)
        return tensor

    def broadcast_(self, tensor: Tensor) -> Tensor:
        """Replace `tensor` by that of rank 0."""
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
        """Return the `text` of one rank on every rank."""
        data = torch.frombuffer(bytearray(text.encode("utf-8") + b"\n"), dtype=torch.uint8).to(self.device)
        with self._explained(f"copying from rank {rank}"):
            length = torch.tensor([data.numel()], device=self.device)
            distributed.broadcast(length, src=rank)
            if self.rank != rank:
                data = torch.empty(int(length), dtype=torch.uint8, device=self.device)
            distributed.broadcast(data, src=rank)
        return data.cpu().numpy().tobytes().decode("utf-8")[:-1]

    def any(self, claim: bool) -> bool:
        """Return whether the claim is true on any rank; every rank must call it."""
        return bool(self.sum_(torch.tensor([float(claim)], device=self.device)) > 0)

    def wait_for_all(self) -> None:
        """Block until every rank has called this, so that all can read what rank 0 wrote before."""
        self.any(False)

    def in_turns(self, work: Callable[[], Result], *, doing: str) -> Result:
        """Call `work` when it is this rank's turn, and return its result.

        The turns are: rank 0, then the first rank of every other machine, then the rest. If the machines share a disk,
        ranks after rank 0 find the work done. A turn has no time limit; the waiting ranks raise TrainingError when no
        heartbeat has come for `timeout`.
        """
        if self.size == 1:
            return work()
        turn = 0 if self.is_main else 1 if self.local_rank == 0 else _TURNS - 1
        counters = _SharedCounters(self.store, doing)
        counters.add(f"members {turn}", 1)
        self.wait_for_all()
        for current in range(_TURNS):
            if current == turn:
                with counters.heartbeat(seconds(self.timeout) / _HEARTBEATS_PER_TIMEOUT):
                    result = work()
                counters.add(f"done {turn}", 1)
            else:
                self._await_turn(counters, current, doing=doing)
        return result

    def _await_turn(self, counters: "_SharedCounters", turn: int, *, doing: str) -> None:
        """Block until all ranks of a turn are done; raise TrainingError if one fails or their heartbeat stops."""
        watcher = _TurnWatcher(counters, turn, interval=min(0.1, seconds(self.timeout) / _HEARTBEATS_PER_TIMEOUT))
        watcher.start()
        while watcher.is_alive():
            watcher.join(0.1)
            if time.monotonic() - watcher.changed_at > seconds(self.timeout):
                raise TrainingError(
                    f"Rank {self.rank} of {self.size} waited for a rank that is {doing}, and has had no sign of life "
                    f"from it for {self.timeout}. Check its machine, then run the same command again to resume."
                )
        if watcher.fault is not None:
            raise TrainingError(
                f"Rank {self.rank} of {self.size} stopped because another rank failed while {doing}. See the error "
                f"message of that rank. ({watcher.fault})"
            )

    @contextmanager
    def _explained(self, doing: str) -> Iterator[None]:
        try:
            yield
        except RuntimeError as fault:
            raise TrainingError(
                f"Rank {self.rank} of {self.size} lost the others while {doing}: one of them died, or did not answer "
                f"within {self.timeout}. See the error message of that rank. The newest checkpoint is intact, and the "
                f"same command resumes from it. ({str(fault).partition(chr(10))[0]})"
            ) from fault


class _SharedCounters:
    """Counters in the store that all ranks share; `name` is the prefix of their keys."""

    def __init__(self, store: Store | None, name: str) -> None:
        assert store is not None, "a world of several ranks has a store"
        self.store, self.name = store, name

    def add(self, counter: str, amount: int) -> int:
        """Add to a counter and return its new value."""
        return int(self.store.add(f"{self.name}/{counter}", amount))

    @contextmanager
    def heartbeat(self, interval: float) -> Iterator[None]:
        """Count heartbeats while the block runs; count a failure if it raises."""
        is_over = threading.Event()

        def beat() -> None:
            with contextlib.suppress(RuntimeError):  # the store is gone: the next collective operation reports it
                while not is_over.wait(interval):
                    self.add("heartbeat", 1)

        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        except BaseException:
            with contextlib.suppress(RuntimeError):
                self.add("failed", 1)
            raise
        finally:
            is_over.set()
            thread.join()


class _TurnWatcher(threading.Thread):
    """A thread that waits for the ranks of a turn and notes when their counters last changed.

    It is a thread of its own because a call to the store blocks if the machine of the store stops responding.
    """

    def __init__(self, counters: _SharedCounters, turn: int, *, interval: float) -> None:
        super().__init__(daemon=True)
        self.counters, self.turn, self.interval = counters, turn, interval
        self.changed_at = time.monotonic()
        self.fault: str | None = None

    def run(self) -> None:
        """Poll the counters until the turn is over or one of its ranks has failed."""
        last = None
        try:
            while (done := self.counters.add(f"done {self.turn}", 0)) < self.counters.add(f"members {self.turn}", 0):
                if self.counters.add("failed", 0):
                    self.fault = "it reported the failure"
                    return
                heartbeats = self.counters.add("heartbeat", 0)
                if (done, heartbeats) != last:
                    last, self.changed_at = (done, heartbeats), time.monotonic()
                time.sleep(self.interval)
        except RuntimeError as fault:
            self.fault = str(fault).partition("\n")[0]


class _RankMeeting:
    """Gives the ranks of one attempt an unused part of torchrun's store.

    torchrun keeps its store over restarts, and ranks on several machines may see different numbers of restarts. A
    crashed rank leaves stale addresses and counters in the store, which the next attempt must not read. So rank 0
    announces a meeting under a random name. Every other rank signs the newest announcement with a random name of its
    own. When all have signed, rank 0 writes the list of signatures, and a rank that finds its own there has joined.
    """

    def __init__(self, store: Store, rank: int, size: int) -> None:
        self.store, self.rank, self.size = store, rank, size
        self.own = uuid.uuid4().hex

    def meet(self, patience: float) -> Store:
        """Return a part of the store that only the ranks of this attempt use."""
        deadline = time.monotonic() + patience
        if self.rank == 0:
            self.store.set("meeting", self.own)
        while (meeting := self._called() if self.rank == 0 else self._signed()) is None:
            if time.monotonic() > deadline:
                raise RuntimeError("not all ranks joined in time")
            time.sleep(_MEETING_INTERVAL)
        return PrefixStore(f"meeting {meeting}", self.store)

    def _called(self) -> str | None:
        """On rank 0: if every other rank has signed, write the list and return the meeting, else return None."""
        signed = [self._read(f"{self.own}/{rank}") for rank in range(1, self.size)]
        if None in signed:
            return None
        self.store.delete_key(_NCCL_ALARM)
        self.store.set(f"{self.own}/list", " ".join(str(name) for name in signed))
        return self.own

    def _signed(self) -> str | None:
        """On other ranks: sign the newest meeting; return it if its list names this process, else return None."""
        meeting = self._read("meeting")
        if meeting is None:
            return None
        self.store.set(f"{meeting}/{self.rank}", self.own)
        return meeting if self.own in (self._read(f"{meeting}/list") or "").split() else None

    def _read(self, key: str) -> str | None:
        return bytes(self.store.get(key)).decode("ascii") if self.store.check([key]) else None


@contextmanager
def join_world(*, device: str = "cpu", timeout: str = "10m") -> Iterator[World]:
    """Yield the ranks that torchrun has started, connected to each other, or a world of one rank without torchrun."""
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
        store = _RankMeeting(store, alone.rank, size).meet(seconds(timeout))
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
