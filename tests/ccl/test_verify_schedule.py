"""Each rule of a schedule: what keeps it is let through, what breaks it is refused by place."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ccl.collective import Chunk, all_gather, all_to_all, broadcast, custom, gather
from ccl.errors import ScheduleError
from ccl.plans import Schedule, Send
from ccl.problem import Problem
from ccl.topology import Link, Topology
from ccl.verify import verify
from tests.ccl.clusters import (
    MB,
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
from tests.ccl.judging import accepted, refused, send_many, send_one


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

    def test_only_sends_of_that_epoch_over_that_link_are_counted(self):
        problem = Problem(mesh(3), custom(3, [Chunk(MB, (0,), (1 + c % 2,)) for c in range(6)]))
        others = [Send(0, 0, "g0", "g1"), Send(1, 1, "g0", "g2"), Send(1, 3, "g0", "g2")]

        error = refused(
            problem, *others, Send(1, 2, "g0", "g1"), Send(1, 4, "g0", "g1"), epoch_duration=39
        )

        assert "link g0->g2 has 2 sends and only 1 fit" in str(error)

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

    def test_a_way_starts_when_it_finds_each_of_its_links_free(self):
        """The first way holds s->g2 from 30 to 50 µs, so the second may start at 20 µs; it is
        there at 20 + 20 + 30 + 30 = 100 µs."""
        problem = Problem(star(3, alpha=30), gather(3, 3 * MB, root=2))
        ways = [Send(0, c, f"g{c}", "g2", ("s",)) for c in range(2)]

        assert accepted(problem, *ways, epoch_duration=40, horizon=3)
        assert refused(problem, *ways, epoch_duration=49, horizon=2).time == pytest.approx(100)

    def test_the_link_that_is_free_last_counts_and_not_the_one_that_comes_last(self):
        """g0->s is busy until 20 µs; s->g2, which the way reaches 30 µs after its start, until 30.
        So it starts at 20 and is there at 20 + 20 + 30 + 30 = 100 µs."""
        topology = star(4, alpha=30)
        near = replace(topology.link("g3", "s"), alpha=10)
        links = tuple(near if link.src == "g3" else link for link in topology.links)
        chunks = [Chunk(MB, *ends) for ends in (((0,), (1,)), ((3,), (2,)), ((0,), (2,)))]
        problem = Problem(replace(topology, links=links), custom(4, chunks))
        ways = [
            Send(0, number, f"g{src}", f"g{dst}", ("s",))
            for number, (src, dst) in enumerate(((0, 1), (3, 2), (0, 2)))
        ]

        assert accepted(problem, *ways, epoch_duration=50, horizon=2)
        assert refused(problem, *ways, epoch_duration=49, horizon=2).time == pytest.approx(100)

    def test_a_way_takes_all_latencies_and_the_longest_transmission(self):
        """40 µs over the link of 25 GB/s, wherever it is, and 3 + 5 µs."""
        for speeds in ((25, 50), (50, 25)):
            links = (Link("g0", "s", speeds[0], 3), Link("s", "g1", speeds[1], 5))
            problem = send_one(Topology("t", star(2).devices, links))

            assert accepted(problem, Send(0, 0, "g0", "g1", ("s",)), epoch_duration=48, horizon=1)
            error = refused(problem, Send(0, 0, "g0", "g1", ("s",)), epoch_duration=47, horizon=1)
            assert error.time == pytest.approx(48)

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

    @pytest.mark.parametrize("hop", [0.1, 100_000.1])
    def test_rounding_errors_are_forgiven(self, hop):
        """Three times 0.1 is not 0.3 in binary; nobody should have to know."""
        problem = send_one(line(4, bandwidth=MB / hop * 1e-3), 0, 3)
        relay = [Send(k, 0, f"g{k}", f"g{k + 1}") for k in range(3)]

        assert accepted(problem, *relay, epoch_duration=hop, horizon=3)
        assert refused(problem, *relay, epoch_duration=hop * (1 - 1e-6)).epoch == 1

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


def test_epochs_too_short_to_be_counted_are_refused():
    """A chunk of 1 MB takes 20 µs, which is more than 2^53 epochs of 1e-300 µs."""
    problem = Problem(ring(2), broadcast(2, 1e6))
    with pytest.raises(ScheduleError, match="too short to count"):
        verify(problem, Schedule((Send(0, 0, "g0", "g1"),), 1e-300, 1))
