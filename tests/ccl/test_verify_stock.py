"""What devices hold: copies, parts of chunks, and buffers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ccl.collective import Chunk, broadcast, custom
from ccl.plans import Send
from ccl.problem import Problem
from ccl.topology import Link, Topology, device
from tests.ccl.clusters import MB, gpus, mesh
from tests.ccl.judging import accepted, refused, send_many, send_one


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

    def test_what_is_sent_twice_is_kept_until_the_last_time(self):
        """The memory sends its chunk to g1 and, an epoch later, to g2, when the next one comes."""
        memory = device("memory", "m", buffer_bytes=MB)
        links = (Link("g0", "m", 50), Link("m", "g1", 50), Link("m", "g2", 50))
        chunks = [Chunk(MB, (0,), (1, 2)), Chunk(MB, (0,), (1,))]
        problem = Problem(Topology("t", (*gpus(3), memory), links), custom(3, chunks))
        sends = [Send(0, 0, "g0", "m"), Send(1, 0, "m", "g1"), Send(2, 0, "m", "g2")]
        after = [Send(1, 1, "g0", "m"), Send(3, 1, "m", "g1")]

        assert accepted(problem, *sends, *after, horizon=4)
        late = replace(sends[2], epoch=3)
        assert refused(problem, *sends[:2], late, *after).where == "m"

    def test_the_first_of_two_full_buffers_is_named(self):
        small = [replace(each, buffer_bytes=MB / 2) for each in gpus(3)[1:]]
        topology = Topology("t", (gpus(3)[0], *small), mesh(3).links)
        problem = Problem(topology, broadcast(3, MB))
        first, second = Send(0, 0, "g0", "g2"), Send(1, 0, "g0", "g1")

        assert refused(problem, first, second).where == "g2"
        assert refused(problem, replace(second, epoch=0), replace(first, epoch=1)).where == "g1"

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
