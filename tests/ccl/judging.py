"""Short ways to ask the verifier about a handful of sends."""

from __future__ import annotations

import pytest

from ccl.collective import Chunk, custom
from ccl.errors import ScheduleError
from ccl.plans import Schedule, Send
from ccl.problem import Problem
from ccl.simulate import simulate
from ccl.verify import verify, verify_timeline
from tests.ccl.clusters import MB


def refused(problem, *sends, epoch_duration=20.0, horizon=None):
    """Return the error that a schedule of these sends meets."""
    last = max((send.epoch for send in sends), default=0)
    schedule = Schedule(tuple(sends), epoch_duration, horizon or last + 2)
    with pytest.raises(ScheduleError) as caught:
        verify(problem, schedule)
    return caught.value


def accepted(problem, *sends, epoch_duration=20.0, horizon):
    """Say that a schedule of these sends is let through, or raise what it meets."""
    verify(problem, Schedule(tuple(sends), epoch_duration, horizon))
    return True


def send_one(topology, src=0, dst=1, *, size=MB):
    """One chunk from a rank to another."""
    return Problem(topology, custom(len(topology.ranks), [Chunk(size, (src,), (dst,))]))


def send_many(topology, count, src=0, dst=1, *, size=MB):
    """Several chunks from a rank to another."""
    chunk = Chunk(size, (src,), (dst,))
    return Problem(topology, custom(len(topology.ranks), [chunk] * count))


def named(epoch, src, dst, *ranks, via=(), chunk=0):
    """Return a send of contributions of ranks."""
    return Send(epoch, chunk, src, dst, via, terms=frozenset(ranks))


def summed(topology, holders, destinations, *, size=MB):
    """Return the problem of one sum."""
    chunk = Chunk(size, tuple(holders), tuple(destinations), reduced=True)
    return Problem(topology, custom(len(topology.ranks), [chunk]))


def replay(problem, plan, *, chunks=None):
    """Replay a plan that is checked before and a timeline that is checked after."""
    verify(problem, plan)
    timeline = simulate(problem, plan, chunks=chunks)
    verify_timeline(problem, timeline)
    return timeline
