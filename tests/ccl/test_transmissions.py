"""Sends that cross links together: multicasts in switches that copy, sums in those that reduce.

1 MB at 50 GB/s takes 20 µs; every link has a latency of 0.5 µs unless said otherwise.
"""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccl.collective import Chunk, all_gather, broadcast, custom, reduce, reduce_scatter
from ccl.errors import ScheduleError
from ccl.plans import Schedule, Send
from ccl.problem import Problem
from ccl.timeline import critical_path
from ccl.topology import Link, SharedLimit, Topology, device, duplex
from ccl.verify import verify
from tests.ccl.clusters import MB, gpus, star
from tests.ccl.judging import accepted, refused, replay
from tests.ccl.planner import Planner, spread
from tests.ccl.test_simulate_properties import cluster


def by_halves(count, *, copies=True):
    """All-gather over a switch: to all of the other half at once, then one by one in one's own.

    In epoch k < m = count / 2 the GPUs k and m + k send to all m of the other half; after that
    every GPU sends in epoch m + k to the one k + 1 further in its own half.
    """
    m = count // 2
    sends = []
    for k in range(m):
        for first in (0, m):
            others = range(m - first, count - first)
            sends += [Send(k, first + k, f"g{first + k}", f"g{to}", ("s",)) for to in others]
    for k in range(m - 1):
        for rank in range(count):
            to = rank // m * m + (rank + k + 1) % m
            sends.append(Send(m + k, rank, f"g{rank}", f"g{to}", ("s",)))
    problem = Problem(star(count, alpha=0.5, copies=copies), all_gather(count, count * MB))
    return problem, Schedule(tuple(sends), 20, count)


def backwards(schedule, *, took=1):
    """Read a schedule backwards whose sends take so many epochs."""
    sends = [
        Send(schedule.horizon - took - s.epoch, s.chunk, s.dst, s.src, s.via[::-1])
        for s in reversed(schedule.sends)
    ]
    return replace(schedule, sends=tuple(sends))


def mirrored(problem):
    """The mirror of a problem."""
    return Problem(problem.topology.reversed(), problem.collective.reversed())


