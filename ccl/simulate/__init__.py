"""Continuous-time replay: a plan becomes a `Timeline` in which everything goes as early as it can.

A link takes ``alpha + bytes * beta`` for a send and serves one at a time, in the order of the
plan; latency overlaps the next transmission.
"""

from __future__ import annotations

from ccl.problem import Problem
from ccl.schedule import Schedule
from ccl.simulate.schedule import replay_schedule
from ccl.timeline import Timeline


def simulate(problem: Problem, plan: Schedule, *, chunks: int | None = None) -> Timeline:
    """Replay a plan that `ccl.verify` accepts."""
    return replay_schedule(problem, plan)
