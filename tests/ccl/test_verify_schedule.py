"""Each rule of a schedule: what keeps it is let through, what breaks it is refused by place."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ccl.collective import Chunk, all_gather, all_to_all, broadcast, custom, gather
from ccl.errors import ScheduleError
from ccl.problem import Problem
from ccl.schedule import Schedule, Send
from ccl.topology import Link, SharedLimit, Topology, device
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


def refused(problem, *sends, epoch_duration=20.0, horizon=None):
    """Return the error that a schedule of these sends meets."""
    last = max((send.epoch for send in sends), default=0)
    schedule = Schedule(tuple(sends), epoch_duration, horizon or last + 2)
    with pytest.raises(ScheduleError) as caught:
        verify(problem, schedule)
    return caught.value


def accepted(problem, *sends, epoch_duration=20.0, horizon):
    verify(problem, Schedule(tuple(sends), epoch_duration, horizon))
    return True


def send_one(topology, src=0, dst=1, *, size=MB):
    """One chunk from a rank to another."""
    return Problem(topology, custom(len(topology.ranks), [Chunk(size, (src,), (dst,))]))


def send_many(topology, count, src=0, dst=1, *, size=MB):
    """Several chunks from a rank to another."""
    chunk = Chunk(size, (src,), (dst,))
    return Problem(topology, custom(len(topology.ranks), [chunk] * count))


@pytest.mark.parametrize(
    "made",
    [
        ring_all_gather(ring(4)),
        ring_all_gather(ring(4, alpha=0.7), epoch_duration=20.7),
        ring_reduce_scatter(ring(5)),
        ring_all_reduce(ring(4)),
        line_all_gather(line(4)),
        star_all_gather(star(3, copies=True)),
        star_all_gather(star(4, copies=True, alpha=0.5), epoch_duration=20.5),
    ],
)
def test_known_schedules_are_let_through(made):
    verify(*made)


class TestWays:
    def test_a_link_must_exist(self):
        error = refused(send_one(ring(3), 0, 2), Send(1, 0, "g0", "g2"))

        assert (error.where, error.epoch, error.time) == ("g0->g2", 1, 20.0)
        assert "chunk 0 g0->g2: ring has no link g0->g2" in str(error)

    def test_every_link_of_a_way_must_exist(self):
        topology = Topology("t", star(2).devices, (*star(2).links[:1], Link("g0", "g1", 50)))

        assert refused(send_one(topology), Send(0, 0, "g0", "g1", ("s",))).where == "s->g1"

    def test_a_device_that_is_not_there_has_no_link(self):
        assert refused(send_one(ring(3)), Send(0, 0, "g0", "moon")).where == "g0->moon"

    def test_a_way_may_not_cross_a_device_that_stores(self):
        error = refused(send_one(ring(3), 0, 2), Send(0, 0, "g0", "g2", ("g1",)))

        assert error.where == "g1"
        assert "make it two sends" in str(error)

    @pytest.mark.parametrize("number", [-1, 1])
    def test_a_chunk_must_exist(self, number):
        error = refused(send_one(ring(3)), Send(0, number, "g0", "g1"))

        assert "there is no such chunk; they go from 0 to 0" in str(error)

    @pytest.mark.parametrize(
        "chunk", [Chunk(MB, (0,), (1, 2)), Chunk(MB, (0, 2), (1,), reduced=True)]
    )
    def test_only_chunks_with_one_end_are_sent_in_parts(self, chunk):
        problem = Problem(mesh(3), custom(3, [chunk]))

        error = refused(problem, Send(0, 0, "g0", "g1", fraction=0.5))

        assert "only 0.5 of it is sent; send the whole chunk" in str(error)


class TestCapacity:
    """A link of 50 GB/s sends 1 MB in 20 µs."""

    def test_as_many_as_fit_are_sent_one_after_the_other(self):
        problem = send_many(ring(3), 3)
        sends = [Send(0, c, "g0", "g1") for c in range(3)]

        assert accepted(problem, *sends, epoch_duration=60, horizon=1)

    def test_one_more_is_too_much(self):
        problem = send_many(ring(3), 3)
        sends = [Send(4, c, "g0", "g1") for c in range(3)]

        error = refused(problem, *sends, epoch_duration=59.9)

        assert (error.where, error.epoch, error.time) == ("g0->g1", 4, 4 * 59.9)
        assert "link g0->g1 has 3 sends and only 2 fit" in str(error)

    def test_an_epoch_may_start_late_when_its_sends_still_leave_in_time(self):
        """20 µs a send: in epochs of 30 µs two cannot go in one epoch, not even after an idle one,
        and each one that waits for the send before it must still leave by the end of its epoch."""
        problem = send_many(ring(3), 3)
        sends = [Send(k, k, "g0", "g1") for k in range(3)]

        assert accepted(problem, *sends, epoch_duration=30, horizon=3)
        assert (
            refused(problem, *sends[:2], replace(sends[2], epoch=1), epoch_duration=30).epoch == 1
        )

    def test_a_slow_link_takes_several_epochs_and_overlaps_them(self):
        """20 µs in epochs of 15 µs need two; the second one starts at 20 and leaves at 40 < 45,
        the third would leave at 60, which is the end of the fourth epoch."""
        problem = send_many(ring(3), 3)
        sends = [Send(k, k, "g0", "g1") for k in range(3)]

        assert accepted(problem, *sends, epoch_duration=15, horizon=4)

    def test_a_slow_link_that_falls_behind_is_refused_where_it_does(self):
        """In epochs of 11 µs the starts are 0, 20, 40 and the ends 20, 40, 60; the deadlines two
        epochs after the beginnings are 22, 33 and 44, so the second is late, in epoch 1."""
        problem = send_many(ring(3), 3)
        sends = [Send(k, k, "g0", "g1") for k in range(3)]

        error = refused(problem, *sends, epoch_duration=11, horizon=9)

        assert (error.where, error.epoch) == ("g0->g1", 1)

    def test_latency_does_not_hold_the_link(self):
        problem = send_many(ring(3, alpha=7), 2)

        assert accepted(
            problem, *(Send(0, c, "g0", "g1") for c in range(2)), horizon=2, epoch_duration=40
        )

    def test_fractions_take_their_share_of_the_time(self):
        problem = send_many(ring(3), 1)
        halves = [Send(0, 0, "g0", "g1", fraction=0.5)] * 2

        assert accepted(problem, *halves, horizon=1)
        assert accepted(problem, *halves, horizon=1, epoch_duration=20)
        assert refused(problem, *halves, epoch_duration=19).where == "g0->g1"

    def test_a_way_holds_all_its_links(self):
        """Two ways into g2 share the link s->g2, which has time for one."""
        problem = Problem(star(3), gather(3, 3 * MB, root=2))
        ways = [Send(0, c, f"g{c}", "g2", ("s",)) for c in range(2)]

        error = refused(problem, *ways)

        assert (error.where, error.epoch) == ("s->g2", 0)
        assert accepted(problem, *ways, epoch_duration=40, horizon=1)

    def test_the_slowest_link_of_a_way_counts(self):
        links = (Link("g0", "s", 100), Link("s", "g1", 50))
        topology = Topology("t", star(2).devices, links)
        ways = [Send(0, c, "g0", "g1", ("s",)) for c in range(2)]

        assert refused(send_many(topology, 2), *ways, epoch_duration=30).where == "s->g1"
        assert accepted(send_many(topology, 2), *ways, epoch_duration=40, horizon=1)

    def test_links_of_a_way_are_held_alpha_after_one_another(self):
        """The way holds s->g1 from 30 to 50 µs, so a send from the switch that wants it in the
        epoch from 40 to 60 µs must wait until 50 and leaves at 70."""
        links = (Link("g0", "s", 50, alpha=30), Link("s", "g1", 50), Link("g2", "s", 50))
        topology = Topology("t", star(3).devices, links)
        chunks = [Chunk(MB, (0,), (1,)), Chunk(MB, (2,), (1,))]
        problem = Problem(topology, custom(3, chunks))
        way = Send(0, 0, "g0", "g1", ("s",))
        other = [Send(1, 1, "g2", "s"), Send(2, 1, "s", "g1")]

        assert refused(problem, way, *other).epoch == 2
        assert accepted(problem, way, *(replace(s, epoch=s.epoch + 1) for s in other), horizon=4)


class TestCausality:
    def test_what_is_not_held_is_not_sent(self):
        error = refused(Problem(mesh(3), all_gather(3, 3 * MB)), Send(0, 2, "g0", "g1"))

        assert (error.where, error.epoch, error.time) == ("g0", 0, 0.0)
        assert "g0 does not hold chunk 2 g0->g1 at 0 µs" in str(error)

    def test_latency_counts(self):
        """The chunk leaves at 20 µs and is there at 20.7 µs, after the next epoch has begun."""
        problem = send_one(ring(3, alpha=0.7), 0, 2)
        relay = [Send(0, 0, "g0", "g1"), Send(1, 0, "g1", "g2")]

        error = refused(problem, *relay)

        assert (error.where, error.epoch, error.time) == ("g1", 1, 20.0)
        assert accepted(problem, *relay, epoch_duration=20.7, horizon=2)

    def test_a_send_that_waits_for_its_link_may_use_what_comes_meanwhile(self):
        """In epochs of 60 µs g1 sends its own chunk first and then, at 20 µs, the one that has
        just come from g0; the other way round it would have to be there at 0 µs."""
        problem = Problem(ring(3), gather(3, 3 * MB, root=2))
        own, relayed = Send(0, 1, "g1", "g2"), Send(0, 0, "g1", "g2")
        first = Send(0, 0, "g0", "g1")

        assert accepted(problem, first, own, relayed, epoch_duration=60, horizon=1)
        assert refused(problem, first, relayed, own, epoch_duration=60).where == "g1"

    def test_rounding_errors_are_forgiven(self):
        """Three times 0.1 is not 0.3 in binary; nobody should have to know."""
        problem = send_one(line(4, bandwidth=MB / 0.1 * 1e-3), 0, 3)
        relay = [Send(k, 0, f"g{k}", f"g{k + 1}") for k in range(3)]

        assert accepted(problem, *relay, epoch_duration=0.1, horizon=3)

    def test_nothing_comes_a_second_time(self):
        problem = Problem(mesh(3), all_gather(3, 3 * MB))

        error = refused(problem, Send(0, 0, "g0", "g1"), Send(1, 0, "g0", "g1"))

        assert (error.where, error.epoch, error.time) == ("g1", 1, 40.0)
        assert "g1 receives chunk 0 g0->g1 a second time" in str(error)

    def test_a_holder_needs_nothing_of_its_own(self):
        problem = Problem(line(2), custom(2, [Chunk(MB, (0, 1), (1,))]))

        assert refused(problem, Send(0, 0, "g0", "g1")).where == "g1"

    def test_everything_arrives_within_the_horizon(self):
        problem = send_one(ring(3, alpha=0.7))

        error = refused(problem, Send(0, 0, "g0", "g1"), horizon=1)

        assert (error.where, error.epoch, error.time) == ("g1", 0, 20.7)
        assert "arrives at 20.7 µs, after the last epoch, which ends at 20 µs" in str(error)

    def test_every_destination_has_everything_at_the_end(self):
        problem, schedule = ring_all_gather(ring(3))

        error = refused(problem, *schedule.sends[:-1], horizon=3)

        assert (error.where, error.epoch, error.time) == ("g0", 2, 60.0)
        assert "chunk 1 is not in g0, which needs it at the end, 60 µs" in str(error)

    def test_an_empty_schedule_moves_nothing(self):
        assert refused(send_one(ring(3))).where == "g1"

    def test_what_is_held_from_the_start_needs_no_send(self):
        assert accepted(Problem(line(2), custom(2, [Chunk(MB, (0, 1), (1,))])), horizon=1)

    def test_the_first_of_two_faults_is_named(self):
        """The overload is in epoch 1, the send of what is not held in epoch 0."""
        problem = Problem(mesh(3), all_to_all(3, 3 * MB))
        overload = [Send(1, c, "g0", "g1") for c in range(2)]

        assert refused(problem, *overload, Send(0, 5, "g0", "g1")).epoch == 0
        assert refused(problem, *overload, Send(2, 5, "g0", "g1")).epoch == 1


class TestDevicesThatCannotCopy:
    def relay(self, *, copies):
        memory = device("memory", "m", copies=copies)
        links = (Link("g0", "m", 50), Link("m", "g1", 50), Link("m", "g2", 50))
        return Topology("t", (*gpus(3), memory), links)

    def test_a_memory_sends_what_it_keeps_as_often_as_it_likes(self):
        problem = Problem(self.relay(copies=True), broadcast(3, MB))
        sends = Send(0, 0, "g0", "m"), Send(1, 0, "m", "g1"), Send(1, 0, "m", "g2")

        assert accepted(problem, *sends, horizon=2)

    def test_without_copies_it_sends_it_once(self):
        problem = Problem(self.relay(copies=False), broadcast(3, MB))
        sends = Send(0, 0, "g0", "m"), Send(1, 0, "m", "g1"), Send(2, 0, "m", "g2")

        error = refused(problem, *sends)

        assert (error.where, error.epoch) == ("m", 2)
        assert "m cannot copy and sends chunk 0 m->g2 a second time" in str(error)

    def test_a_destination_that_cannot_copy_must_keep_its_own(self):
        """g1 needs the chunk and passes it on to g2, so that it is gone."""
        passing = replace(gpus(3)[1], copies=False)
        devices = (gpus(3)[0], passing, gpus(3)[2])
        topology = Topology("t", devices, (Link("g0", "g1", 50), Link("g1", "g2", 50)))

        error = refused(
            Problem(topology, broadcast(3, MB)), Send(0, 0, "g0", "g1"), Send(1, 0, "g1", "g2")
        )

        assert error.where == "g1"


class TestFractions:
    """One chunk goes from g0 to g3, half of it by g1 and half by g2."""

    problem = send_one(mesh(4), 0, 3)
    halves = (
        Send(0, 0, "g0", "g1", fraction=0.5),
        Send(0, 0, "g0", "g2", fraction=0.5),
        Send(1, 0, "g1", "g3", fraction=0.5),
        Send(1, 0, "g2", "g3", fraction=0.5),
    )

    def test_parts_add_up(self):
        assert accepted(self.problem, *self.halves, epoch_duration=10, horizon=2)

    def test_parts_from_several_arrivals_leave_together(self):
        sends = [replace(s, dst="g1", src="g0") for s in self.halves[:2]]
        whole = Send(1, 0, "g1", "g3")

        assert accepted(self.problem, *sends, whole, horizon=2)

    def test_no_more_leaves_than_is_held(self):
        """g0 has one chunk and cannot send three halves of it."""
        error = refused(self.problem, *self.halves, Send(1, 0, "g0", "g3", fraction=0.5))

        assert (error.where, error.epoch) == ("g0", 1)
        assert "g0 holds 0 of chunk 0 at 20 µs and sends 0.5 of it to g3" in str(error)

    def test_no_part_leaves_before_it_has_come(self):
        early = [replace(send, epoch=0) for send in self.halves]

        assert refused(self.problem, *early).where in ("g1", "g2")

    @pytest.mark.parametrize("lost", range(4))
    def test_a_missing_part_is_missed(self, lost):
        kept = [send for i, send in enumerate(self.halves) if i != lost]

        error = refused(self.problem, *kept)

        assert "chunk 0" in str(error)
        assert error.where == ("g3" if lost > 1 else self.halves[lost].dst)

    def test_parts_of_two_holders_may_not_make_more_than_the_chunk(self):
        problem = Problem(mesh(3), custom(3, [Chunk(MB, (0, 1), (2,))]))
        parts = [Send(0, 0, f"g{r}", "g2", fraction=0.5) for r in range(2)]

        assert accepted(problem, *parts, horizon=1)
        more = replace(parts[0], fraction=0.6)
        assert "a second time" in str(refused(problem, more, parts[1]))

    def test_solver_noise_within_the_tolerance_is_forgiven(self):
        third = 1 / 3
        sends = [Send(k, 0, "g0", "g3", fraction=third) for k in range(3)]

        assert accepted(self.problem, *sends, horizon=3)


class TestBuffers:
    def relay(self, buffer_bytes):
        memory = device("memory", "m", buffer_bytes=buffer_bytes)
        links = (Link("g0", "m", 50), Link("m", "g1", 50))
        return send_many(Topology("t", (*gpus(2), memory), links), 2)

    def test_what_is_sent_on_in_time_makes_room(self):
        """The second chunk arrives at 40 µs, when the first one has left."""
        sends = [
            Send(k + hop, k, *ends)
            for k in range(2)
            for hop, ends in enumerate((("g0", "m"), ("m", "g1")))
        ]

        assert accepted(self.relay(MB), *sends, horizon=3)

    def test_what_waits_too_long_is_in_the_way(self):
        sends = [
            Send(0, 0, "g0", "m"),
            Send(1, 1, "g0", "m"),
            Send(3, 0, "m", "g1"),
            Send(4, 1, "m", "g1"),
        ]

        error = refused(self.relay(1.5 * MB), *sends)

        assert (error.where, error.epoch, error.time) == ("m", 1, 40.0)
        assert "m keeps 2e+06 bytes with chunk 1 at 40 µs and its buffer takes 1.5e+06" in str(
            error
        )
        assert accepted(self.relay(2 * MB), *sends, horizon=5)

    def test_parts_take_their_share(self):
        half = [
            replace(send, fraction=0.5)
            for send in (
                Send(0, 0, "g0", "m"),
                Send(1, 0, "m", "g1"),
                Send(1, 0, "g0", "m"),
                Send(2, 0, "m", "g1"),
            )
        ]
        problem = self.relay(MB / 2)
        problem = Problem(problem.topology, custom(2, problem.collective.chunks[:1]))

        assert accepted(problem, *half, horizon=3, epoch_duration=10)
        late = [replace(half[1], epoch=2), *half[:1], *half[2:]]
        assert refused(problem, *late).where == "m"

    def test_destinations_keep_what_they_need(self):
        small = replace(gpus(2)[1], buffer_bytes=1.5 * MB)
        topology = Topology("t", (gpus(2)[0], small), (Link("g0", "g1", 50),))

        error = refused(send_many(topology, 2), *(Send(k, k, "g0", "g1") for k in range(2)))

        assert (error.where, error.epoch) == ("g1", 1)

    def test_holders_start_with_what_they_hold(self):
        """g0 has 2 chunks at the start and room for 1."""
        small = replace(gpus(2)[0], buffer_bytes=1.5 * MB)
        topology = Topology("t", (small, gpus(2)[1]), (Link("g0", "g1", 50),))

        error = refused(send_many(topology, 2), *(Send(k, k, "g0", "g1") for k in range(2)))

        assert (error.where, error.time) == ("g0", 0.0)

    def test_what_nobody_needs_any_more_is_dropped(self):
        """g1 relays a chunk at once and so has room for its own."""
        small = replace(gpus(3)[1], buffer_bytes=MB)
        devices = (gpus(3)[0], small, gpus(3)[2])
        topology = Topology("t", devices, (Link("g0", "g1", 50), Link("g1", "g2", 50)))
        problem = Problem(topology, custom(3, [Chunk(MB, (0,), (2,)), Chunk(MB, (0,), (1,))]))
        sends = Send(0, 0, "g0", "g1"), Send(1, 0, "g1", "g2"), Send(1, 1, "g0", "g1")

        assert accepted(problem, *sends, horizon=2)
        assert refused(problem, *sends[::2], replace(sends[1], epoch=3)).where == "g1"

    def test_a_holder_that_is_not_asked_keeps_nothing(self):
        """Both g0 and g1 have the chunk, and g1 has no room to keep it until somebody asks."""
        small = replace(gpus(3)[1], buffer_bytes=MB / 2)
        topology = Topology("t", (gpus(3)[0], small, gpus(3)[2]), mesh(3).links)
        problem = Problem(topology, custom(3, [Chunk(MB, (0, 1), (2,))]))

        assert accepted(problem, Send(0, 0, "g0", "g2"), horizon=1)
        assert refused(problem, Send(0, 0, "g1", "g2")).where == "g1"


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
