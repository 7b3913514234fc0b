"""Whether a plan does what it promises: it replays the rules, never the solver's arithmetic.

Nothing here is shared with a formulation or with the replay (`ccl.simulate`), so that a mistake
there cannot hide here.
"""

from __future__ import annotations

from ccl.problem import Problem
from ccl.schedule import Schedule
from ccl.verify.schedule import verify_schedule


def verify(problem: Problem, plan: Schedule) -> None:
    """Return if `plan` solves `problem`, raise otherwise.

    Raises
    ------
    ScheduleError
        At the first broken rule in time; it names the device, link or limit.
    """
    verify_schedule(problem, plan)
