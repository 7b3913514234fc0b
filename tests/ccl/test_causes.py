"""Why transfers start when they do. 1 MB takes 20 µs at 50 GB/s."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from ccl.collective import Chunk, all_gather, broadcast, custom
from ccl.plans import Forest, Schedule, Send, Tree
from ccl.problem import Problem, Window
from ccl.simulate import simulate
from ccl.symmetry import Symmetry
from ccl.timeline import Cause, Reason, Timeline, causes, trace_critical
from ccl.topology import Link, SharedLimit, Topology, device
from tests.ccl.clusters import MB, gpus, line, ring, ring_all_gather, ring_reduce_scatter, star
from tests.ccl.planner import Planner
from tests.ccl.test_simulate_properties import instance


def why(problem, plan, **options):
    """Return of each transfer, by chunk and link, its reason, who let it go, and when ready."""
    timeline = simulate(problem, plan, **options)
    every = timeline.transfers

    def name(i):
        return None if i is None else (every[i].chunk, every[i].src, every[i].dst)

    return {
        name(i): (cause.reason, name(cause.by), cause.ready)
        for i, cause in enumerate(causes(problem, timeline))
    }


class TestLinks:
    def test_in_a_ring_each_chunk_is_waited_for_until_it_has_come(self):
        """Round k begins at k * 20.7 µs with what round k - 1 brought: 20 µs of bytes, 0.7 of
        latency. Its link is free 0.7 µs before, so it is the chunk that was waited for."""
        told = why(*ring_all_gather(ring(4, alpha=0.7), epoch_duration=20.7))

        assert told[0, "g0", "g1"] == (Reason.AT_ONCE, None, 0)
        for k in (1, 2):
            reason, by, ready = told[0, f"g{k}", f"g{k + 1}"]
            assert (reason, by) == (Reason.NOT_THERE, (0, f"g{k - 1}", f"g{k}"))
            assert ready == pytest.approx(20.7 * k)

    def test_a_relay_queues_what_comes_while_its_link_is_busy(self):
        """g1 has two chunks of its own to send, until 40 µs; that of g0 has been there since 20."""
        chunks = [Chunk(MB, (0,), (2,)), Chunk(MB, (1,), (2,)), Chunk(MB, (1,), (2,))]
        problem = Problem(line(3), custom(3, chunks))
        sends = Send(0, 0, "g0", "g1"), *(Send(k, (k + 1) % 3, "g1", "g2") for k in range(3))

        told = why(problem, Schedule(sends, 20, 3))

        assert told[1, "g1", "g2"] == (Reason.AT_ONCE, None, 0)
        assert told[2, "g1", "g2"] == (Reason.LINK_BUSY, (1, "g1", "g2"), 0)
        assert told[0, "g1", "g2"] == (Reason.LINK_BUSY, (2, "g1", "g2"), pytest.approx(20))

    def test_a_sum_waits_for_the_last_of_its_parts(self):
        """g2 adds what g0 brings at 20 µs and g1, at half the speed, at 40 µs."""
        links = Link("g0", "g2", 50), Link("g1", "g2", 25), Link("g2", "g3", 50)
        chunk = Chunk(MB, (0, 1, 2), (3,), reduced=True)
        problem = Problem(Topology("t", gpus(4), links), custom(4, [chunk]))
        sends = Send(0, 0, "g0", "g2"), Send(0, 0, "g1", "g2"), Send(2, 0, "g2", "g3")

        told = why(problem, Schedule(sends, 20, 3))

        assert told[0, "g2", "g3"] == (Reason.NOT_THERE, (0, "g1", "g2"), pytest.approx(40))

    def test_of_a_ring_that_adds_each_waits_for_the_part_before_it(self):
        told = why(*ring_reduce_scatter(ring(4)))

        assert {reason for reason, _, _ in told.values()} == {Reason.AT_ONCE, Reason.NOT_THERE}
        assert told[0, "g3", "g0"] == (Reason.NOT_THERE, (0, "g2", "g3"), pytest.approx(40))

    def test_parts_of_a_chunk_are_told_apart(self):
        """Half a chunk comes by g1 at 10 µs, half by the slow g2 at 20 µs; the link to g4, 10 µs a
        half, is idle between: each half is sent when it has come, whichever it is."""
        links = (
            *(Link("g0", "g1", 100), Link("g1", "g3", 100)),
            *(Link("g0", "g2", 50), Link("g2", "g3", 50), Link("g3", "g4", 100)),
        )
        problem = Problem(Topology("t", gpus(5), links), custom(5, [Chunk(MB, (0,), (4,))]))
        half = {"fraction": 0.5}
        sends = (
            *(Send(0, 0, "g0", "g1", **half), Send(0, 0, "g0", "g2", **half)),
            *(Send(1, 0, "g1", "g3", **half), Send(1, 0, "g2", "g3", **half)),
            *(Send(2, 0, "g3", "g4", **half), Send(3, 0, "g3", "g4", **half)),
        )
        timeline = simulate(problem, Schedule(sends, 10, 4))

        last = [
            cause
            for each, cause in zip(timeline.transfers, causes(problem, timeline), strict=True)
            if each.dst == "g4"
        ]

        assert [each.ready for each in last] == pytest.approx([10, 20])
        assert {each.reason for each in last} == {Reason.NOT_THERE}


class TestSwitches:
    def test_what_crosses_a_switch_is_passed_on_and_waits_for_a_link_further_on(self):
        """The first byte is at the switch after 0.5 µs; s->g2 is left at 20.5 µs, so the second
        chunk sets out at 20 µs, although its own first link has always been free."""
        chunks = [Chunk(MB, (0,), (2,)), Chunk(MB, (1,), (2,))]
        problem = Problem(star(3, alpha=0.5), custom(3, chunks))

        told = why(
            problem, Schedule(tuple(Send(0, c, f"g{c}", "g2", ("s",)) for c in (0, 1)), 50, 1)
        )

        assert told[0, "s", "g2"] == (Reason.PASSED_ON, (0, "g0", "s"), pytest.approx(0.5))
        assert told[1, "g1", "s"] == (Reason.FURTHER_ON, (0, "s", "g2"), 0)
        assert told[1, "s", "g2"] == (Reason.PASSED_ON, (1, "g1", "s"), pytest.approx(20.5))

    def test_a_multicast_waits_for_all_of_its_branches(self):
        """s->g2 is busy with the chunk of g1 until 20 µs, and g0 sends to g2 and g3 at once."""
        chunks = [Chunk(MB, (0,), (2, 3)), Chunk(MB, (1,), (2,))]
        problem = Problem(star(4, copies=True), custom(4, chunks))
        both = tuple(Send(1, 0, "g0", f"g{k}", ("s",)) for k in (2, 3))

        told = why(problem, Schedule((Send(0, 1, "g1", "g2", ("s",)), *both), 20, 2))

        assert told[0, "g0", "s"] == (Reason.FURTHER_ON, (1, "s", "g2"), 0)
        for name in ("g2", "g3"):
            assert told[0, "s", name][:2] == (Reason.PASSED_ON, (0, "g0", "s"))

    def test_parts_that_meet_wait_for_one_another(self):
        """g1 has its part only when g3's has come at 20 µs; g2 could have sent all the time."""
        links = *star(3).links, Link("g3", "g1", 50)
        topology = Topology("t", (*gpus(4), device("switch", "s", reduces=True)), links)
        chunk = Chunk(MB, (1, 2, 3), (0,), reduced=True)
        problem = Problem(topology, custom(4, [chunk]))
        parts = tuple(Send(1, 0, name, "g0", ("s",)) for name in ("g1", "g2"))

        told = why(problem, Schedule((Send(0, 0, "g3", "g1"), *parts), 20, 2))

        assert told[0, "g1", "s"][:2] == (Reason.NOT_THERE, (0, "g3", "g1"))
        assert told[0, "g2", "s"] == (Reason.MEETS, (0, "g1", "s"), 0)
        assert told[0, "s", "g0"] == (Reason.PASSED_ON, (0, "g1", "s"), pytest.approx(20))

    def test_what_stops_at_a_switch_is_waited_for_as_at_a_gpu(self):
        problem = Problem(star(2), custom(2, [Chunk(MB, (0,), (1,))]))

        told = why(problem, Schedule((Send(0, 0, "g0", "s"), Send(1, 0, "s", "g1")), 20, 2))

        assert told[0, "s", "g1"] == (Reason.NOT_THERE, (0, "g0", "s"), pytest.approx(20))


