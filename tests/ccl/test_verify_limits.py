"""Shared limits: loads are spread over the epochs of each send."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from itertools import permutations

import pytest

from ccl.collective import Chunk, custom
from ccl.errors import ScheduleError
from ccl.plans import Schedule, Send
from ccl.problem import Problem, Window
from ccl.simulate import simulate
from ccl.topology import Link, SharedLimit, Topology
from ccl.verify import verify
from tests.ccl.clusters import MB, gpus, star
from tests.ccl.judging import accepted, refused


class TestLimits:
    """Two links of 60 GB/s under a limit of 100 GB/s: 100 bytes in 1 ns, 10 MB in 100 µs."""

    def fork(self, *chunks):
        links = (Link("g0", "g1", 60), Link("g0", "g2", 60), Link("g1", "g2", 60))
        limits = (SharedLimit("bus", (("g0", "g1"), ("g0", "g2")), 100),)
        topology = Topology("t", gpus(3), links, limits)
        return Problem(topology, custom(3, [Chunk(size, (0,), (dst,)) for size, dst in chunks]))

    def test_what_fits_into_an_epoch_is_let_through(self):
        problem = self.fork((6 * MB, 1), (4 * MB, 2))
        sends = Send(0, 0, "g0", "g1"), Send(0, 1, "g0", "g2")

        assert accepted(problem, *sends, epoch_duration=100, horizon=1)

    def test_what_does_not_fit_is_refused(self):
        problem = self.fork((6 * MB, 1), (4.1 * MB, 2))
        sends = Send(3, 0, "g0", "g1"), Send(3, 1, "g0", "g2")

        error = refused(problem, *sends, epoch_duration=100)

        assert (error.where, error.epoch, error.time) == ("bus", 3, 300.0)
        assert "bus carries 1.01e+07 bytes" in str(error)

    def test_the_first_epoch_and_limit_are_named(self):
        """Two limits, one exceeded in epochs 1 and 3, the other in epoch 2."""
        problem = self.fork((6 * MB, 1), (6 * MB, 2))
        limits = (
            SharedLimit("a bus", (("g0", "g1"), ("g1", "g2")), 100),
            SharedLimit("z bus", (("g0", "g2"), ("g0", "g1")), 100),
        )
        topology = replace(problem.topology, limits=limits)
        chunks = [Chunk(6 * MB, (c % 2,), (c % 2 + 1,)) for c in range(2)]
        chunks += [Chunk(6 * MB, (0,), (c % 2 + 1,)) for c in range(4)]
        problem = Problem(topology, custom(3, chunks))
        early = [Send(2, 0, "g0", "g1"), Send(2, 1, "g1", "g2")]
        late = [Send(1 + c // 2 * 2, 2 + c, "g0", f"g{c % 2 + 1}") for c in range(4)]

        error = refused(problem, *late[2:], *early, *late[:2], epoch_duration=100)
        assert (error.where, error.epoch) == ("z bus", 1)
        error = refused(problem, *late[2:], *early, epoch_duration=100)
        assert (error.where, error.epoch) == ("a bus", 2)

    def test_parts_load_a_limit_by_their_share(self):
        problem = self.fork((12 * MB, 1), (4 * MB, 2))
        halves = [Send(k, 0, "g0", "g1", fraction=0.5) for k in range(2)]

        assert accepted(problem, *halves, Send(0, 1, "g0", "g2"), epoch_duration=100, horizon=2)

    def test_ways_load_their_later_links_when_they_come_there(self):
        """After 20 µs of latency the way is on s->g1 in epoch 1 and not in epoch 0."""
        links = (Link("g0", "s", 50, 20), Link("s", "g1", 50), Link("g0", "g2", 50))
        limit = SharedLimit("bus", (("s", "g1"), ("g0", "g2")), 60)
        topology = Topology("t", star(3).devices, links, (limit,))
        chunks = [Chunk(MB, (0,), (1,)), Chunk(MB, (0,), (2,))]
        problem = Problem(topology, custom(3, chunks))
        way, other = Send(0, 0, "g0", "g1", ("s",)), Send(0, 1, "g0", "g2")

        assert accepted(problem, way, other, horizon=2)
        error = refused(problem, way, replace(other, epoch=1))
        assert (error.where, error.epoch) == ("bus", 1)

    def test_long_sends_are_spread_over_their_epochs(self):
        """6 MB over 60 GB/s are two epochs of 50 µs with 3 MB each, and 2 MB fit beside them."""
        problem = self.fork((6 * MB, 1), (2 * MB, 2), (2 * MB, 2))
        sends = [Send(0, 0, "g0", "g1"), Send(0, 1, "g0", "g2"), Send(1, 2, "g0", "g2")]

        assert accepted(problem, *sends, epoch_duration=50, horizon=2)
        problem = self.fork((6 * MB, 1), (2.1 * MB, 2), (2 * MB, 2))
        assert refused(problem, *sends, epoch_duration=50).epoch == 0

    def test_long_sends_may_not_overlap_on_a_link_under_a_limit(self):
        """4.5 MB are 75 µs or two epochs of 50 µs with 2.25 MB each; a link takes 3 MB in one."""
        problem = self.fork((4.5 * MB, 1), (4.5 * MB, 1))
        first, second = (Send(c, c, "g0", "g1") for c in range(2))

        error = refused(problem, first, second, epoch_duration=50)

        assert (error.where, error.epoch) == ("g0->g1", 1)
        assert accepted(problem, first, replace(second, epoch=2), epoch_duration=50, horizon=4)

    def test_under_a_limit_nothing_is_there_before_its_epoch_ends(self):
        """The 3 MB may have to share the bus and take the whole of the epoch of 100 µs."""
        problem = self.fork((3 * MB, 1))
        problem = Problem(problem.topology, custom(3, [Chunk(3 * MB, (0,), (2,))]))
        relay = Send(0, 0, "g0", "g1"), Send(1, 0, "g1", "g2")

        assert accepted(problem, *relay, epoch_duration=100, horizon=2)
        bold = replace(relay[1], epoch=0)
        assert refused(problem, relay[0], bold, epoch_duration=100).where == "g1"

    def test_a_limit_that_never_binds_changes_nothing(self):
        problem = self.fork((3 * MB, 1), (3 * MB, 1))
        wide = (replace(problem.topology.limits[0], bandwidth=120),)
        problem = replace(problem, topology=replace(problem.topology, limits=wide))
        sends = [Send(0, c, "g0", "g1") for c in range(2)]

        assert accepted(problem, *sends, epoch_duration=100, horizon=1)

    def test_ways_count_on_each_of_their_links(self):
        """Both ways come out of the switch under 60 GB/s: 2 MB in 33.3 µs."""
        limits = (SharedLimit("bus", (("s", "g2"), ("s", "g3")), 60),)
        chunks = [Chunk(MB, (c,), (c + 2,)) for c in range(2)]
        problem = Problem(replace(star(4), limits=limits), custom(4, chunks))
        ways = [Send(0, c, f"g{c}", f"g{c + 2}", ("s",)) for c in range(2)]

        assert accepted(problem, *ways, epoch_duration=100 / 3, horizon=1)
        assert refused(problem, *ways, epoch_duration=33).where == "bus"

    def test_a_link_has_no_more_than_its_tightest_limit(self):
        """60 GB/s under 20 are 20: 2 MB take 100 µs or, in epochs of 50 µs, two."""
        limits = tuple(SharedLimit(f"at {gbps}", (("g0", "g1"),), gbps) for gbps in (20, 30))
        problem = self.fork((2 * MB, 1))
        problem = replace(problem, topology=replace(problem.topology, limits=limits))
        send = Send(0, 0, "g0", "g1")

        assert accepted(problem, send, epoch_duration=50, horizon=2)
        assert refused(problem, send, epoch_duration=49, horizon=2).where == "g1"


def kept(work):
    """Return the most bytes that something takes at once."""
    tracemalloc.start()
    work()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


class TestManyEpochs:
    """What is kept does not grow with the epochs of a send: there may be more than memory holds.

    1 MB at 50 GB/s takes 20 µs: 2e13 epochs of a millionth of a picosecond.
    """

    sends = Send(0, 0, "g0", "g1"), Send(0, 1, "g0", "g2")
    plan = Schedule(sends, 1e-12, 10**14)

    def fork(self, bandwidth, *, windows=()):
        links = tuple(Link(*ends, 50) for ends in permutations(("g0", "g1", "g2"), 2))
        limit = SharedLimit("bus", (("g0", "g1"), ("g0", "g2")), bandwidth)
        chunks = [Chunk(MB, (0,), (1,)), Chunk(MB, (0,), (2,))]
        topology = Topology("t", gpus(3), links, (limit,))
        return Problem(topology, custom(3, chunks), windows)

    def test_a_small_plan_of_very_short_epochs_is_refused_at_once(self):
        error = None

        def work():
            nonlocal error
            with pytest.raises(ScheduleError, match=r"bus carries .* and its limit is") as caught:
                verify(self.fork(60.0), self.plan)
            error = caught.value

        assert kept(work) < 1e6
        assert (error.where, error.epoch) == ("bus", 0)

    @pytest.mark.parametrize("slow", [False, True])
    def test_or_let_through_and_replayed(self, slow):
        """A window of half the bandwidth makes it 40 µs of epochs, of which it has the first 10."""
        windows = (Window((("g0", "g1"),), 10.0, 60.0, 0.5),) if slow else ()
        problem = self.fork(99.9, windows=windows)
        plan = replace(self.plan, sends=(self.sends[0], replace(self.sends[1], epoch=4 * 10**13)))

        def work():
            verify(problem, plan)
            assert simulate(problem, plan).makespan <= 60.0 * (1 + 1e-9)

        assert kept(work) < 1e6

    def test_more_epochs_than_can_be_counted_are_refused(self):
        with pytest.raises(ScheduleError, match="more than can be counted exactly"):
            verify(self.fork(99.0), Schedule((replace(self.sends[0], epoch=2**70),), 1.0, 2**71))
