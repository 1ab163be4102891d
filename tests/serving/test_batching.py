"""Who is served next: laws of rounds, with no process in sight."""

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from transduce.serving.batching import Unit, WaitingUnits

LOOP = asyncio.new_event_loop()


def unit(tokens: int = 3, *, model: str = "a", deadline: float = 10.0, is_probe: bool = False, deaths: int = 0) -> Unit:
    made = Unit("translate", model, {"beam": 2}, "text", tokens, deadline, LOOP.create_future(), is_probe)
    made.deaths = deaths
    return made


def rounds_of(waiting: WaitingUnits, *, now: float = 0.0) -> list[list[Unit]]:
    rounds: list[list[Unit]] = []
    while len(waiting):
        rounds.append(waiting.next_round(now)[0])
    return rounds


@given(lengths=st.lists(st.tuples(st.integers(1, 60), st.sampled_from("ab")), min_size=1, max_size=40))
def test_rounds_serve_everybody_once_within_the_budget(lengths: list[tuple[int, str]]) -> None:
    waiting = WaitingUnits(most_units=1000, budget=47)
    units = [unit(tokens, model=model) for tokens, model in lengths]
    for own in units:
        waiting.add(own)
    rounds = rounds_of(waiting)
    assert sorted(map(id, units)) == sorted(id(own) for round_ in rounds for own in round_)
    for round_ in rounds:
        assert len({own.kind for own in round_}) == 1
        assert len(round_) == 1 or len(round_) * max(own.tokens for own in round_) <= 47
    # Nobody is passed over for ever: each round serves whoever has waited longest.
    served: set[int] = set()
    for round_ in rounds:
        oldest = next(own for own in units if id(own) not in served)
        assert oldest in round_
        served |= {id(own) for own in round_}


def test_a_round_takes_all_who_fit_and_are_of_one_kind() -> None:
    waiting = WaitingUnits(most_units=100, budget=12)
    units = [unit(3), unit(3, model="b"), unit(7), unit(4), unit(2)]
    for own in units:
        waiting.add(own)
    # 3, then not the other model, not 7 (2 x 7 > 12), but 4 (2 x 4) and 2 (3 x 4).
    assert waiting.next_round(0.0)[0] == [units[0], units[3], units[4]]


def test_who_has_gone_or_is_too_late_is_skipped() -> None:
    waiting = WaitingUnits(most_units=100, budget=100)
    stays, leaves, late = unit(), unit(), unit(deadline=1.0)
    for own in (leaves, late, stays):
        waiting.add(own)
    leaves.future.cancel()
    chosen, gone = waiting.next_round(2.0)
    assert chosen == [stays]
    assert gone == [leaves, late]


def test_probes_go_first_and_take_no_client_s_place() -> None:
    waiting = WaitingUnits(most_units=1, budget=100)
    client, probe = unit(), unit(is_probe=True)
    waiting.add(client)
    assert not waiting.has_room_for(1)
    waiting.add(probe)
    assert rounds_of(waiting) == [[probe], [client]]


def test_who_may_have_killed_a_child_goes_alone() -> None:
    waiting = WaitingUnits(most_units=100, budget=100)
    suspects: list[Any] = [unit(deaths=1), unit(deaths=1)]
    innocent = [unit(), unit()]
    for own in innocent:
        waiting.add(own)
    waiting.put_back(suspects)
    assert rounds_of(waiting) == [[suspects[0]], [suspects[1]], innocent]


def test_the_queue_is_bounded() -> None:
    waiting = WaitingUnits(most_units=3, budget=100)
    assert waiting.has_room_for(64)  # nothing waits: a large request is served, not refused for ever
    waiting.add(unit())
    assert waiting.has_room_for(2)
    assert not waiting.has_room_for(3)


def test_waiting_tokens_are_those_of_whoever_waits() -> None:
    waiting = WaitingUnits(most_units=100, budget=20)
    for number in range(12):
        waiting.add(unit(tokens=3 + number % 5, is_probe=number == 4, deadline=1.0 if number == 7 else 99.0))
    while len(waiting):
        assert waiting.tokens == sum(own.tokens for own in waiting)
        chosen, _ = waiting.next_round(2.0)
        if chosen[0].deaths == 0 and len(chosen) > 1:
            chosen[0].deaths = 1
            waiting.put_back(chosen[:1])
    assert waiting.tokens == 0
    waiting.add(unit())
    waiting.empty()
    assert waiting.tokens == 0
