"""A plan at another size: every chunk larger or smaller by one factor, the order of sends kept.

A forest and a flow say shares, which hold at any size. A schedule says epochs. With chunks f times
as large, transmissions take f times as long and latencies stay:

* epochs f times as long keep every deadline where f >= 1, as latencies become shorter beside them;
* epochs as long as before do so where f < 1, as nothing takes longer than it did.

The replay forgets the epochs, so that their length changes nothing where no limit is shared; where
one is, shorter epochs promise links more, and where f < 1 epochs f times as long are tried too.
What a sum contains may depend on what has arrived in time, so that every scaled schedule is
verified, and one that breaks a rule is not used.
"""

from __future__ import annotations

from dataclasses import replace

from ccl.errors import ScheduleError
from ccl.problem import Problem
from ccl.result import Plan
from ccl.schedule import Schedule
from ccl.simulate import simulate
from ccl.verify import verify
from formulations.analyses.comparison.asked import resized


def sized(problem: Problem, size: float) -> Problem:
    """Return the same problem at `size` bytes."""
    return replace(problem, collective=resized(problem.collective, size))


def scaled(problem: Problem, plan: Plan, size: float) -> tuple[Plan, float]:
    """Return a plan of `problem` at `size` bytes, verified, and its makespan in µs.

    Raises
    ------
    ScheduleError
        If it is none at that size: a sum would hold something else, or a buffer is too small.
    """
    target = sized(problem, size)
    factor = size / problem.collective.size
    tries: list[Plan] = [plan]
    if isinstance(plan, Schedule) and factor != 1:
        epochs = (factor,) if factor > 1 else (factor, 1.0)
        tries = [replace(plan, epoch_duration=plan.epoch_duration * each) for each in epochs]
    found: list[tuple[float, int]] = []
    for place, each in enumerate(tries):
        try:
            verify(target, each)
        except ScheduleError:
            if place == len(tries) - 1 and not found:
                raise
            continue
        found.append((simulate(target, each).makespan, place))
    makespan, place = min(found)
    return tries[place], makespan
