"""Verification of a plan: it follows the data, never the solver's arithmetic.

Nothing here is shared with a formulation or with the replay (`ccl.simulate`), so that a mistake
there cannot hide here. Which values a send carries that names its terms is part of what a plan is,
and defined with it (`ccl.plans`).
"""

from __future__ import annotations

from ccl.plans import Flow, Forest, Schedule
from ccl.problem import Problem
from ccl.topology import no_collection
from ccl.verify.forest import verify_flow, verify_forest
from ccl.verify.schedule import verify_schedule
from ccl.verify.timeline import verify_timeline

__all__ = ["verify", "verify_timeline"]


def verify(problem: Problem, plan: Schedule | Forest | Flow) -> None:
    """Return if `plan` solves `problem`, raise otherwise.

    Raises
    ------
    ScheduleError
        At the first broken rule, in time where the plan has a time; it names the device, link or
        limit.
    """
    with no_collection():
        if isinstance(plan, Schedule):
            verify_schedule(problem.cut_into(plan.chunks), plan)
        elif isinstance(plan, Forest):
            verify_forest(problem, plan)
        else:
            verify_flow(problem, plan)
