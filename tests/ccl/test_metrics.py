"""Metrics of replays whose makespan, loads and waits are known by hand. 1 MB takes 20 µs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ccl.collective import Chunk, custom, make_collective
from ccl.plans import Schedule, Send
from ccl.problem import Problem
from ccl.simulate import simulate
from ccl.timeline import (
    Timeline,
    algbw,
    bus_factor,
    busbw,
    critical_path,
    link_load,
    link_utilisation,
)
from ccl.topology import Link, SharedLimit, Topology, device
from tests.ccl.clusters import MB, gpus, line, ring, ring_all_gather, ring_all_reduce, star
from tests.ccl.planner import Planner
from tests.ccl.test_simulate_properties import instance


class TestBandwidths:
    @pytest.mark.parametrize(
        ("kind", "factor"),
        [
            ("all-reduce", 1.75),
            ("all-gather", 0.875),
            ("reduce-scatter", 0.875),
            ("all-to-all", 0.875),
            ("gather", 0.875),
            ("scatter", 0.875),
            ("broadcast", 1.0),
            ("reduce", 1.0),
        ],
    )
    def test_factors_are_those_of_nccl_tests(self, kind, factor):
        """2 (n - 1) / n, (n - 1) / n or 1 for n = 8."""
        assert bus_factor(make_collective(kind, 8, 8 * MB)) == factor

    def test_a_custom_demand_has_the_factor_1(self):
        assert bus_factor(custom(2, [Chunk(MB, (0,), (1,))])) == 1

    @pytest.mark.parametrize("made", [ring_all_gather, ring_all_reduce])
    def test_the_busbw_of_a_perfect_ring_is_that_of_its_links(self, made):
        problem, schedule = made(ring(5))

        makespan = simulate(problem, schedule).makespan

        assert busbw(problem.collective, makespan) == pytest.approx(50)

    def test_the_algbw_is_size_over_makespan(self):
        """5 MB in 80 µs are 62.5 GB/s."""
        problem, schedule = ring_all_gather(ring(5))

        assert algbw(problem.collective, simulate(problem, schedule).makespan) == pytest.approx(
            62.5
        )


class TestLinks:
    def relayed(self):
        """g0 sends to g2 by g1; the way back is not used."""
        problem = Problem(line(3), custom(3, [Chunk(MB, (0,), (2,))]))
        schedule = Schedule((Send(0, 0, "g0", "g1"), Send(1, 0, "g1", "g2")), 20, 2)
        return problem, simulate(problem, schedule)

    def test_utilisation_is_the_share_of_the_makespan(self):
        assert link_utilisation(*self.relayed()) == pytest.approx(
            {("g0", "g1"): 0.5, ("g1", "g0"): 0, ("g1", "g2"): 0.5, ("g2", "g1"): 0}
        )

    def test_of_nothing_it_is_nothing(self):
        problem, _ = self.relayed()

        assert set(link_utilisation(problem, Timeline((), 0.0)).values()) == {0.0}
        assert link_load(problem, Timeline((), 0.0), 10).tolist() == [[0.0]] * 4

    def test_load_is_what_each_link_carries_in_each_slot(self):
        """Slots of 15 µs: g0->g1 until 20 µs, g1->g2 from then until 40, the last slot half."""
        problem, timeline = self.relayed()

        load = link_load(problem, timeline, 15)

        expected = np.array([[1, 1 / 3, 0], [0, 0, 0], [0, 2 / 3, 2 / 3], [0, 0, 0]])
        np.testing.assert_allclose(load, expected, atol=1e-12)

    def test_a_whole_number_of_slots_is_not_one_more(self):
        problem, schedule = ring_all_gather(ring(4))

        load = link_load(problem, simulate(problem, schedule), 20)

        np.testing.assert_allclose(load, np.ones((4, 3)))

    @pytest.mark.parametrize("seed", range(10))
    def test_loads_add_up_to_what_was_carried(self, seed):
        problem, tasks, epoch_duration = instance(seed, limited=bool(seed % 2))
        timeline = simulate(problem, Planner(problem, epoch_duration).plan(tasks))
        # A slot that holds everything, and slots that are short.
        end = max(each.sent for each in timeline.transfers)
        whole = replace(timeline, makespan=end)
        speeds = np.array([link.bandwidth * 1e3 for link in problem.topology.links])

        for slot in (end, end / 7):
            carried = (link_load(problem, whole, slot) * speeds[:, None] * slot).sum()
            assert carried == pytest.approx(sum(each.nbytes for each in timeline.transfers))

    @pytest.mark.parametrize("seed", range(10))
    def test_no_link_is_loaded_beyond_its_capacity(self, seed):
        problem, tasks, epoch_duration = instance(seed, limited=bool(seed % 2))
        timeline = simulate(problem, Planner(problem, epoch_duration).plan(tasks))

        load = link_load(problem, timeline, epoch_duration)

        assert load.min() >= 0
        assert load.max() <= 1 + 1e-9


class TestCriticalPath:
    def test_follows_what_was_waited_for(self):
        """The chunk from g0 arrives last, after 3 hops."""
        problem = Problem(line(4), custom(4, [Chunk(MB, (0,), (3,)), Chunk(MB, (2,), (3,))]))
        sends = (*(Send(k, 0, f"g{k}", f"g{k + 1}") for k in range(3)), Send(0, 1, "g2", "g3"))
        timeline = simulate(problem, Schedule(sends, 20, 3))

        path = critical_path(problem, timeline)

        assert [(each.src, each.dst) for each in path] == [("g0", "g1"), ("g1", "g2"), ("g2", "g3")]

    def test_follows_links_that_were_waited_for(self):
        """The chunk from g0 comes to g1 in time and waits there for two others to leave."""
        chunks = [Chunk(MB, (0,), (2,)), Chunk(MB, (1,), (2,)), Chunk(MB, (1,), (2,))]
        problem = Problem(line(3), custom(3, chunks))
        sends = Send(0, 0, "g0", "g1"), *(Send(k, (k + 1) % 3, "g1", "g2") for k in range(3))
        timeline = simulate(problem, Schedule(sends, 20, 3))

        path = critical_path(problem, timeline)

        assert [(each.chunk, each.src) for each in path] == [(1, "g1"), (2, "g1"), (0, "g1")]

    def test_of_a_ring_goes_round(self):
        problem, schedule = ring_all_gather(ring(5, alpha=0.7), epoch_duration=20.7)
        timeline = simulate(problem, schedule)

        path = critical_path(problem, timeline)

        assert len(path) == 4
        assert len({each.chunk for each in path}) == 1
        assert path[-1].end == timeline.makespan

    def test_goes_through_switches_byte_by_byte(self):
        """The second way waits for s->g2, which the first one leaves at 20.5 µs."""
        chunks = [Chunk(MB, (0,), (2,)), Chunk(MB, (1,), (2,))]
        problem = Problem(star(3, alpha=0.5), custom(3, chunks))
        ways = tuple(Send(0, c, f"g{c}", "g2", ("s",)) for c in range(2))
        timeline = simulate(problem, Schedule(ways, 50, 1))

        path = critical_path(problem, timeline)

        assert [(each.chunk, each.src, each.dst) for each in path] == [
            (0, "g0", "s"),
            (0, "s", "g2"),
            (1, "g1", "s"),
            (1, "s", "g2"),
        ]

    def test_goes_through_switches_stop_by_stop(self):
        problem = Problem(star(2), custom(2, [Chunk(MB, (0,), (1,))]))
        sends = Send(0, 0, "g0", "s"), Send(1, 0, "s", "g1")

        path = critical_path(problem, simulate(problem, Schedule(sends, 20, 2)))

        assert [each.dst for each in path] == ["s", "g1"]

    def test_ends_with_the_last_arrival_that_is_needed(self):
        problem = Problem(ring(3), custom(3, [Chunk(MB, (0,), (1,))]))
        sends = Send(0, 0, "g0", "g1"), Send(1, 0, "g1", "g2")

        path = critical_path(problem, simulate(problem, Schedule(sends, 20, 2)))

        assert [each.dst for each in path] == ["g1"]

    def test_of_nothing_is_empty(self):
        problem, _ = ring_all_gather(ring(3))

        assert critical_path(problem, Timeline((), 0.0)) == ()

    def test_under_a_limit_the_last_cause_counts(self):
        """The first of two sends on a link is slowed down by the other link, and the second
        follows it."""
        links = (Link("g0", "g1", 60), Link("g0", "g2", 60))
        limit = SharedLimit("bus", (("g0", "g1"), ("g0", "g2")), 100)
        chunks = [Chunk(5 * MB, (0,), (1 + c % 2,)) for c in range(3)]
        problem = Problem(Topology("t", gpus(3), links, (limit,)), custom(3, chunks))
        sends = tuple(Send(c // 2, c, "g0", f"g{1 + c % 2}") for c in range(3))

        path = critical_path(problem, simulate(problem, Schedule(sends, 100, 2)))

        assert [each.chunk for each in path] == [0, 2]

    @pytest.mark.parametrize("seed", range(30))
    def test_has_no_gap(self, seed):
        """From the start each transfer begins as soon as the one before it lets it."""
        problem, tasks, epoch_duration = instance(seed, limited=False)
        timeline = simulate(problem, Planner(problem, epoch_duration).plan(tasks))

        path = critical_path(problem, timeline)

        assert path[0].start == pytest.approx(0, abs=1e-9 * timeline.makespan)
        assert path[-1].end == timeline.makespan
        assert len(set(path)) == len(path)


@pytest.mark.parametrize(("speeds", "second"), [((50, 25), 1), ((25, 50), 21)])
def test_the_path_ends_at_the_makespan_whichever_link_is_slow(speeds, second):
    """40 µs over the slow link and 3 µs of latency; a fast link after it takes the last 20 µs."""
    switch = device("switch", "s")
    links = (Link("g0", "s", speeds[0], 1), Link("s", "g1", speeds[1], 2))
    problem = Problem(Topology("t", (*gpus(2), switch), links), custom(2, [Chunk(MB, (0,), (1,))]))
    timeline = simulate(problem, Schedule((Send(0, 0, "g0", "g1", ("s",)),), 50, 1))

    path = critical_path(problem, timeline)

    assert [each.start for each in path] == pytest.approx([0, second])
    assert path[-1].end == timeline.makespan == pytest.approx(43)


def test_random_instances_are_random():
    """The seeds above give different clusters, so the tests above see many."""
    fingerprints = {instance(seed, limited=False)[0].fingerprint for seed in range(30)}

    assert len(fingerprints) == 30
