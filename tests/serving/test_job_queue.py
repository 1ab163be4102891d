"""The job queue: laws of rounds, without any process."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from transduce.serving.job_queue import Job, JobQueue, QueuedJob

LOOP = asyncio.new_event_loop()


def queued_job(
    tokens: int = 3, *, model: str = "a", deadline: float = 10.0, is_probe: bool = False, crashes: int = 0
) -> QueuedJob:
    job = Job("translate", model, "text", tokens, {"beam": 2})
    return QueuedJob(job, deadline, LOOP.create_future(), is_probe, crashes)


def queue_of(*jobs: QueuedJob, budget: int = 100) -> JobQueue:
    queue = JobQueue(most_jobs=1000, budget=budget)
    for queued in jobs:
        queue.add(queued)
    return queue


def rounds_of(queue: JobQueue) -> list[list[QueuedJob]]:
    rounds: list[list[QueuedJob]] = []
    while len(queue):
        rounds.append(queue.next_round(0.0)[0])
    return rounds


@given(lengths=st.lists(st.tuples(st.integers(1, 60), st.sampled_from("ab")), min_size=1, max_size=40))
def test_rounds_hold_each_job_once_within_the_budget(lengths: list[tuple[int, str]]) -> None:
    jobs = [queued_job(tokens, model=model) for tokens, model in lengths]
    rounds = rounds_of(queue_of(*jobs, budget=47))
    assert sorted(map(id, jobs)) == sorted(id(queued) for round_ in rounds for queued in round_)
    for round_ in rounds:
        assert len({queued.round_key for queued in round_}) == 1
        assert len(round_) == 1 or len(round_) * max(queued.job.tokens for queued in round_) <= 47
    # No job waits for ever: each round holds the job that has waited longest.
    served: set[int] = set()
    for round_ in rounds:
        oldest = next(queued for queued in jobs if id(queued) not in served)
        assert oldest in round_
        served |= {id(queued) for queued in round_}


def test_a_round_takes_every_job_that_fits_and_has_the_same_key() -> None:
    jobs = [queued_job(3), queued_job(3, model="b"), queued_job(7), queued_job(4), queued_job(2)]
    # 3, then not the other model, not 7 (2 x 7 > 12), but 4 (2 x 4) and 2 (3 x 4).
    assert queue_of(*jobs, budget=12).next_round(0.0)[0] == [jobs[0], jobs[3], jobs[4]]


def test_cancelled_and_late_jobs_are_skipped() -> None:
    waiting, cancelled, late = queued_job(), queued_job(), queued_job(deadline=1.0)
    queue = queue_of(cancelled, late, waiting)
    cancelled.future.cancel()
    chosen, unwanted = queue.next_round(2.0)
    assert chosen == [waiting]
    assert unwanted == [cancelled, late]


def test_probes_go_first_and_take_no_client_s_place() -> None:
    queue = JobQueue(most_jobs=1, budget=100)
    client, probe = queued_job(), queued_job(is_probe=True)
    queue.add(client)
    assert not queue.has_room_for(1)
    queue.add(probe)
    assert rounds_of(queue) == [[probe], [client]]


def test_a_job_that_may_have_crashed_a_child_is_a_round_by_itself() -> None:
    suspects = [queued_job(crashes=1), queued_job(crashes=1)]
    others = [queued_job(), queued_job()]
    queue = queue_of(*others)
    queue.put_back(suspects)
    assert rounds_of(queue) == [[suspects[0]], [suspects[1]], others]


def test_the_queue_is_bounded() -> None:
    queue = JobQueue(most_jobs=3, budget=100)
    assert queue.has_room_for(64), "an empty queue takes a large request, which would otherwise never be served"
    queue.add(queued_job())
    assert queue.has_room_for(2)
    assert not queue.has_room_for(3)


def test_the_running_total_of_tokens_is_that_of_the_jobs_in_the_queue() -> None:
    queue = queue_of(
        *(
            queued_job(3 + number % 5, is_probe=number == 4, deadline=1.0 if number == 7 else 99.0)
            for number in range(12)
        ),
        budget=20,
    )
    while len(queue):
        assert queue.tokens == sum(queued.job.tokens for queued in queue)
        chosen, _ = queue.next_round(2.0)
        if chosen[0].crashes == 0 and len(chosen) > 1:
            chosen[0].crashes = 1
            queue.put_back(chosen[:1])
    assert queue.tokens == 0
    queue.add(queued_job())
    queue.empty()
    assert queue.tokens == 0
