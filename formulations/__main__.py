"""Child process of a solve: it answers the one request of `formulations.jobs.solve_job`."""

import json
import threading
import time
from math import inf
from typing import IO, Any

import formulations.bounds  # noqa: F401  every solve begins with them
from ccl.errors import CclError
from ccl.options import make_options
from ccl.plans import Schedule
from ccl.serialization.topoloom import plan_from_json, problem_from_json
from formulations.core.registry import formulation
from formulations.core.run import Progress
from formulations.jobs.child import Speaker, error_event, leave, until_abandoned
from formulations.jobs.solve_job import Sender
from formulations.solving.api import solved

LEAST = 0.75
"""Share of a limit that a solver has at least, however long its process takes to begin."""


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer the one request that `requests` holds; the body of the child process."""
    line = requests.readline()
    if not line:
        return  # it was begun ahead, and there is nothing to be solved
    request = json.loads(line)
    known: dict[str, float] = {}
    threading.Thread(target=until_abandoned, args=(requests, known.update), daemon=True).start()
    problem = problem_from_json(request["problem"])
    speak, results = Speaker(answers), Sender(problem)

    def progress(news: Progress) -> None:
        speak.report(news, None if news.result is None else results.text(news.result))

    try:
        begin_with = request["begin_with"]
        chosen = formulation(request["formulation"])
        result = solved(
            problem,
            chosen,
            make_options(chosen.options, request["options"]),
            time_limit=_left(request["time_limit"], asked_at=request["asked_at"]),
            gap=request["gap"],
            solver=request["solver"],
            progress=progress,
            begin_with=None if begin_with is None else _schedule(begin_with),
            known=lambda: known.get("known", inf),
        )
    except CclError as error:
        speak.line(error_event(error))
    else:
        speak.line({"event": "result", "result": results.text(result)})


def _left(time_limit: float | None, *, asked_at: float) -> float | None:
    """Return what beginning this process has left of a limit: most of it on a slow machine too."""
    if time_limit is None:
        return None
    return max(LEAST * time_limit, time_limit - max(0.0, time.time() - asked_at))


def _schedule(value: Any) -> Schedule:
    plan = plan_from_json(value)
    assert isinstance(plan, Schedule)
    return plan


if __name__ == "__main__":
    leave(serve)