class TestHeldBack:
    def test_a_shared_limit_lets_go_when_another_has_left(self):
        """Two links of 60 GB/s share 60: the first chunk takes it all for 100 µs, as 6 MB do."""
        links = Link("g0", "g1", 60), Link("g0", "g2", 60)
        limit = SharedLimit("bus", tuple(each.ends for each in links), 60)
        chunks = [Chunk(6 * MB, (0,), (1 + c,)) for c in range(2)]
        problem = Problem(Topology("t", gpus(3), links, (limit,)), custom(3, chunks))
        plan = Schedule(tuple(Send(c, c, "g0", f"g{1 + c}") for c in range(2)), 100, 2)

        told = why(problem, plan)

        assert told[1, "g0", "g2"] == (Reason.LIMIT, (0, "g0", "g1"), 0)

    def test_a_limited_buffer_takes_a_chunk_when_the_plan_says(self):
        """The buffer between holds one chunk: the second comes when the plan has let one leave."""
        devices = *gpus(2), device("memory", "m", buffer_bytes=MB)
        links = Link("g0", "m", 50), Link("m", "g1", 50)
        problem = Problem(
            Topology("t", devices, links), custom(2, [Chunk(MB, (0,), (1,)) for _ in range(2)])
        )
        sends = (
            *(Send(0, 0, "g0", "m"), Send(1, 0, "m", "g1")),
            *(Send(3, 1, "g0", "m"), Send(4, 1, "m", "g1")),
        )

        told = why(problem, Schedule(sends, 20, 5))

        assert told[1, "g0", "m"] == (Reason.PLANNED, (0, "g0", "m"), 0)
        assert told[1, "m", "g1"] == (Reason.NOT_THERE, (1, "g0", "m"), pytest.approx(80))

    def test_a_closed_link_is_waited_for(self):
        """Nothing gets through until 33 µs; the epoch of the send begins at 20."""
        problem = Problem(
            line(2), custom(2, [Chunk(MB, (0,), (1,))]), (Window((("g0", "g1"),), 0, 33, 0.0),)
        )

        told = why(problem, Schedule((Send(1, 0, "g0", "g1"),), 20, 4))

        assert told[0, "g0", "g1"] == (Reason.CLOSED, None, 0)

    def test_with_windows_nothing_waits_for_its_epoch(self):
        problem = Problem(
            line(2), custom(2, [Chunk(MB, (0,), (1,))]), (Window((("g1", "g0"),), 0, 33, 0.5),)
        )

        told = why(problem, Schedule((Send(1, 0, "g0", "g1"),), 20, 4))

        assert told[0, "g0", "g1"] == (Reason.AT_ONCE, None, 0)


