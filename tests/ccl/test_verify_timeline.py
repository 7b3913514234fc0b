"""The laws of links, checked on a timeline as such."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ccl.collective import Chunk, custom
from ccl.errors import ScheduleError
from ccl.problem import Problem
from ccl.timeline import Timeline, Transfer
from ccl.topology import Link, SharedLimit, Topology, device
from ccl.verify import verify_timeline
from tests.ccl.clusters import MB, gpus

LINKS = (Link("g0", "s", 50, 1), Link("s", "g1", 50, 1), Link("g0", "g1", 50), Link("g1", "g2", 50))
TOPOLOGY = Topology(
    "t",
    (*gpus(3), device("switch", "s")),
    LINKS,
    (SharedLimit("bus", (("g0", "s"), ("g0", "g1")), 60),),
)
PROBLEM = Problem(TOPOLOGY, custom(3, [Chunk(MB, (0,), (1,)), Chunk(MB, (0,), (2,))]))


def crossing(chunk, src, dst, *, start, nbytes=MB, longer=0.0):
    """A transfer that takes the time it needs, or a little longer."""
    link = TOPOLOGY.link(src, dst)
    sent = start + nbytes * link.beta + longer
    return Transfer(chunk, src, dst, start, sent, sent + link.alpha, nbytes)


def refused(*transfers):
    timeline = Timeline(tuple(sorted(transfers, key=lambda t: t.start)), makespan=100.0)
    with pytest.raises(ScheduleError) as caught:
        verify_timeline(PROBLEM, timeline)
    return caught.value


def test_what_obeys_is_let_through():
    """Also cut-through: the switch sends on the first byte 1 µs after it was sent."""
    transfers = (
        crossing(0, "g0", "s", start=0),
        crossing(0, "s", "g1", start=1),
        crossing(1, "g0", "g1", start=20),
        crossing(1, "g1", "g2", start=40),
    )

    verify_timeline(PROBLEM, Timeline(transfers, makespan=60.0))


def test_a_link_sends_one_thing_at_a_time():
    error = refused(crossing(0, "g0", "g1", start=0), crossing(1, "g0", "g1", start=19))

    assert (error.where, error.time) == ("g0->g1", 19)


def test_a_link_sends_no_faster_than_it_can():
    assert "faster than 50 GB/s" in str(refused(crossing(0, "g0", "g1", start=0, longer=-1)))


def test_latency_is_neither_more_nor_less():
    early = replace(crossing(0, "g0", "s", start=0), end=20.0)

    assert "not its 1 µs alpha" in str(refused(early))


def test_a_device_sends_only_what_has_come():
    late = crossing(1, "g0", "g1", start=0), crossing(1, "g1", "g2", start=19)

    error = refused(*late)

    assert (error.where, error.time) == ("g1", 19)


def test_a_switch_sends_no_byte_before_the_first_has_come():
    error = refused(crossing(0, "g0", "s", start=0), crossing(0, "s", "g1", start=0.5))

    assert (error.where, error.time) == ("s", 0.5)


def test_a_limit_holds_over_every_window():
    """While the first is sent at 50 GB/s for 20 µs, 10 GB/s are left for the second, 0.2 MB; the
    other 0.8 MB take 16 µs at 50 GB/s afterwards."""
    first = crossing(0, "g0", "s", start=0)

    slowed = crossing(1, "g0", "g1", start=0, longer=16)
    verify_timeline(PROBLEM, Timeline((first, slowed), makespan=36.0))
    error = refused(first, crossing(1, "g0", "g1", start=0, longer=15.9))
    assert (error.where, error.time) == ("bus", 0)


def test_an_overload_of_a_limit_between_quiet_times_is_seen():
    """Over the 100 µs the bytes would fit, over the 20 µs in which both are sent they do not."""
    error = refused(crossing(0, "g0", "s", start=40), crossing(1, "g0", "g1", start=40))

    assert (error.where, error.time) == ("bus", 40)
