"""Continuous-time replay: a plan becomes a `Timeline` in which everything goes as early as it can.

A link takes ``alpha + bytes * beta`` for what it sends and serves one send at a time; latency
overlaps the next transmission. Shared limits slow transfers down.
"""

from __future__ import annotations

from ccl.plans import Flow, Forest, Schedule
from ccl.problem import Problem
from ccl.simulate.schedule import replay_schedule
from ccl.simulate.steady import replay_flow, replay_forest
from ccl.timeline import Timeline
from ccl.topology import no_collection


def simulate(
    problem: Problem, plan: Schedule | Forest | Flow, *, chunks: int | None = None
) -> Timeline:
    """Replay a plan that `ccl.verify` accepts; of another the replay means nothing.

    Parameters
    ----------
    problem
        What the plan is for.
    plan
        A schedule, whose order of sends is preserved while its epochs are ignored, or a forest or a
        flow, which are cut into parts.
    chunks
        In about how many parts each chunk of a forest or flow is cut: each of its trees or paths
        takes its exact share in equal parts, one at least. By default 64, or as many as keep the
        crossings of links below 50,000, and twice as many again as long as that gains more than
        1 % and crossings stay below 100,000; `Timeline.chunks` says how many. A schedule
        sends its chunks whole, whatever is given here.
    """
    with no_collection():
        if isinstance(plan, Schedule):
            return replay_schedule(problem.cut_into(plan.chunks), plan)
        if isinstance(plan, Forest):
            return replay_forest(problem, plan, chunks=chunks)
        return replay_flow(problem, plan, chunks=chunks)