class TestForests:
    def test_parts_wait_for_their_own_arrival_and_then_for_the_link(self):
        """Four parts of 5 µs each on the first link and 10 on the second, half as fast: part i is
        there at 5 (i + 1) and goes on at 5 + 10 i."""
        links = Link("g0", "g1", 50), Link("g1", "g2", 25)
        problem = Problem(Topology("t", gpus(3), links), broadcast(3, MB))
        forest = Forest((Tree(0, (("g0", "g1"), ("g1", "g2")), Fraction(1)),))
        timeline = simulate(problem, forest, chunks=4)

        found = causes(problem, timeline)
        last = [i for i, each in enumerate(timeline.transfers) if each.dst == "g2"]

        assert [found[i].ready for i in last] == pytest.approx([5, 10, 15, 20])
        assert [timeline.transfers[i].start for i in last] == pytest.approx([5, 15, 25, 35])
        assert [found[i].reason for i in last] == [Reason.NOT_THERE] + 3 * [Reason.LINK_BUSY]
        assert [found[i].by for i in last[1:]] == last[:-1]

    def test_parts_of_two_trees_are_told_apart(self):
        """g3 gets half of the data by g1 at 10 µs and half by g2 at 30, and has a link of its own
        for neither: the half by g2 is not said to have been there when that by g1 was."""
        fast, slow = ("g0", "g1", "g3"), ("g0", "g2", "g3")
        speeds = {"g1": 100, "g2": 100 / 3}
        links = tuple(
            Link(*ends, speeds[via])
            for _, via, _ in (fast, slow)
            for ends in (("g0", via), (via, "g3"))
        )
        problem = Problem(Topology("t", gpus(5), (*links, Link("g3", "g4", 100))), broadcast(5, MB))
        trees = tuple(
            Tree(0, (("g0", one), ("g0", other), (one, "g3"), ("g3", "g4")), Fraction(1, 2))
            for one, other in (("g1", "g2"), ("g2", "g1"))
        )
        timeline = simulate(problem, Forest(trees), chunks=2)

        found = causes(problem, timeline)

        for each, cause in zip(timeline.transfers, found, strict=True):
            if each.src == "g3":
                assert timeline.transfers[cause.by].end == pytest.approx(each.start)

    def test_a_symmetric_forest_has_the_causes_of_its_representatives(self):
        """In a ring of 4 one tree stands for four; each link carries three rounds without a gap."""
        topology = ring(4)
        turn = np.array([(np.arange(4) + k) % 4 for k in range(4)])
        tree = Tree(0, (("g0", "g1"), ("g1", "g2"), ("g2", "g3")), Fraction(1))
        problem = Problem(topology, all_gather(4, 4 * MB))
        forest = Forest((tree,), symmetry=Symmetry(topology, turn, (4,)))
        timeline = simulate(problem, forest, chunks=1)

        assert timeline.images == 4
        assert causes(problem, timeline) == (
            Cause(Reason.AT_ONCE, None, 0.0),
            Cause(Reason.NOT_THERE, 0, 20.0),
            Cause(Reason.NOT_THERE, 1, 40.0),
        )


