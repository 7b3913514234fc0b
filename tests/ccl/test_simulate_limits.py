"""Replays under shared limits, which slow transfers down."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ccl.collective import Chunk, custom
from ccl.plans import Schedule, Send
from ccl.problem import Problem
from ccl.simulate import simulate
from ccl.topology import Link, SharedLimit, Topology, device
from tests.ccl.clusters import MB, gpus, ring, ring_all_gather, star
from tests.ccl.judging import replay


class TestABus:
    """The memory bus of the thesis' figure 3.1 in small: two links of 60 under 100 GB/s."""

    links = (Link("g0", "g1", 60), Link("g0", "g2", 60), Link("g1", "g2", 60, 0.5))
    limit = SharedLimit("bus", (("g0", "g1"), ("g0", "g2")), 100)

    def fork(self, *sizes):
        """Chunks for g1 and g2 in turn."""
        chunks = [Chunk(size, (0,), (1 + i % 2,)) for i, size in enumerate(sizes)]
        topology = Topology("t", gpus(3), self.links, (self.limit,))
        return Problem(topology, custom(3, chunks))

    def sends(self, *epochs):
        return tuple(Send(k, i, "g0", f"g{1 + i % 2}") for i, k in enumerate(epochs))

    def test_what_an_epoch_promises_is_kept(self):
        """6 MB each in 120 µs: 50 GB/s for both, although the first alone could have 60."""
        timeline = replay(self.fork(6 * MB, 6 * MB), Schedule(self.sends(0, 0), 120, 1))

        assert [each.sent for each in timeline.transfers] == pytest.approx([120, 120])

    def test_epochs_in_which_nothing_is_sent_cost_nothing(self):
        """The same, with ten million epochs after it, which nobody could go through one by one."""
        timeline = replay(self.fork(6 * MB, 6 * MB), Schedule(self.sends(0, 0), 120, 10**7))

        assert [each.sent for each in timeline.transfers] == pytest.approx([120, 120])

    def test_what_is_left_goes_to_the_first(self):
        """In 240 µs 25 GB/s are promised to each. The first takes 35 more and is sent after
        100 µs; the second has 40, then 60: 4 MB and the other 2 MB in 33.3 µs."""
        timeline = replay(self.fork(6 * MB, 6 * MB), Schedule(self.sends(0, 0), 240, 1))

        assert sorted(each.sent for each in timeline.transfers) == pytest.approx([100, 400 / 3])

    def test_what_is_ahead_of_its_epoch_gets_what_is_left(self):
        """Nothing is promised to the second in epoch 0, where the first has its 60."""
        timeline = replay(self.fork(6 * MB, 4 * MB), Schedule(self.sends(0, 1), 100, 2))

        assert [each.start for each in timeline.transfers] == [0, 0]
        assert [each.sent for each in timeline.transfers] == pytest.approx([100, 100])

    def test_no_more_is_sent_than_the_limit_allows_at_any_moment(self):
        problem = self.fork(*[2 * MB] * 8)
        timeline = replay(problem, Schedule(self.sends(0, 0, 1, 1, 2, 2, 3, 3), 40, 4))

        assert timeline.makespan == pytest.approx(160)

    def test_a_tight_limit_is_the_bandwidth_of_its_only_link(self):
        """60 GB/s under 20 are 20: 2 MB take 100 µs or, in epochs of 50 µs, two."""
        limit = SharedLimit("upload", (("g0", "g1"),), 20)
        topology = Topology("t", gpus(3), self.links, (limit,))
        problem = Problem(topology, custom(3, [Chunk(2 * MB, (0,), (1,))]))

        timeline = replay(problem, Schedule((Send(0, 0, "g0", "g1"),), 50, 2))

        assert timeline.makespan == pytest.approx(100)

    def test_other_links_are_not_slowed_down(self):
        """g1 passes the chunk on as soon as it has come, at 60 GB/s and 0.5 µs later."""
        problem = Problem(
            Topology("t", gpus(3), self.links, (self.limit,)),
            custom(3, [Chunk(6 * MB, (0,), (2,)), Chunk(6 * MB, (0,), (2,))]),
        )
        sends = Send(0, 0, "g0", "g1"), Send(0, 1, "g0", "g2"), Send(1, 0, "g1", "g2")

        timeline = replay(problem, Schedule(sends, 120, 3))

        assert timeline.makespan == pytest.approx(120 + 100 + 0.5)

    def test_a_limit_that_never_binds_changes_nothing(self):
        problem, schedule = ring_all_gather(ring(4))
        wide = SharedLimit("wide", tuple(link.ends for link in problem.topology.links), 200)
        same = Problem(replace(problem.topology, limits=(wide,)), problem.collective)

        assert simulate(same, schedule) == simulate(problem, schedule)

    def test_ways_are_slowed_down_where_they_share(self):
        """Two ways of 60 GB/s under 60 for both: 30 each, 2 MB in 66.7 µs, and 1 µs of alphas."""
        limits = (SharedLimit("uplinks", (("g0", "s"), ("g1", "s")), 60),)
        topology = replace(star(4, bandwidth=60, alpha=0.5), limits=limits)
        chunks = [Chunk(2 * MB, (c,), (c + 2,)) for c in range(2)]
        problem = Problem(topology, custom(4, chunks))
        ways = tuple(Send(0, c, f"g{c}", f"g{c + 2}", ("s",)) for c in range(2))

        timeline = replay(problem, Schedule(ways, 2 * MB / 30e3, 2))

        assert timeline.makespan == pytest.approx(2 * MB / 30e3 + 1)

    @pytest.mark.parametrize("turn", [1, -1])
    def test_a_link_under_two_limits_keeps_both(self, turn):
        """g0->g1 and g1->g2 have 60 GB/s together, 6 MB each in 200 µs; the bus alone would let
        g0->g1 have 60. It does not matter which limit is listed first."""
        pair = SharedLimit("pair", (("g0", "g1"), ("g1", "g2")), 60)
        links = (*self.links[:2], Link("g1", "g2", 60))
        topology = Topology("t", gpus(3), links, (self.limit, pair)[::turn])
        chunks = [Chunk(6 * MB, (0,), (1,)), Chunk(6 * MB, (1,), (2,))]
        sends = Send(0, 0, "g0", "g1"), Send(0, 1, "g1", "g2")

        timeline = replay(Problem(topology, custom(3, chunks)), Schedule(sends, 200, 1))

        assert [each.sent for each in timeline.transfers] == pytest.approx([200, 200])

    def test_promises_are_spread_over_long_sends(self):
        """4.5 MB take 75 µs or two epochs of 50 µs, at 45 GB/s; beside it 2.75 MB take 55 GB/s
        in each of the two."""
        chunks = [Chunk(4.5 * MB, (0,), (1,)), *[Chunk(2.75 * MB, (0,), (2,))] * 2]
        problem = Problem(self.fork(MB).topology, custom(3, chunks))
        sends = Send(0, 0, "g0", "g1"), Send(0, 1, "g0", "g2"), Send(1, 2, "g0", "g2")

        timeline = replay(problem, Schedule(sends, 50, 2))

        sent = {each.chunk: each.sent for each in timeline.transfers}
        assert sent == pytest.approx({0: 100, 1: 50, 2: 100})

    def test_promises_change_with_the_epoch(self):
        """The first has 60 GB/s, 45 of them promised for two epochs of 50 µs, and the second the
        other 40, until in epoch 1 it is promised 55: 0.75 of its 2.75 MB are left then."""
        problem = self.fork(4.5 * MB, 2.75 * MB)

        timeline = replay(problem, Schedule(self.sends(0, 1), 50, 2))

        sent = {each.chunk: each.sent for each in timeline.transfers}
        assert sent[1] == pytest.approx(50 + 0.75 / 0.055)
        assert sent[0] == pytest.approx(sent[1] + (1.5 - 0.045 * (sent[1] - 50)) / 0.060)


