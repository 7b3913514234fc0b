"""What is settled at a glance: just what following each send finds in order, right or wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccl.collective import all_gather, all_reduce, custom, reduce_scatter
from ccl.errors import CclError, ScheduleError
from ccl.plans import Order, Schedule, Send
from ccl.problem import Problem
from ccl.timeline import among
from ccl.topology import device
from ccl.verify import schedule as by_send
from ccl.verify import verify
from ccl.verify.times import Clock
from ccl.verify.vectorised import settle
from tests.ccl.clusters import MB, mesh, ring_all_gather, ring_all_reduce, ring_reduce_scatter, star
from tests.ccl.planner import Planner
from tests.ccl.test_simulate_properties import instance
from tests.ccl.test_verify_mutations import MINIMAL


def settled(problem: Problem, schedule: Schedule) -> list[bool]:
    """Return which chunks are certain."""
    order = Order(schedule)
    return settle(problem, schedule.duration, order, Clock(problem, schedule, order)).tolist()


def fault(problem: Problem, schedule: Schedule) -> str | None:
    try:
        verify(problem, schedule)
    except ScheduleError as error:
        return f"{error.where} {error.time} {error}"
    return None


def both(problem: Problem, schedule: Schedule, monkeypatch: pytest.MonkeyPatch) -> str | None:
    """Return what is wrong, after claiming that it is the same with nothing settled at a glance."""
    found = fault(problem, schedule)
    with monkeypatch.context() as patch:
        none = np.zeros(len(problem.collective.chunks), dtype=bool)
        patch.setattr(by_send, "settle", lambda *_: none)
        assert fault(problem, schedule) == found
    return found


def mutated(problem: Problem, schedule: Schedule, dice: np.random.Generator) -> Schedule | None:
    """Lose, repeat, delay, redirect a send or give it another chunk; None if it cannot be said."""
    sends = list(schedule.sends)
    place = int(dice.integers(len(sends)))
    send = sends.pop(place)
    names = [each.name for each in problem.topology.devices]
    later = min(schedule.horizon - 1, send.epoch + int(dice.integers(1, 4)))
    epochs = range(schedule.horizon)
    instead = [
        (),
        (send, replace(send, epoch=later)),
        (replace(send, epoch=later),),
        (replace(send, epoch=int(dice.choice(epochs))),),
        (replace(send, dst=str(dice.choice(names))),),
        (replace(send, src=str(dice.choice(names))),),
        (replace(send, chunk=int(dice.integers(len(problem.collective.chunks)))),),
    ][int(dice.integers(7))]
    try:
        return replace(schedule, sends=(*sends[:place], *instead, *sends[place:]))
    except CclError:
        return None


@pytest.mark.parametrize("seed", range(80))
def test_random_plans_and_what_becomes_of_them_are_judged_alike(seed, monkeypatch):
    problem, tasks, epoch_duration = instance(seed, limited=bool(seed % 4 == 3))
    schedule = Planner(problem, epoch_duration).plan(tasks)
    dice = np.random.default_rng(seed)

    assert both(problem, schedule, monkeypatch) is None
    for _ in range(25 if schedule.sends else 0):
        other = mutated(problem, schedule, dice)
        if other is not None:
            both(problem, other, monkeypatch)


@pytest.mark.parametrize("name", MINIMAL)
def test_minimal_schedules_and_what_becomes_of_them_are_judged_alike(name, monkeypatch):
    """Of these no mutation is right; two one after the other may be."""
    problem, schedule = MINIMAL[name]
    dice = np.random.default_rng(0)
    wrong = 0
    for _ in range(120):
        other: Schedule | None = schedule
        for _ in range(int(dice.integers(1, 3))):
            other = other and mutated(problem, other, dice)
        wrong += other is not None and both(problem, other, monkeypatch) is not None
    assert wrong > 40


@pytest.mark.parametrize("made", [ring_all_gather, ring_reduce_scatter, ring_all_reduce])
@pytest.mark.parametrize("alpha", [0.0, 0.7])
def test_rings_are_settled(made, alpha):
    """So that it is fast where plans are large; tau is 20 us of bytes and the latency."""
    problem, schedule = made(mesh(4, alpha=alpha), epoch_duration=20 + alpha)

    assert all(settled(problem, schedule))


def test_what_is_not_certain_is_left_open():
    """Parts, names, sums that meet by exchange, memory that cannot add, and what is too late."""
    topology = mesh(2)
    exchange = Problem(topology, all_reduce(2, 2 * MB, chunks=1))
    sends = [Send(0, k, "g0", "g1") for k in (0, 1)] + [Send(0, k, "g1", "g0") for k in (0, 1)]
    assert settled(exchange, Schedule(tuple(sends), 40.0, 1)) == [False, False]

    whole = Problem(topology, all_gather(2, 2 * MB))
    sends = [Send(0, 0, "g0", "g1"), Send(0, 1, "g1", "g0")]
    assert settled(whole, Schedule(tuple(sends), 20.0, 1)) == [True, True]
    assert settled(whole, Schedule(tuple(sends[:1]), 20.0, 1)) == [True, False]
    slow = Problem(mesh(2, alpha=5.0), all_gather(2, 2 * MB))
    assert settled(slow, Schedule(tuple(sends), 20.0, 1)) == [False, False]

    parts = [replace(sends[0], fraction=0.5)] * 2
    assert settled(whole, Schedule((*parts, sends[1]), 20.0, 1)) == [False, True]

    adding = Problem(topology, reduce_scatter(2, 2 * MB))
    sends = [Send(0, 1, "g0", "g1"), Send(0, 0, "g1", "g0")]
    assert settled(adding, Schedule(tuple(sends), 20.0, 1)) == [True, True]
    named = replace(sends[0], terms=frozenset({0}))
    assert settled(adding, Schedule((named, sends[1]), 20.0, 1)) == [True, False]


def test_a_device_that_cannot_copy_sends_once():
    topology = mesh(3)
    poor = replace(topology, devices=(*topology.devices[:2], device("gpu", "g2", copies=False)))
    chunk = replace(all_gather(3, 3 * MB).chunks[2], destinations=(0, 1))
    problem = Problem(poor, custom(3, [chunk]))
    twice = (Send(0, 0, "g2", "g0"), Send(0, 0, "g2", "g1"))
    passed = (Send(0, 0, "g2", "g0"), Send(1, 0, "g0", "g1"))

    assert settled(problem, Schedule(twice, 20.0, 2)) == [False]
    assert settled(problem, Schedule(passed, 20.0, 2)) == [True]


def test_sums_are_added_up_where_devices_add():
    """The contributions of g1 and g2 meet in g0, which cannot add; then each goes by itself."""
    topology = mesh(3)
    poor = replace(topology, devices=(device("gpu", "g0", reduces=False), *topology.devices[1:]))
    chunk = replace(reduce_scatter(3, 3 * MB).chunks[2], destinations=(2,))
    problem = Problem(poor, custom(3, [chunk]))
    met = (Send(0, 0, "g1", "g0"), Send(1, 0, "g0", "g2"))
    apart = (Send(0, 0, "g1", "g2"), Send(0, 0, "g0", "g2"))

    assert settled(problem, Schedule(met, 20.0, 2)) == [False]
    assert settled(problem, Schedule(apart, 20.0, 2)) == [True]


def test_a_sum_on_the_path_is_followed():
    """What meets in a switch is one arrival, of which no single send has the time."""
    problem = Problem(star(3, reduces=True), reduce_scatter(3, 3 * MB))
    sends = tuple(
        Send(k, chunk, f"g{(chunk + by) % 3}", f"g{chunk}", ("s",))
        for k, chunk in enumerate(range(3))
        for by in (1, 2)
    )

    assert settled(problem, Schedule(sends, 20.0, 3)) == [False, False, False]
    verify(problem, Schedule(sends, 20.0, 3))


@given(
    st.lists(st.integers(-5, 5) | st.integers(-(2**62), 2**62)),
    st.lists(st.integers(-5, 5) | st.integers(-(2**62), 2**62)),
)
def test_what_is_among_others_is_what_numpy_finds(values, others):
    found = among(*(np.array(each, dtype=np.int64) for each in (values, others)))

    assert found.tolist() == [value in others for value in values]
