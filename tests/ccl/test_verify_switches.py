"""Devices that cannot store: what comes must go on in the next epoch, and as what it came."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ccl.collective import Chunk, broadcast, custom
from ccl.plans import Send
from ccl.problem import Problem
from ccl.topology import Link, Topology, device
from tests.ccl.clusters import MB, gpus, star
from tests.ccl.judging import accepted, refused


def one(topology, *, dst=1, src=0):
    chunk = Chunk(MB, (src,), (dst,))
    return Problem(topology, custom(len(topology.ranks), [chunk]))


class TestPlainSwitch:
    relay = (Send(0, 0, "g0", "s"), Send(1, 0, "s", "g1"))

    def test_forwards(self):
        assert accepted(one(star(2)), *self.relay, horizon=2)

    def test_forwards_in_the_epoch_that_begins_at_or_after_the_arrival(self):
        """With a latency of 0.5 µs the chunk comes at 20.5 µs, so it leaves in epoch 2."""
        problem = one(star(2, alpha=0.5))

        assert accepted(problem, self.relay[0], replace(self.relay[1], epoch=2), horizon=4)
        error = refused(problem, *self.relay)
        assert (error.where, error.epoch, error.time) == ("s", 1, 20.0)

    def test_keeps_nothing(self):
        error = refused(one(star(2)), self.relay[0], replace(self.relay[1], epoch=2))

        assert (error.where, error.epoch, error.time) == ("s", 0, 20.0)
        assert "reaches s, which stores nothing, at 20 µs and does not leave it in epoch 1" in str(
            error
        )

    def test_makes_nothing_up(self):
        error = refused(one(star(2)), self.relay[1])

        assert (error.where, error.epoch) == ("s", 1)
        assert "nothing of it came" in str(error)

    def test_does_not_copy(self):
        problem = Problem(star(3), broadcast(3, MB))

        error = refused(problem, *self.relay, Send(1, 0, "s", "g2"))

        assert (error.where, error.epoch) == ("s", 1)
        assert "chunk 0 came to s 1 times for this epoch and leaves it 2 times" in str(error)

    def test_copies_may_come_in_twice_and_leave_twice(self):
        """The link g0->s has time for both."""
        problem = Problem(star(3), broadcast(3, MB))
        sends = (self.relay[0], *self.relay, Send(1, 0, "s", "g2"))

        assert accepted(problem, *sends, epoch_duration=40, horizon=2)

    def test_is_crossed_without_a_stop(self):
        """Cut-through takes one transmission and both latencies: 0.5 + 0.5 + 20 µs."""
        way = Send(0, 0, "g0", "g1", ("s",))
        problem = one(star(2, alpha=0.5))

        assert accepted(problem, way, epoch_duration=21, horizon=1)
        error = refused(problem, way, epoch_duration=20.9, horizon=1)
        assert error.time == pytest.approx(21.0)

    def test_two_in_a_row_are_two_stops(self):
        switches = device("switch", "s"), device("switch", "t")
        links = (Link("g0", "s", 50), Link("s", "t", 50), Link("t", "g1", 50))
        topology = Topology("t", (*gpus(2), *switches), links)
        sends = Send(0, 0, "g0", "s"), Send(1, 0, "s", "t"), Send(2, 0, "t", "g1")

        assert accepted(one(topology), *sends, horizon=3)
        assert accepted(
            one(topology), Send(0, 0, "g0", "t", ("s",)), Send(1, 0, "t", "g1"), horizon=2
        )
        assert accepted(one(topology), Send(0, 0, "g0", "g1", ("s", "t")), horizon=1)

    def test_parts_leave_as_much_as_came(self):
        """Two halves come and leave in thirds, of which one too few is one too few."""
        halves = [replace(self.relay[0], fraction=0.5)] * 2
        thirds = [replace(self.relay[1], fraction=1 / 3)] * 3

        assert accepted(one(star(2)), *halves, *thirds, horizon=2)
        error = refused(one(star(2)), *halves, *thirds[:2])
        assert (error.where, error.epoch) == ("s", 1)
        assert "1 of chunk 0 came to s for this epoch and 0.666667 leaves it" in str(error)


class TestCopyingSwitch:
    up, down = Send(0, 0, "g0", "s"), (Send(1, 0, "s", "g1"), Send(1, 0, "s", "g2"))
    problem = Problem(star(3, copies=True), broadcast(3, MB))

    def test_copies(self):
        assert accepted(self.problem, self.up, *self.down, horizon=2)

    def test_sends_at_least_one_copy(self):
        assert refused(self.problem, self.up).where == "s"

    def test_still_keeps_nothing(self):
        error = refused(self.problem, self.up, self.down[0], replace(self.down[1], epoch=2))

        assert (error.where, error.epoch) == ("s", 2)

    def test_gets_nothing_twice_in_an_epoch(self):
        error = refused(self.problem, self.up, self.up, *self.down, epoch_duration=40)

        assert (error.where, error.epoch) == ("s", 1)
        assert "came to s 2 times" in str(error)

    def test_gets_the_same_again_for_another_epoch(self):
        sends = self.up, self.down[0], replace(self.up, epoch=1), replace(self.down[1], epoch=2)

        assert accepted(self.problem, *sends, horizon=3)


class TestSumsInSwitches:
    """g0 and g1 send their contributions to g2 over the switch."""

    chunk = Chunk(MB, (0, 1), (2,), reduced=True)
    up = Send(0, 0, "g0", "s"), Send(0, 0, "g1", "s")
    down = Send(1, 0, "s", "g2")

    def problem(self, *, copies=False, reduces=False, destinations=(2,)):
        chunk = replace(self.chunk, destinations=destinations)
        return Problem(star(3, copies=copies, reduces=reduces), custom(3, [chunk]))

    def test_a_switch_that_reduces_sends_out_one_sum(self):
        assert accepted(self.problem(reduces=True), *self.up, self.down, horizon=2)

    def test_and_may_send_each_on_as_it_came(self):
        sends = *self.up, self.down, self.down

        assert accepted(self.problem(reduces=True), *sends, epoch_duration=40, horizon=2)

    def test_a_switch_that_does_not_reduce_adds_nothing(self):
        error = refused(self.problem(), *self.up, self.down)

        assert (error.where, error.epoch) == ("s", 1)
        assert "chunk 0 came to s 2 times for this epoch and leaves it 1 times" in str(error)

    def test_it_sends_each_on_as_it_came(self):
        sends = *self.up, self.down, self.down

        assert accepted(self.problem(), *sends, epoch_duration=40, horizon=2)

    def test_a_switch_that_only_copies_does_not_add_either(self):
        assert refused(self.problem(copies=True), *self.up, self.down).where == "s"

    def test_a_switch_that_copies_and_reduces_spreads_the_sum(self):
        """g0 and g1 get the sum that they are part of, and g2 as well."""
        problem = self.problem(copies=True, reduces=True, destinations=(0, 1, 2))
        down = [Send(1, 0, "s", f"g{rank}") for rank in range(3)]

        assert accepted(problem, *self.up, *down, horizon=2)

    def test_a_switch_that_only_reduces_spreads_nothing(self):
        problem = self.problem(reduces=True, destinations=(1, 2))
        down = [Send(1, 0, "s", f"g{rank}") for rank in (1, 2)]

        error = refused(problem, *self.up, *down, Send(1, 0, "s", "g0"))

        assert (error.where, error.epoch) == ("s", 1)

    def test_a_sum_in_a_switch_has_nothing_twice(self):
        up = self.up[0], *self.up

        error = refused(self.problem(reduces=True), *up, self.down, epoch_duration=40)

        assert (error.where, error.epoch) == ("s", 1)
        assert "s adds the contribution of rank 0 (g0) to chunk 0 twice" in str(error)


class TestSums:
    """Contributions meet in GPUs and memories."""

    def relay(self, *, reduces):
        memory = device("memory", "m", reduces=reduces)
        links = (Link("g0", "m", 50), Link("g1", "m", 50), Link("m", "g2", 50))
        topology = Topology("t", (*gpus(3), memory), links)
        chunk = Chunk(MB, (0, 1, 2), (2,), reduced=True)
        return Problem(topology, custom(3, [chunk]))

    up = Send(0, 0, "g0", "m"), Send(0, 0, "g1", "m")

    def test_a_memory_that_reduces_adds(self):
        assert accepted(self.relay(reduces=True), *self.up, Send(1, 0, "m", "g2"), horizon=2)

    def test_a_memory_that_does_not_reduce_adds_nothing(self):
        error = refused(self.relay(reduces=False), *self.up, Send(1, 0, "m", "g2"))

        assert (error.where, error.epoch, error.time) == ("m", 0, 20.0)
        assert "m cannot reduce and receives chunk 0 g1->m in two parts" in str(error)

    def test_what_is_missing_is_named(self):
        error = refused(self.relay(reduces=True), self.up[1], Send(1, 0, "m", "g2"))

        assert error.where == "g2"
        assert "the contribution of g0 to chunk 0 is not in g2 at the end" in str(error)

    def test_a_contribution_is_added_once(self):
        """The memory copies, so it can send the same sum again, and g2 would add g0's twice."""
        sends = self.up[0], Send(1, 0, "m", "g2"), Send(1, 0, "g1", "m"), Send(2, 0, "m", "g2")

        error = refused(self.relay(reduces=True), *sends)

        assert (error.where, error.epoch, error.time) == ("g2", 2, 60.0)
        assert "g2 adds the contribution of rank 0 (g0) to chunk 0 twice" in str(error)

    def test_the_same_sum_does_not_come_twice(self):
        sends = *self.up, Send(1, 0, "m", "g2"), Send(2, 0, "m", "g2")

        assert "adds the contribution of rank 0" in str(refused(self.relay(reduces=True), *sends))

    def test_a_memory_that_cannot_copy_has_nothing_left(self):
        problem = self.relay(reduces=True)
        memory = replace(problem.topology.devices[3], copies=False)
        topology = replace(problem.topology, devices=(*gpus(3), memory))
        problem = replace(problem, topology=topology)
        sends = self.up[0], Send(1, 0, "m", "g2"), Send(1, 0, "g1", "m"), Send(2, 0, "m", "g2")

        assert accepted(problem, *sends, horizon=3)
        error = refused(problem, *sends, Send(3, 0, "m", "g2"))
        assert (error.where, error.epoch) == ("m", 3)
        assert "m does not hold chunk 0" in str(error)