class TestStar:
    """Every GPU has one link in, over which n - 1 chunks must come: (n - 1) 20 µs, then 1 µs."""

    @pytest.mark.parametrize("count", [4, 6, 8])
    def test_an_all_gather_by_multicasts_meets_the_ejection_bound(self, count):
        """Two multicasts in each of m epochs fill all links out of the switch, and so do the
        m - 1 epochs after them: 2 m - 1 = n - 1 epochs of 20 µs and two latencies."""
        problem, schedule = by_halves(count)

        timeline = replay(problem, schedule)

        assert timeline.makespan == pytest.approx((count - 1) * 20 + 1)
        m = count // 2
        # Each multicast crosses 1 + m links, each other send 2.
        assert len(timeline.transfers) == count * (1 + m) + count * (m - 1) * 2

    @pytest.mark.parametrize("count", [4, 6, 8])
    def test_backwards_it_is_a_reduce_scatter_by_sums_in_the_switch(self, count):
        """Every link from a GPU carries n - 1 partial sums; the mirror takes as long."""
        problem, schedule = by_halves(count)
        mirror = mirrored(problem)
        # The last epoch holds only the latency of the epoch before it.
        back = backwards(schedule, took=2)

        timeline = replay(mirror, back)

        assert mirror.collective == reduce_scatter(count, count * MB)
        assert timeline.makespan == pytest.approx((count - 1) * 20 + 1)
        assert len(timeline.transfers) == len(replay(problem, schedule).transfers)

    def test_a_switch_that_cannot_copy_is_refused(self):
        """g0's link has two sends of 20 µs in the first epoch."""
        error = refused(*plan_of(by_halves(4, copies=False)), epoch_duration=20, horizon=4)

        assert error.epoch == 0
        assert "has 2 sends and only 1 fit" in str(error)

    def test_a_switch_that_cannot_reduce_is_refused(self):
        problem, schedule = by_halves(4)
        mirror = mirrored(problem)
        plain = replace(mirror, topology=star(4, alpha=0.5))

        with pytest.raises(ScheduleError, match="has 2 sends and only 1 fit"):
            verify(plain, backwards(schedule, took=2))

    @pytest.mark.parametrize("mirror", [False, True])
    def test_no_send_may_be_lost_or_late(self, mirror):
        problem, schedule = by_halves(6)
        if mirror:
            problem, schedule = mirrored(problem), backwards(schedule, took=2)
        verify(problem, schedule)

        for i, send in enumerate(schedule.sends):
            rest = (*schedule.sends[:i], *schedule.sends[i + 1 :])
            with pytest.raises(ScheduleError):
                verify(problem, replace(schedule, sends=rest))
            late = replace(send, epoch=send.epoch + 1)
            with pytest.raises(ScheduleError):
                verify(problem, replace(schedule, sends=(*rest, late)))

    def test_alone_it_takes_as_long_as_one_send(self):
        """20 µs and two latencies to all three; one by one it would be 61 µs."""
        problem = Problem(star(4, alpha=0.5, copies=True), broadcast(4, MB))
        ways = tuple(Send(0, 0, "g0", f"g{to}", ("s",)) for to in (1, 2, 3))

        assert replay(problem, Schedule(ways, 21, 1)).makespan == pytest.approx(21)
        plain = Problem(star(4, alpha=0.5), broadcast(4, MB))
        assert replay(plain, Schedule(ways, 60, 2)).makespan == pytest.approx(61)

    def test_sends_of_two_epochs_are_two_transmissions(self):
        problem = Problem(star(3, alpha=0.5, copies=True), broadcast(3, MB))
        ways = tuple(Send(k, 0, "g0", f"g{k + 1}", ("s",)) for k in range(2))

        assert replay(problem, Schedule(ways, 21, 2)).makespan == pytest.approx(41)

    def test_all_start_when_the_last_link_of_the_tree_is_free(self):
        """g1 sends to g3 first, so s->g3 is free at 20.5 µs, and so g0 starts at 20 µs."""
        chunks = [Chunk(MB, (1,), (3,)), Chunk(MB, (0,), (2, 3))]
        problem = Problem(star(4, alpha=0.5, copies=True), custom(4, chunks))
        first = Send(0, 0, "g1", "g3", ("s",))
        ways = tuple(Send(0, 1, "g0", f"g{to}", ("s",)) for to in (2, 3))

        timeline = replay(problem, Schedule((first, *ways), 40, 2))

        assert timeline.makespan == pytest.approx(41)
        assert [each.start for each in timeline.transfers if each.chunk == 1] == pytest.approx(
            [20, 20.5, 20.5]
        )
        # Given its links before the other, the multicast would not have to wait.
        timeline = replay(problem, Schedule((*ways, first), 40, 2))
        assert [each.start for each in timeline.transfers if each.chunk == 0] == pytest.approx(
            [20, 20.5]
        )

    def test_the_place_of_a_multicast_is_that_of_its_first_send(self):
        chunks = [Chunk(MB, (1,), (3,)), Chunk(MB, (0,), (2, 3))]
        problem = Problem(star(4, alpha=0.5, copies=True), custom(4, chunks))
        between = Send(0, 0, "g1", "g3", ("s",))
        ways = [Send(0, 1, "g0", f"g{to}", ("s",)) for to in (2, 3)]

        timeline = replay(problem, Schedule((ways[0], between, ways[1]), 40, 2))

        assert min(each.start for each in timeline.transfers if each.chunk == 1) == 0
        assert min(each.start for each in timeline.transfers if each.chunk == 0) == 20
        error = refused(problem, ways[0], between, ways[1], epoch_duration=40, horizon=1)
        assert str(error).startswith("epoch 0: chunk 0 ")

    def test_the_place_of_a_sum_is_that_of_its_last_send(self):
        """Backwards: what was given its links before another is given them after it."""
        chunks = [Chunk(MB, (3,), (1,)), Chunk(MB, (2, 3), (0,), reduced=True)]
        problem = Problem(star(4, alpha=0.5, reduces=True), custom(4, chunks))
        between = Send(0, 0, "g3", "g1", ("s",))
        ways = [Send(0, 1, f"g{by}", "g0", ("s",)) for by in (2, 3)]

        timeline = replay(problem, Schedule((ways[0], between, ways[1]), 40, 2))

        assert min(each.start for each in timeline.transfers if each.chunk == 0) == 0
        assert min(each.start for each in timeline.transfers if each.chunk == 1) == 20
        # So it is the sum that comes too late, at 41 µs, where 40 is all there is.
        error = refused(problem, ways[0], between, ways[1], epoch_duration=40, horizon=1)
        assert str(error).startswith("epoch 0: chunk 1 ")

    def test_what_cannot_copy_may_multicast_once(self):
        """It leaves the memory once; after that the memory has none."""
        memory = device("memory", "m", copies=False)
        links = (Link("g0", "m", 50), Link("m", "s", 50), Link("s", "g1", 50), Link("s", "g2", 50))
        switch = device("switch", "s", copies=True)
        topology = Topology("t", (*gpus(3), memory, switch), links)
        problem = Problem(topology, broadcast(3, MB))
        sends = Send(0, 0, "g0", "m"), *(Send(1, 0, "m", f"g{to}", ("s",)) for to in (1, 2))

        assert accepted(problem, *sends, horizon=2)
        apart = *sends[:2], replace(sends[2], epoch=2)
        assert refused(problem, *apart).where == "m"


