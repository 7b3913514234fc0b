"""Makespans taken apart along the critical path. 1 MB takes 20 µs at 50 GB/s."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ccl.collective import Chunk, custom
from ccl.explain import PlanReport, breakdown, report
from ccl.plans import Schedule, Send
from ccl.problem import Problem, Window
from ccl.simulate import simulate
from ccl.timeline import Reason
from ccl.topology import Link, SharedLimit, Topology, device
from tests.ccl.clusters import MB, gpus, line, ring, ring_all_gather, star
from tests.ccl.planner import Planner
from tests.ccl.test_simulate_properties import instance


def test_of_a_ring_it_is_a_latency_and_the_bytes_of_each_round():
    parts = breakdown(report(*ring_all_gather(ring(4, alpha=0.7), epoch_duration=20.7)))

    assert parts.text() == "62.1 µs = alpha 3 × 0.7 µs + bytes 60 µs"


def test_different_latencies_are_added():
    links = Link("g0", "g1", 50, 0.5), Link("g1", "g2", 50, 30)
    problem = Problem(Topology("t", gpus(3), links), custom(3, [Chunk(MB, (0,), (2,))]))
    schedule = Schedule((Send(0, 0, "g0", "g1"), Send(1, 0, "g1", "g2")), 51, 2)

    parts = breakdown(report(problem, schedule))

    assert parts.text() == "70.5 µs = alpha (1 × 0.5 + 1 × 30) µs + bytes 40 µs"


def test_a_link_further_on_hides_a_latency():
    """The second chunk sets out 0.5 µs before its second link is free: of the three latencies on
    the path, 1 µs is seen, those of the first chunk's first link and of the last link."""
    problem = Problem(star(3, alpha=0.5), custom(3, [Chunk(MB, (c,), (2,)) for c in (0, 1)]))
    schedule = Schedule(tuple(Send(0, c, f"g{c}", "g2", ("s",)) for c in (0, 1)), 50, 1)

    parts = breakdown(report(problem, schedule))

    assert (parts.latency, parts.sending) == pytest.approx((1, 40))
    assert parts.text() == "41 µs = alpha 2 × 0.5 µs + bytes 40 µs"


@pytest.mark.parametrize("speeds", [(50, 25), (25, 50)])
def test_a_slow_link_counts_once_wherever_it_is(speeds):
    """40 µs over the slow one, byte by byte on over the other, and 3 µs of latency."""
    links = Link("g0", "s", speeds[0], 1), Link("s", "g1", speeds[1], 2)
    topology = Topology("t", (*gpus(2), device("switch", "s")), links)
    problem = Problem(topology, custom(2, [Chunk(MB, (0,), (1,))]))

    parts = breakdown(report(problem, Schedule((Send(0, 0, "g0", "g1", ("s",)),), 50, 1)))

    assert parts.text() == "43 µs = alpha (1 × 1 + 1 × 2) µs + bytes 40 µs"


def test_what_a_limit_takes_is_told_apart():
    """Two links of 60 GB/s share 60: 6 MB take 100 µs, and the second waits for the first; it
    is the limit's rate, which is the link's own, so nothing is slowed down."""
    links = Link("g0", "g1", 60), Link("g0", "g2", 60)
    limit = SharedLimit("bus", tuple(each.ends for each in links), 60)
    chunks = [Chunk(6 * MB, (0,), (1 + c,)) for c in range(2)]
    problem = Problem(Topology("t", gpus(3), links, (limit,)), custom(3, chunks))

    parts = breakdown(report(problem, Schedule(tuple(
        Send(c, c, "g0", f"g{1 + c}") for c in range(2)), 100, 2)))  # fmt: skip

    assert (parts.sending, parts.slowed, parts.waiting) == pytest.approx((200, 0, 0))


def test_half_the_rate_is_slowing_down():
    """In one epoch of 200 µs each is sure of 30 GB/s: 6 MB take 100 µs of their own, 100 more."""
    links = Link("g0", "g1", 60), Link("g0", "g2", 60)
    limit = SharedLimit("bus", tuple(each.ends for each in links), 60)
    chunks = [Chunk(6 * MB, (0,), (1 + c,)) for c in range(2)]
    problem = Problem(Topology("t", gpus(3), links, (limit,)), custom(3, chunks))
    sends = tuple(Send(0, c, "g0", f"g{1 + c}") for c in range(2))

    parts = breakdown(report(problem, Schedule(sends, 200, 1)))

    assert (parts.sending, parts.slowed, parts.waiting) == pytest.approx((100, 100, 0))
    assert parts.text() == "200 µs = bytes 100 µs + slowed down 100 µs"


def test_what_the_plan_holds_back_is_waiting():
    """To a limited buffer nothing starts before its epoch: 20 µs of waiting, 20 of bytes."""
    cluster = line(2)
    devices = tuple(replace(each, buffer_bytes=2 * MB) for each in cluster.devices)
    problem = Problem(replace(cluster, devices=devices), custom(2, [Chunk(MB, (0,), (1,))]))

    parts = breakdown(report(problem, Schedule((Send(1, 0, "g0", "g1"),), 20, 4)))

    assert parts.text() == "40 µs = bytes 20 µs + waiting 20 µs"


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_the_parts_add_up_to_the_makespan(seed, limited):
    """Whatever the schedule; without limits nothing is slowed down and nothing waits."""
    problem, tasks, epoch_duration = instance(seed, limited=limited)
    schedule = Planner(problem, epoch_duration).plan(tasks)
    timeline = simulate(problem, schedule)

    parts = breakdown(report(problem, schedule, timeline))

    slack = 1e-6 * timeline.makespan
    assert parts.total == pytest.approx(timeline.makespan)
    assert min(parts.sending, parts.latency, parts.slowed, parts.waiting) >= -slack
    if not limited:
        assert parts.slowed == pytest.approx(0, abs=slack)
        assert parts.waiting == pytest.approx(0, abs=slack)


@pytest.mark.parametrize("seed", range(20))
def test_so_they_do_where_the_plan_holds_back(seed):
    """With a window on one link nothing goes as long as it lets nothing through; with limited
    buffers, what goes to them does not start before its epoch. What waits for that is `CLOSED` or
    `PLANNED`, and nothing is negative."""
    problem, tasks, epoch_duration = instance(seed, limited=False)
    schedule = Planner(problem, epoch_duration).plan(tasks)
    topology, ends = problem.topology, problem.topology.links[seed % 2].ends
    window = Window((ends,), 0.0, schedule.duration / 2, 0.5 * (seed % 3))
    devices = tuple(replace(each, buffer_bytes=1e12) for each in topology.devices)
    for held in (
        replace(problem, windows=(window,)),
        replace(problem, topology=replace(topology, devices=devices)),
    ):
        timeline = simulate(held, schedule)
        told = PlanReport(held, schedule, timeline)

        parts = breakdown(told)

        slack = 1e-6 * timeline.makespan
        assert parts.total == pytest.approx(timeline.makespan)
        assert min(parts.sending, parts.latency, parts.slowed, parts.waiting) >= -slack
        planned = [
            (each.start, told.planned(i))
            for i, each in enumerate(timeline.transfers)
            if told.causes[i].reason is Reason.PLANNED
        ]
        assert all(start >= begin - slack for start, begin in planned)
