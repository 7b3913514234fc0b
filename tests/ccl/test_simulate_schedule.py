"""Replays of schedules whose makespan is known in closed form. 1 MB at 50 GB/s takes 20 µs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ccl.collective import Chunk, custom
from ccl.plans import Schedule, Send
from ccl.problem import Problem
from ccl.simulate import simulate
from ccl.topology import Link, Topology, device
from ccl.verify import verify
from tests.ccl.clusters import (
    MB,
    gpus,
    line,
    line_all_gather,
    mesh,
    ring,
    ring_all_gather,
    ring_all_reduce,
    ring_reduce_scatter,
    star,
    star_all_gather,
)
from tests.ccl.judging import replay
from tests.ccl.test_verify_mutations import halves, rounds_over_a_switch


def one(topology, src, dst, size=MB):
    return Problem(topology, custom(len(topology.ranks), [Chunk(size, (src,), (dst,))]))


class TestRings:
    """n - 1 rounds of alpha + 20 µs each, twice as many for an all-reduce."""

    @pytest.mark.parametrize("made", [ring_all_gather, ring_reduce_scatter])
    @pytest.mark.parametrize("alpha", [0.0, 0.7])
    def test_one_round_for_each_other_gpu(self, made, alpha):
        timeline = replay(*made(ring(5, alpha=alpha), epoch_duration=20 + alpha))

        assert timeline.makespan == pytest.approx(4 * (20 + alpha))
        assert timeline.chunks == 1
        assert len(timeline.transfers) == 20

    def test_an_all_reduce_goes_round_twice(self):
        timeline = replay(*ring_all_reduce(ring(5, alpha=0.7), epoch_duration=20.7))

        assert timeline.makespan == pytest.approx(8 * 20.7)

    def test_coarse_epochs_are_forgotten(self):
        """In epochs of 100 µs the schedule takes 300 µs, and its replay 60."""
        assert replay(*ring_all_gather(ring(4), epoch_duration=100)).makespan == pytest.approx(60)

    def test_a_slow_link_makes_every_round_slow(self):
        """The slow link sends n - 1 chunks of 40 µs one after the other."""
        topology = ring(4)
        slow = replace(topology.links[0], bandwidth=25)
        topology = replace(topology, links=(slow, *topology.links[1:]))

        problem, schedule = ring_all_gather(topology, epoch_duration=40)

        assert replay(problem, schedule).makespan == pytest.approx(3 * 40)

    def test_a_line_passes_all_on(self):
        """The chunks of a line of 4 reach its end one after the other, 3 hops in all."""
        assert replay(*line_all_gather(line(4))).makespan == pytest.approx(60)


class TestTransfers:
    def test_say_when_the_first_byte_enters_and_the_last_leaves_and_arrives(self):
        problem, schedule = ring_all_gather(ring(3, alpha=0.7), epoch_duration=20.7)

        timeline = replay(problem, schedule)

        last = timeline.transfers[-1]
        assert (last.start, last.sent, last.end) == pytest.approx((20.7, 40.7, 41.4))
        assert (last.chunk, last.src, last.dst, last.epoch) == (1, "g2", "g0", 1)
        assert last.nbytes == MB

    def test_are_sorted_by_start(self):
        starts = [each.start for each in replay(*line_all_gather(line(5))).transfers]

        assert starts == sorted(starts)

    def test_add_up_to_the_time_that_links_are_busy(self):
        busy = replay(*ring_all_gather(ring(4))).link_busy

        assert busy == pytest.approx(dict.fromkeys(busy, 60.0))
        assert len(busy) == 4

    def test_latency_overlaps_the_next_transmission(self):
        """Three chunks leave one after the other and the last arrives alpha after it left."""
        problem = Problem(ring(2, alpha=7), custom(2, [Chunk(MB, (0,), (1,))] * 3))
        schedule = Schedule(tuple(Send(k, k, "g0", "g1") for k in range(3)), 20, 4)

        assert replay(problem, schedule).makespan == pytest.approx(67)

    def test_keep_the_order_of_the_schedule_on_each_link(self):
        """Chunk 2 goes first, although it is the last by number."""
        problem = Problem(ring(2), custom(2, [Chunk(MB, (0,), (1,))] * 3))
        sends = Send(0, 2, "g0", "g1"), Send(1, 0, "g0", "g1"), Send(1, 1, "g0", "g1")

        timeline = replay(problem, Schedule(sends, 40, 2))

        assert [each.chunk for each in timeline.transfers] == [2, 0, 1]

    def test_what_nobody_needs_does_not_count(self):
        """g1 gets the chunk at 20 µs, and g2, which has no use for it, at 40 µs."""
        sends = Send(0, 0, "g0", "g1"), Send(1, 0, "g1", "g2")

        timeline = replay(one(ring(3), 0, 1), Schedule(sends, 20, 2))

        assert timeline.makespan == pytest.approx(20)
        assert timeline.transfers[-1].end == pytest.approx(40)

    def test_nothing_to_send_takes_no_time(self):
        problem = Problem(ring(2), custom(2, [Chunk(MB, (0, 1), (1,))]))

        assert replay(problem, Schedule((), 20, 1)).makespan == 0


class TestSwitches:
    def test_a_plain_switch_takes_everything_in_first(self):
        """3 rounds up, the last of them down again: 4 times 20 µs and two latencies."""
        problem, schedule = rounds_over_a_switch(through=False)
        assert replay(problem, schedule).makespan == pytest.approx(80)

        late = Problem(star(4, alpha=0.5), problem.collective)
        sends = tuple(replace(s, epoch=s.epoch + (s.src == "s")) for s in schedule.sends)
        assert replay(late, Schedule(sends, 20, 6)).makespan == pytest.approx(81)

    def test_cut_through_saves_a_transmission(self):
        problem, schedule = rounds_over_a_switch(through=True)
        assert replay(problem, schedule).makespan == pytest.approx(60)

        late = Problem(star(4, alpha=0.5), problem.collective)
        assert replay(late, replace(schedule, horizon=4)).makespan == pytest.approx(61)

    def test_a_copying_switch_sends_one_copy_to_each(self):
        """All send up in the first 20 µs, then each link down carries the 3 chunks of the others.

        The schedule takes an epoch for each of the 4 and one more.
        """
        problem, schedule = star_all_gather(star(4, copies=True))

        assert replay(problem, schedule).makespan == pytest.approx(80)
        assert schedule.duration == 100

    def test_cut_through_holds_links_alpha_after_one_another(self):
        links = (Link("g0", "s", 50, 3), Link("s", "g1", 25, 5))
        topology = Topology("t", (*gpus(2), device("switch", "s")), links)
        schedule = Schedule((Send(0, 0, "g0", "g1", ("s",)),), 50, 1)

        first, second = replay(one(topology, 0, 1), schedule).transfers

        assert (first.start, first.sent, first.end) == pytest.approx((0, 20, 23))
        assert (second.start, second.sent, second.end) == pytest.approx((3, 43, 48))

    def test_a_fast_link_after_a_slow_one_waits_until_it_can_send_without_a_pause(self):
        """The last byte is in the switch after 40 + 3 µs and is sent on at once."""
        links = (Link("g0", "s", 25, 3), Link("s", "g1", 50, 5))
        topology = Topology("t", (*gpus(2), device("switch", "s")), links)
        schedule = Schedule((Send(0, 0, "g0", "g1", ("s",)),), 50, 1)

        first, second = replay(one(topology, 0, 1), schedule).transfers

        assert (first.start, first.sent, first.end) == pytest.approx((0, 40, 43))
        assert (second.start, second.sent, second.end) == pytest.approx((23, 43, 48))

    def test_a_way_waits_until_all_its_links_are_free(self):
        """The link s->g2 is busy until 20 + 0.5 µs for the first, so the second starts at 20."""
        chunks = [Chunk(MB, (0,), (2,)), Chunk(MB, (1,), (2,))]
        problem = Problem(star(3, alpha=0.5), custom(3, chunks))
        ways = tuple(Send(0, c, f"g{c}", "g2", ("s",)) for c in range(2))

        timeline = replay(problem, Schedule(ways, 50, 1))

        assert [each.start for each in timeline.transfers] == pytest.approx([0, 0.5, 20, 20.5])
        assert timeline.makespan == pytest.approx(41)


class TestWaiting:
    def test_a_sum_waits_for_all_its_contributions(self):
        """g1 sends on when both have come: g0's at 20 µs and the other one's at 40 µs."""
        links = (Link("g0", "g1", 50), Link("g3", "g1", 25), Link("g1", "g2", 50))
        problem = Problem(
            Topology("t", gpus(4), links), custom(4, [Chunk(MB, (0, 1, 3), (2,), reduced=True)])
        )
        sends = Send(0, 0, "g0", "g1"), Send(0, 0, "g3", "g1"), Send(1, 0, "g1", "g2")

        assert replay(problem, Schedule(sends, 40, 2)).makespan == pytest.approx(60)

    def test_a_sum_waits_for_all_even_if_another_comes_last_in_the_replay(self):
        """In the schedule g0's comes at 80 µs, g3's an epoch later; in the replay both start at
        once, and g3's is there at 20 µs: g1 still waits until 80 µs, and then takes 20."""
        links = (Link("g0", "g1", 50, alpha=60), Link("g3", "g1", 50), Link("g1", "g2", 50))
        problem = Problem(
            Topology("t", gpus(4), links), custom(4, [Chunk(MB, (0, 1, 3), (2,), reduced=True)])
        )
        sends = Send(0, 0, "g0", "g1"), Send(1, 0, "g3", "g1"), Send(2, 0, "g1", "g2")

        timeline = replay(problem, Schedule(sends, 100, 3))

        assert [each.end for each in timeline.transfers if each.dst == "g1"] == [80, 20]
        assert timeline.makespan == pytest.approx(100)

    def test_a_sum_does_not_wait_for_what_comes_later_in_the_schedule(self):
        """g1 sends its own contribution first; g0's follows and is sent on for itself."""
        problem = Problem(
            Topology("t", gpus(3), (Link("g0", "g1", 50), Link("g1", "g2", 50))),
            custom(3, [Chunk(MB, (1,), (2,), reduced=True), Chunk(MB, (0,), (1,))]),
        )
        sends = Send(0, 1, "g0", "g1"), Send(1, 0, "g1", "g2")

        assert replay(problem, Schedule(sends, 20, 2)).makespan == pytest.approx(20)

    def test_halves_wait_for_halves(self):
        """Two hops of 0.5 MB."""
        assert replay(*halves()).makespan == pytest.approx(20)

    def test_parts_wait_for_as_much_as_has_left(self):
        """Into g1 come 0.5 MB by 10 µs and 0.5 MB by 25 µs over a slower link of g0 by g2; out go
        0.25 MB, for which the first half is enough, and 0.75 MB, for which both are needed."""
        links = (
            Link("g0", "g1", 50),
            Link("g0", "g2", 50),
            Link("g2", "g1", 0.5 * MB / 15 * 1e-3),
            Link("g1", "g3", 50),
        )
        problem = one(Topology("t", gpus(4), links), 0, 3)
        sends = (
            Send(0, 0, "g0", "g1", fraction=0.5),
            Send(0, 0, "g0", "g2", fraction=0.5),
            Send(1, 0, "g2", "g1", fraction=0.5),
            Send(1, 0, "g1", "g3", fraction=0.25),
            Send(2, 0, "g1", "g3", fraction=0.75),
        )

        timeline = replay(problem, Schedule(sends, 15, 3))

        out = [each for each in timeline.transfers if each.src == "g1"]
        assert [each.start for each in out] == pytest.approx([10, 25])
        assert timeline.makespan == pytest.approx(40)

    def test_a_relay_starts_as_soon_as_it_can(self):
        """The schedule waits 3 epochs in between, the replay does not."""
        sends = Send(0, 0, "g0", "g1"), Send(4, 0, "g1", "g2")

        assert replay(one(ring(3), 0, 2), Schedule(sends, 20, 5)).makespan == pytest.approx(40)

    @pytest.mark.parametrize("small", ["g1", "g2"])
    def test_what_goes_to_a_limited_buffer_starts_no_earlier_than_scheduled(self, small):
        """A multicast of the second epoch, 20 to 40 µs, waits for it whichever end is limited.

        What the schedule sends to g3 beside it, whose buffer is not, starts at once.
        """
        topology = star(4, copies=True)
        devices = tuple(
            replace(each, buffer_bytes=2 * MB) if each.name == small else each
            for each in topology.devices
        )
        chunks = [Chunk(MB, (0,), (1, 2)), Chunk(MB, (2,), (3,))]
        problem = Problem(replace(topology, devices=devices), custom(4, chunks))
        sends = (
            Send(1, 0, "g0", "g1", ("s",)),
            Send(1, 0, "g0", "g2", ("s",)),
            Send(1, 1, "g2", "g3", ("s",)),
        )

        timeline = replay(problem, Schedule(sends, 20, 2))

        starts = {(each.chunk, each.dst): each.start for each in timeline.transfers}
        assert starts[0, "g1"] == starts[0, "g2"] == pytest.approx(20)
        assert starts[1, "g3"] == pytest.approx(0)
        assert timeline.makespan == pytest.approx(40)

    def test_a_way_may_start_before_one_that_goes_first_on_its_second_link(self):
        """The way of g0 reaches s->g1 only 100 µs after its start, and so starts first, although
        the send of g2 is the first one on that link."""
        links = (
            Link("g0", "s", 50, alpha=100),
            Link("g2", "s", 50),
            Link("s", "g1", 50),
            Link("g2", "g0", 50),
        )
        topology = Topology("t", (*gpus(3), device("switch", "s")), links)
        chunks = [Chunk(MB, (2,), (0,)), Chunk(MB, (2,), (1,)), Chunk(MB, (0,), (1,))]
        problem = Problem(topology, custom(3, chunks))
        sends = (
            Send(0, 0, "g2", "g0"),
            Send(0, 1, "g2", "g1", ("s",)),
            Send(0, 2, "g0", "g1", ("s",)),
        )

        timeline = replay(problem, Schedule(sends, 20, 7))

        assert timeline.makespan == pytest.approx(120)

    def test_a_way_follows_what_goes_before_it_on_its_second_link_all_the_way(self):
        """In the schedule g0 sends until 490 µs, then its chunk crosses t->g1 until 510, so that
        of g3 may start 100 µs before that. In the replay all three come 400 µs earlier."""
        switches = device("switch", "s"), device("switch", "t")
        links = (
            Link("g0", "t", 50),
            Link("t", "g1", 50),
            Link("g3", "s", 50),
            Link("s", "t", 50, alpha=100),
        )
        topology = Topology("t", (*gpus(4), *switches), links)
        chunks = [Chunk(4.5 * MB, (0,), (1,)), Chunk(MB, (0,), (1,)), Chunk(MB, (3,), (1,))]
        sends = (
            Send(1, 0, "g0", "g1", ("t",)),
            Send(1, 1, "g0", "g1", ("t",)),
            Send(1, 2, "g3", "g1", ("s", "t")),
        )

        timeline = replay(Problem(topology, custom(4, chunks)), Schedule(sends, 400, 2))

        starts = {(each.chunk, each.src): each.start for each in timeline.transfers}
        assert starts[1, "g0"] == pytest.approx(90)
        assert starts[2, "g3"] == pytest.approx(10)
        assert timeline.makespan == pytest.approx(130)

    def test_waits_that_go_round_in_a_circle_start_as_scheduled_at_the_latest(self):
        """All in one epoch: g0's link is busy until 50 µs, then it sends to g1. On t->g1 that
        goes before what g3 sends to g1 at 0 µs, for this takes 100 µs to come there; after it g3
        sends at 20 µs what g0 sends at 50. So each of the three goes before another one."""
        switches = device("switch", "s"), device("switch", "t")
        links = (
            Link("g0", "t", 50),
            Link("t", "g1", 50),
            Link("g3", "s", 50),
            Link("s", "t", 50, alpha=100),
            Link("s", "g0", 50),
        )
        topology = Topology("t", (*gpus(4), *switches), links)
        chunks = [Chunk(2.5 * MB, (0,), (1,)), Chunk(MB, (3,), (0, 1)), Chunk(MB, (3,), (1,))]
        sends = (
            Send(0, 0, "g0", "g1", ("t",)),
            Send(0, 1, "g0", "g1", ("t",)),
            Send(0, 2, "g3", "g1", ("s", "t")),
            Send(0, 1, "g3", "g0", ("s",)),
        )

        timeline = replay(Problem(topology, custom(4, chunks)), Schedule(sends, 200, 1))

        starts = {(each.chunk, each.src): each.start for each in timeline.transfers}
        assert starts[1, "g0"] == pytest.approx(50)
        assert starts[2, "g3"] == pytest.approx(0)
        assert starts[1, "g3"] == pytest.approx(20)
        assert timeline.makespan == pytest.approx(120)

    def test_sends_that_wait_for_each_other_end_all_the_same(self):
        """A schedule that verify refuses: the replay of it means nothing, but it ends."""
        problem = Problem(mesh(3), custom(3, [Chunk(MB, (0,), (1,))] * 2))
        sends = Send(0, 0, "g1", "g2"), Send(0, 0, "g2", "g1")

        assert simulate(problem, Schedule(sends, 20, 1)).makespan == pytest.approx(20)


def test_alike_paths_hold_their_own_links_though_each_meets_a_switch_twice():
    """Both go in, to the other switch, back and out; only the names of their links differ."""
    gpus = tuple(device("gpu", name) for name in ("a", "b", "c", "d"))
    switches = tuple(device("switch", name) for name in ("s", "t", "u"))
    ways = [("a", "s"), ("s", "t"), ("t", "s"), ("s", "b")]
    ways += [("c", "t"), ("t", "u"), ("u", "t"), ("t", "d")]
    topology = Topology("twice", (*gpus, *switches), [Link(*way, 10.0, 1.0) for way in ways])
    chunks = [Chunk(1e4, (0,), (1,)), Chunk(1e4, (2,), (3,))]
    problem = Problem(topology, custom(4, chunks))
    sends = (Send(0, 0, "a", "b", ("s", "t", "s")), Send(0, 1, "c", "d", ("t", "u", "t")))
    plan = Schedule(sends, 5.0, 1)
    verify(problem, plan)
    timeline = simulate(problem, plan)
    assert timeline.makespan == pytest.approx(5.0)
    assert {(each.src, each.dst) for each in timeline.transfers} == set(ways)