def plan_of(made):
    """The problem and the sends of a schedule."""
    problem, schedule = made
    return problem, *schedule.sends


def two_levels(*, leaf=True, spine=True, sums=False, more=()):
    """g0 and g1 at the switch l0, g2 and g3 at l1, both at the switch s."""

    def switch(name, able):
        return device("switch", name, copies=able and not sums, reduces=able and sums)

    pairs = [("g0", "l0"), ("g1", "l0"), ("g2", "l1"), ("g3", "l1"), ("l0", "s"), ("l1", "s")]
    links = [link for pair in pairs for link in duplex(*pair, bandwidth=50, alpha=0.5)]
    devices = (*gpus(4), switch("l0", True), switch("l1", leaf), switch("s", spine))
    return Topology("two levels", devices, (*links, *more))


class TestTwoLevels:
    """g1 is 1 µs of latency away from g0, and g2 and g3 are 2 µs away."""

    down = (
        Send(0, 0, "g0", "g1", ("l0",)),
        Send(0, 0, "g0", "g2", ("l0", "s", "l1")),
        Send(0, 0, "g0", "g3", ("l0", "s", "l1")),
    )

    def test_a_multicast_parts_twice(self):
        """Six links, each once; the last byte is there after 20 + 2 µs, at g1 after 21."""
        timeline = replay(Problem(two_levels(), broadcast(4, MB)), Schedule(self.down, 22, 1))

        assert timeline.makespan == pytest.approx(22)
        assert len(timeline.transfers) == 6
        ends = {each.dst: each.end for each in timeline.transfers}
        assert ends["g1"] == pytest.approx(21)
        assert ends["g2"] == ends["g3"] == timeline.makespan

    def test_a_sum_meets_twice(self):
        """g1 sends 1 µs after the others, so that the first bytes meet in l0."""
        problem = Problem(two_levels(sums=True), reduce(4, MB))
        timeline = replay(problem, backwards(Schedule(self.down, 22, 1)))

        assert timeline.makespan == pytest.approx(22)
        assert len(timeline.transfers) == 6
        starts = {each.src: each.start for each in timeline.transfers}
        assert [starts[f"g{rank}"] for rank in (1, 2, 3)] == pytest.approx([1, 0, 0])
        assert [starts[name] for name in ("l1", "s", "l0")] == pytest.approx([0.5, 1, 1.5])

    @pytest.mark.parametrize("able", [{"leaf": False}, {"spine": False, "leaf": False}])
    @pytest.mark.parametrize("sums", [False, True])
    def test_what_parts_at_a_switch_that_cannot_costs_a_transmission_each(self, able, sums):
        """g0's link is held three times; two of the sends cross three more links after it."""
        make = reduce if sums else broadcast
        problem = Problem(two_levels(**able, sums=sums), make(4, MB))
        schedule = Schedule(self.down, 62, 1)
        if sums:
            schedule = backwards(schedule)

        timeline = replay(problem, schedule)

        assert len(timeline.transfers) == 2 + 4 + 4
        assert timeline.makespan == pytest.approx(62)
        assert "only 1 fit" in str(refused(problem, *schedule.sends, epoch_duration=25))

    def test_a_spine_that_cannot_copy_does_not_part_them(self):
        problem = Problem(two_levels(spine=False), broadcast(4, MB))

        assert replay(problem, Schedule(self.down, 22, 1)).makespan == pytest.approx(22)

    def test_a_send_of_a_sum_needs_what_it_sends_only_when_it_leaves(self):
        """The sum starts at 20 µs and g1 leaves at 21 µs, when g0's part from far has come to it.

        The link to g1 takes 21 µs for 1 MB, that is 1000 / 21 GB/s.
        """
        far = Link("g3", "g1", 1000 / 21, 0.0)
        problem = Problem(two_levels(sums=True, more=(far,)), reduce(4, MB))
        sends = (
            Send(0, 0, "g3", "g1"),
            Send(1, 0, "g1", "g0", ("l0",)),
            Send(1, 0, "g2", "g0", ("l1", "s", "l0")),
        )

        for order in (sends, sends[::-1]):
            timeline = replay(problem, Schedule(order, 20, 3))
            assert timeline.makespan == pytest.approx(21 + 21)
            path = [(each.src, each.dst) for each in critical_path(problem, timeline)]
            assert path == [("g3", "g1"), ("g1", "l0"), ("l0", "g0")]
        slower = replace(problem, topology=two_levels(sums=True, more=(replace(far, alpha=0.01),)))
        error = refused(slower, *sends, horizon=3)
        assert error.where == "g0"
        assert "contribution of g3" in str(error)

    def test_the_critical_path_begins_with_what_a_send_meets(self):
        """g1 sends another chunk behind its part of the sum, which waited 1 µs for that of g2."""
        sum_of_all, behind = Chunk(MB, (1, 2, 3), (0,), reduced=True), Chunk(MB, (1,), (0,))
        problem = Problem(two_levels(sums=True), custom(4, [sum_of_all, behind]))
        up = backwards(Schedule(self.down, 22, 1)).sends
        schedule = Schedule((*up, Send(1, 1, "g1", "g0", ("l0",))), 22, 2)

        path = critical_path(problem, replay(problem, schedule))

        assert [each.chunk for each in path][-2:] == [1, 1]
        assert path[0].start == 0

    def test_the_critical_path_goes_through_the_part_that_came_last(self):
        """g1 starts at 20 µs with 1 µs to s; g2, next to s, has all of its part at 21 µs."""
        links = (
            *(Link("g1", "s", 50, 1.0), Link("g2", "s", 50), Link("s", "g0", 50)),
            Link("g3", "g2", 1000 / 21),
        )
        topology = Topology("t", (*gpus(4), device("switch", "s", reduces=True)), links)
        chunk = Chunk(MB, (1, 2, 3), (0,), reduced=True)
        problem = Problem(topology, custom(4, [chunk]))
        parts = tuple(Send(1, 0, name, "g0", ("s",)) for name in ("g1", "g2"))

        timeline = replay(problem, Schedule((Send(0, 0, "g3", "g2"), *parts), 20, 3))

        path = [(each.src, each.dst) for each in critical_path(problem, timeline)]
        assert path == [("g3", "g2"), ("g2", "s"), ("s", "g0")]

    def test_so_it_is_under_a_limit(self):
        """The link from s to l0 has 40 GB/s of its own under a limit: 25 µs in two epochs of 20."""
        far = Link("g3", "g1", 1000 / 21, 0.0)
        topology = two_levels(sums=True, more=(far,))
        problem = Problem(
            replace(topology, limits=(SharedLimit("bus", (("s", "l0"),), 40),)), reduce(4, MB)
        )
        sends = (
            Send(0, 0, "g3", "g1"),
            Send(1, 0, "g1", "g0", ("l0",)),
            Send(1, 0, "g2", "g0", ("l1", "s", "l0")),
        )

        assert replay(problem, Schedule(sends, 20, 4)).makespan <= 20 + 40 + 2

    def test_a_contribution_is_in_a_sum_once(self):
        """g2 has the contribution of g3 already when both go into one sum, which l1 adds up."""
        near = Link("g3", "g2", 50)
        problem = Problem(two_levels(sums=True, more=(near,)), reduce(4, MB))
        up = tuple(replace(send, epoch=1) for send in backwards(Schedule(self.down, 22, 1)).sends)

        error = refused(problem, Send(0, 0, "g3", "g2"), *up, epoch_duration=22, horizon=2)

        assert (error.where, error.epoch) == ("l1", 1)
        assert "l1 adds the contribution of rank 3 (g3) to chunk 0 twice" in str(error)

    def test_the_slowest_link_makes_a_multicast_late_only_behind_it_and_so_for_sums(self):
        """At 25 GB/s the link between g1 and l0 takes 40 µs, and 1 µs of latency besides.

        Read backwards g1 begins first, and the others 20 µs later on links that are faster.
        """

        def slow(topology):
            links = [
                replace(each, bandwidth=25) if "g1" in each.ends else each
                for each in topology.links
            ]
            return replace(topology, links=tuple(links))

        down = Problem(slow(two_levels()), broadcast(4, MB))
        ends = {t.dst: t.end for t in replay(down, Schedule(self.down, 42, 1)).transfers}
        assert (ends["g1"], ends["g2"]) == pytest.approx((41, 22))
        up = Problem(slow(two_levels(sums=True)), reduce(4, MB))
        assert replay(up, backwards(Schedule(self.down, 42, 1))).makespan == pytest.approx(41)
        starts = {
            t.src: t.start for t in replay(up, backwards(Schedule(self.down, 42, 1))).transfers
        }
        assert (starts["g1"], starts["g2"], starts["l0"]) == pytest.approx((0, 19, 20.5))
        assert refused(up, *self.up(), epoch_duration=40.9, horizon=1).time == pytest.approx(41)

    def up(self):
        return backwards(Schedule(self.down, 22, 1)).sends