class TestWays:
    """Ways over a switch whose exits are under a limit."""

    def topology(self, *, alpha=0.0, bandwidth=60.0):
        links = (
            Link("g0", "s", 50, alpha),
            Link("g1", "s", 50, alpha),
            Link("s", "g2", 50),
            Link("s", "g3", 50),
            Link("g2", "g3", 50),
        )
        limit = SharedLimit("exits", (("s", "g2"), ("s", "g3")), bandwidth)
        return Topology("t", (*gpus(4), device("switch", "s")), links, (limit,))

    def test_what_follows_a_way_waits_for_the_last_byte(self):
        """Alone the way takes 20 µs and what follows it 20 more."""
        problem = Problem(self.topology(), custom(4, [Chunk(MB, (0,), (3,))]))
        sends = Send(0, 0, "g0", "g2", ("s",)), Send(1, 0, "g2", "g3")

        timeline = replay(problem, Schedule(sends, 20, 2))

        assert [each.start for each in timeline.transfers] == pytest.approx([0, 0, 20])
        assert timeline.makespan == pytest.approx(40)

    def test_ways_beside_a_limit_keep_their_latencies(self):
        """g1 to g0 is under no limit: 3 µs to the switch, and 1 MB in 20 µs that follow at once."""
        links = (*self.topology(alpha=3).links, Link("s", "g0", 50, 5))
        topology = replace(self.topology(), links=links)
        chunks = [Chunk(MB, (1,), (0,)), Chunk(MB, (0,), (2,))]
        ways = Send(0, 0, "g1", "g0", ("s",)), Send(0, 1, "g0", "g2", ("s",))

        timeline = replay(Problem(topology, custom(4, chunks)), Schedule(ways, 50, 2))

        first, second = (each for each in timeline.transfers if each.chunk == 0)
        assert (first.start, first.sent, first.end) == pytest.approx((0, 20, 23))
        assert (second.start, second.sent, second.end) == pytest.approx((3, 23, 28))

    def test_it_waits_for_the_link_that_the_limit_slows_down(self):
        """Both exits have 30 GB/s, so the ways take 33.3 µs, and what follows starts then."""
        chunks = [Chunk(MB, (0,), (3,)), Chunk(MB, (1,), (3,))]
        problem = Problem(self.topology(), custom(4, chunks))
        ways = Send(0, 0, "g0", "g2", ("s",)), Send(0, 1, "g1", "g3", ("s",))
        sends = (*ways, Send(1, 0, "g2", "g3"))

        timeline = replay(problem, Schedule(sends, 100 / 3, 2))

        assert timeline.makespan == pytest.approx(100 / 3 + 20)

    def test_promises_of_later_links_are_for_when_the_ways_come_there(self):
        """Both are at the exits in epoch 1, where the small one, which is first, is promised 5 of
        the 55 GB/s and the large one 50. If all went to the first, the large one would be late."""
        chunks = [Chunk(0.1 * MB, (1,), (3,)), Chunk(MB, (0,), (2,))]
        problem = Problem(self.topology(alpha=20, bandwidth=55), custom(4, chunks))
        ways = Send(0, 0, "g1", "g3", ("s",)), Send(0, 1, "g0", "g2", ("s",))

        timeline = replay(problem, Schedule(ways, 20, 2))

        exits = [each for each in timeline.transfers if each.src == "s"]
        assert [(each.start, each.sent) for each in exits] == [pytest.approx((20, 40))] * 2
