"""Child process of a solve: it answers the one request of `formulations.jobs.solve_job`."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from typing import IO, Any

from ccl.errors import CclError
from ccl.plans import Schedule
from ccl.serialization.topoloom import plan_from_json, problem_from_json
from formulations.core.run import Progress
from formulations.jobs.child import PAUSE, leave, until_abandoned
from formulations.jobs.solve_job import Sender
from formulations.solving.api import solve

LEAST = 0.75
"""Share of a limit that a solver has at least, however long its process takes to begin."""


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer the one request that `requests` holds; the body of the child process."""
    request = json.loads(requests.readline())
    threading.Thread(target=until_abandoned, args=(requests,), daemon=True).start()
    problem = problem_from_json(request["problem"])
    speak = _Speaker(answers, Sender(problem))

    try:
        begin_with = request["begin_with"]
        result = solve(
            problem,
            request["formulation"],
            options=request["options"],
            time_limit=_left(request["time_limit"], asked_at=request["asked_at"]),
            gap=request["gap"],
            solver=request["solver"],
            progress=speak.progress,
            begin_with=None if begin_with is None else _schedule(begin_with),
        )
    except CclError as error:
        speak.line({"event": "error", "kind": type(error).__name__, "message": str(error)})
    else:
        speak.line({"event": "result", "result": speak.results.text(result)})


def _left(time_limit: float | None, *, asked_at: float) -> float | None:
    """Return what beginning this process has left of a limit: most of it on a slow machine too."""
    if time_limit is None:
        return None
    return max(LEAST * time_limit, time_limit - max(0.0, time.time() - asked_at))


def _schedule(value: Any) -> Schedule:
    plan = plan_from_json(value)
    assert isinstance(plan, Schedule)
    return plan


class _Speaker:
    """Writes lines, not too many of those that carry no plan."""

    def __init__(self, answers: IO[bytes], results: Sender) -> None:
        self.answers, self.results = answers, results
        self.last, self.said = 0.0, ""

    def progress(self, news: Progress) -> None:
        now = time.monotonic()
        stale = news.message == self.said and now - self.last < PAUSE
        if news.result is None and stale:
            return
        self.last, self.said = now, news.message
        self.line(
            {
                "event": "progress",
                "seconds": news.seconds,
                "incumbent": news.incumbent,
                "bound": news.bound,
                "message": news.message,
                "result": None if news.result is None else self.results.text(news.result),
            }
        )

    def line(self, event: Mapping[str, Any]) -> None:
        self.answers.write(json.dumps(event).encode() + b"\n")
        self.answers.flush()


if __name__ == "__main__":
    leave(serve)