def test_without_a_replay_nothing_is_known_but_the_links():
    problem, schedule = ring_all_gather(ring(3))
    timeline = simulate(problem, schedule)
    bare = Timeline(timeline.transfers, timeline.makespan)

    assert {each.reason for each in causes(problem, bare)} == {Reason.AT_ONCE, Reason.LINK_BUSY}
    assert causes(problem, Timeline((), 0.0)) == ()
    assert trace_critical(problem, Timeline((), 0.0)) == ()


def moment(problem, timeline, i, cause):
    """Return the µs at which what a cause names let transfer i start, None where it says none."""
    every = timeline.transfers
    own = every[i]
    by = None if cause.by is None else every[cause.by]
    if cause.reason is Reason.AT_ONCE:
        return 0.0
    if cause.reason is Reason.NOT_THERE:
        assert by.dst == own.src
        return by.end
    if cause.reason is Reason.LINK_BUSY:
        assert (by.src, by.dst) == (own.src, own.dst)
        return by.sent
    if cause.reason is Reason.PASSED_ON:
        assert by.dst == own.src
        first = by.start + problem.topology.link(by.src, by.dst).alpha
        # A link at its full bandwidth waits until it can send without a pause.
        alone = own.nbytes * problem.topology.link(own.src, own.dst).beta
        paused = own.sent - own.start > alone + 1e-6
        return first if paused else max(first, by.end - alone)
    if cause.reason is Reason.FURTHER_ON:
        # One of those that it is crossed with begins when `by` leaves the link of both.
        late = min(
            each.start - by.sent
            for each in every
            if (each.src, each.dst) == (by.src, by.dst)
            and (each.chunk, each.epoch) == (own.chunk, own.epoch)
            and each.start >= by.sent - 1e-6
        )
        assert late == pytest.approx(0, abs=1e-6)
        return own.start
    if cause.reason is Reason.MEETS:
        assert (by.chunk, by.epoch) == (own.chunk, own.epoch)
        return own.start
    return None


@pytest.mark.parametrize("seed", range(60))
def test_of_any_schedule_each_transfer_starts_when_its_cause_lets_it(seed):
    """Without limits, buffers and windows there is nothing else that could hold one back."""
    problem, tasks, epoch_duration = instance(seed, limited=False)
    timeline = simulate(problem, Planner(problem, epoch_duration).plan(tasks))

    for i, cause in enumerate(causes(problem, timeline)):
        start = timeline.transfers[i].start
        assert moment(problem, timeline, i, cause) == pytest.approx(start, abs=1e-6)
        assert cause.ready <= start + 1e-6


@pytest.mark.parametrize("seed", range(30))
def test_under_limits_a_cause_is_never_later_than_what_it_lets_start(seed):
    problem, tasks, epoch_duration = instance(seed, limited=True)
    timeline = simulate(problem, Planner(problem, epoch_duration).plan(tasks))

    for i, cause in enumerate(causes(problem, timeline)):
        own = timeline.transfers[i]
        assert cause.ready <= own.start + 1e-6
        let_go = moment(problem, timeline, i, cause)
        if let_go is not None:
            assert let_go == pytest.approx(own.start, abs=1e-6)
        elif cause.by is not None:
            assert timeline.transfers[cause.by].start < own.start


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("seed", range(30))
def test_the_critical_chain_leads_back_from_the_makespan(seed, limited):
    """Each is let go by the one before it; without limits the first starts at 0."""
    problem, tasks, epoch_duration = instance(seed, limited=limited)
    timeline = simulate(problem, Planner(problem, epoch_duration).plan(tasks))
    found = causes(problem, timeline)

    chain = trace_critical(problem, timeline)

    assert timeline.transfers[chain[-1]].end == timeline.makespan
    assert all(found[after].by == before for before, after in pairwise(chain))
    assert found[chain[0]].by is None
    if not limited:
        assert found[chain[0]].reason is Reason.AT_ONCE