class TestNoTrees:
    def test_one_that_ends_where_another_goes_on_is_its_own(self):
        """s gets the chunk to send it on later, and g0 sends it through s as well."""
        problem = Problem(star(3, copies=True), broadcast(3, MB))
        sends = Send(0, 0, "g0", "s"), Send(0, 0, "g0", "g1", ("s",)), Send(2, 0, "s", "g2")

        timeline = replay(problem, Schedule((*sends[:2], Send(1, 0, "s", "g2")), 40, 2))

        assert [each.start for each in timeline.transfers[:3]] == pytest.approx([0, 20, 20])
        assert refused(problem, *sends[:2], Send(1, 0, "s", "g2")).where == "g0->s"

    def test_nor_is_one_that_crosses_another_switch_first(self):
        """Both cross r, and the one ends in s, where the other goes on: g0->r is held twice."""
        switches = device("switch", "r", copies=True), device("switch", "s", copies=True)
        names = [("g0", "r"), ("r", "s"), ("s", "g1"), ("s", "g2")]
        topology = Topology("t", (*gpus(3), *switches), tuple(Link(*ends, 50) for ends in names))
        problem = Problem(topology, broadcast(3, MB))
        sends = Send(0, 0, "g0", "s", ("r",)), Send(0, 0, "g0", "g1", ("r", "s"))

        timeline = replay(problem, Schedule((*sends, Send(1, 0, "s", "g2")), 40, 2))

        assert len(timeline.transfers) == 6
        assert refused(problem, *sends, Send(1, 0, "s", "g2")).where == "g0->r"

    def test_what_leaves_a_device_that_cannot_store_goes_one_by_one(self):
        """Its sends of an epoch may be different sums; so s->r is held twice, copy or not."""
        switches = device("switch", "s", copies=True), device("switch", "r", copies=True)
        names = [("g0", "s"), ("s", "r"), ("r", "g1"), ("r", "g2")]
        topology = Topology("t", (*gpus(3), *switches), tuple(Link(*ends, 50) for ends in names))
        problem = Problem(topology, broadcast(3, MB))
        sends = Send(0, 0, "g0", "s"), *(Send(1, 0, "s", f"g{to}", ("r",)) for to in (1, 2))

        assert len(replay(problem, Schedule(sends, 40, 2)).transfers) == 5
        assert refused(problem, *sends).where == "s->r"

    def test_ways_that_meet_again_are_not_a_tree(self):
        """g0->a and a->b, a->c; both come to d, and d->g1 and d->g2 would be one way each, but
        the one over d->e would be entered from b and from c."""
        names = [("g0", "a"), ("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("d", "e")]
        names += [("e", "g1"), ("e", "g2")]
        switches = tuple(device("switch", name, copies=True) for name in "abcde")
        links = tuple(Link(*ends, 50) for ends in names)
        problem = Problem(Topology("t", (*gpus(3), *switches), links), broadcast(3, MB))
        ways = (
            Send(0, 0, "g0", "g1", ("a", "b", "d", "e")),
            Send(0, 0, "g0", "g2", ("a", "c", "d", "e")),
        )

        assert replay(problem, Schedule(ways, 40, 1)).makespan == pytest.approx(40)
        assert refused(problem, *ways, horizon=1).where == "g0->a"
        together = ways[0], replace(ways[1], via=ways[0].via)
        assert replay(problem, Schedule(together, 20, 1)).makespan == pytest.approx(20)

    def test_the_same_way_twice_is_two_transmissions(self):
        """A switch that cannot copy is sent the chunk twice to send it on twice."""
        switches = device("switch", "r", copies=True, reduces=True), device("switch", "s")
        names = [("g0", "r"), ("r", "s"), ("s", "g1"), ("s", "g2")]
        topology = Topology("t", (*gpus(3), *switches), tuple(Link(*ends, 50) for ends in names))
        problem = Problem(topology, broadcast(3, MB))
        sends = *[Send(0, 0, "g0", "s", ("r",))] * 2, *(Send(1, 0, "s", g) for g in ("g1", "g2"))

        assert accepted(problem, *sends, epoch_duration=40, horizon=2)
        assert refused(problem, *sends, horizon=2).where == "g0->r"

    def test_a_way_does_not_cross_a_link_twice(self):
        topology = replace(
            star(2),
            devices=(*star(2).devices, device("switch", "t")),
            links=(*star(2).links, *duplex("s", "t", bandwidth=50)),
        )
        problem = Problem(topology, custom(2, [Chunk(MB, (0,), (1,))]))

        error = refused(problem, Send(0, 0, "g0", "g1", ("s", "t", "s", "t", "s")))

        assert "crosses a link twice" in str(error)

    def test_parts_of_a_chunk_go_one_by_one(self):
        """Halves are amounts: that the switch copies does not make two of one."""
        problem = Problem(star(2, copies=True), custom(2, [Chunk(MB, (0,), (1,))]))
        half = Send(0, 0, "g0", "g1", ("s",), 0.5)

        assert replay(problem, Schedule((half, half), 20, 1)).makespan == pytest.approx(20)


class TestLimits:
    def limited(self, *, copies=True, bandwidth=50.0):
        """The links of g0 and g1 into the switch share as much as one of them has."""
        plain = star(4, alpha=0.5, copies=copies)
        limit = SharedLimit("bus", (("g0", "s"), ("g1", "s")), bandwidth)
        return Problem(replace(plain, limits=(limit,)), broadcast(4, MB))

    ways = tuple(Send(0, 0, "g0", f"g{to}", ("s",)) for to in (1, 2, 3))

    def test_a_multicast_counts_once(self):
        """1 MB in an epoch of 20 µs is all that the limit lets through."""
        timeline = replay(self.limited(), Schedule(self.ways, 20, 2))

        assert timeline.makespan == pytest.approx(21)
        assert len(timeline.transfers) == 4

    def test_apart_they_count_each(self):
        assert "fit" in str(refused(self.limited(copies=False), *self.ways))
        apart = self.limited(copies=False)
        assert replay(apart, Schedule(self.ways, 60, 2)).makespan == pytest.approx(61)

    def test_a_sum_counts_once_on_each_link(self):
        """Two links share 60 GB/s and each is sure of 1 MB in 40 µs, that is 25 GB/s.

        The first takes the 10 GB/s that are left and is through after 1000 / 35 µs; then the
        other has 1000 - 25 * 1000 / 35 KB left, at 50 GB/s. The sum goes along over s->g0.
        """
        plain = star(3, alpha=0.5, reduces=True)
        limit = SharedLimit("bus", (("g1", "s"), ("g2", "s")), 60)
        problem = Problem(replace(plain, limits=(limit,)), reduce(3, MB))
        ways = tuple(Send(0, 0, f"g{by}", "g0", ("s",)) for by in (1, 2))

        timeline = replay(problem, Schedule(ways, 40, 2))

        first = 1000 / 35
        assert timeline.makespan == pytest.approx(first + (1000 - 25 * first) / 50 + 1)
        assert len(timeline.transfers) == 3
        assert refused(problem, *ways, epoch_duration=33).where == "bus"


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**9))
def test_multicasts_read_backwards_are_valid_sums(seed):
    """Links all of 50 GB/s, ways of at most 3 links and 2.1 µs of latency, epochs of 22.5 µs: one
    transmission a link and epoch, there before the epoch ends, so that backwards everything is
    where it was, and what a destination sent on in a later epoch comes to it in an earlier one.
    """
    rng = random.Random(seed)
    drawn = cluster(rng, limited=False)
    links = [replace(e, bandwidth=50.0, alpha=rng.choice([0.0, 0.3, 0.7])) for e in drawn.links]
    devices = [
        each if each.kind == "gpu" else replace(each, copies=False, reduces=rng.random() < 0.8)
        for each in drawn.devices
    ]
    topology = replace(drawn, devices=tuple(devices), links=tuple(links))
    ranks = len(topology.ranks)
    problem = Problem(topology, reduce_scatter(ranks, ranks * MB))
    mirror = mirrored(problem)
    planner = Planner(mirror, 22.5)
    schedule = planner.plan(spread(mirror, rng, through=True))

    forth = replay(mirror, schedule)
    back = replay(problem, backwards(schedule))

    assert len(back.transfers) == len(forth.transfers)
    assert back.makespan <= schedule.duration * (1 + 1e-9)
