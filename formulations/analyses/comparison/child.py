"""The child process of a comparison: one request with many cells, one line for every news.

The request names the problem, methods, sizes and those cells that are still to be solved. Events
are ``bound`` of a size, ``begin`` of a cell, its ``progress``, its ``row``, and ``error`` where
nothing can be compared. A plan that is not the last goes along with its progress once a second at
most, so that little is lost when the process is ended.

A cell that takes longer than the parent's patience is ended from outside Python, whatever holds
its interpreter, and the process with it; the parent begins another for the cells that are left.
"""

from __future__ import annotations

import faulthandler
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from typing import IO, Any

from ccl.errors import CclError
from ccl.serialization.topoloom import bound_to_json, problem_from_json, result_to_json
from formulations.analyses.comparison.asked import Question
from formulations.analyses.comparison.cells import row_of, warm_up
from formulations.analyses.comparison.table import Method
from formulations.bounds import initial_bounds
from formulations.core.preparing import wait
from formulations.core.run import Progress
from formulations.jobs.child_end import PAUSE, until_abandoned
from formulations.solving.api import Proofs

PLANS = 1.0
"""Seconds between two plans of one cell that are not its last."""


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Solve the cells that the one request in `requests` names; the body of the child process."""
    request = json.loads(requests.readline())
    threading.Thread(target=until_abandoned, args=(requests,), daemon=True).start()
    speak = Speaker(answers)
    asked = Question(
        problem_from_json(request["problem"]),
        tuple(Method(*each) for each in request["methods"]),
        tuple(request["sizes"]),
        request["time_limit"],
    )
    proofs: list[Proofs] = [cache(partial(initial_bounds, each)) for each in asked.problems]
    try:
        for place in request["bounds"]:
            bound = proofs[place](quick=False, whole_chunks=False)[0]
            speak.line({"event": "bound", "size": place, "bound": bound_to_json(bound)})
    except CclError as error:
        speak.line({"event": "error", "kind": type(error).__name__, "message": str(error)})
        return
    # No cell's time, and nobody's patience, goes into compiling.
    wait()
    warm: set[int] = set()
    for cell in request["cells"]:
        which, _ = asked.cells[cell]
        speak.begin(cell)
        if which not in warm:
            warm.add(which)
            with _watched(request["patience"]):
                warm_up(asked.methods[which], asked.problem.collective.kind)
        with _watched(request["patience"]):
            _solve(asked, cell, proofs=proofs, speak=speak)


@contextmanager
def _watched(seconds: float | None) -> Iterator[None]:
    """End the process when the block takes longer."""
    if seconds is not None:
        faulthandler.dump_traceback_later(seconds, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


def _solve(asked: Question, cell: int, *, proofs: list[Proofs], speak: Speaker) -> None:
    """Solve one cell and tell its row."""
    which, place = asked.cells[cell]
    row = row_of(
        asked.problems[place],
        asked.methods[which],
        size=asked.sizes[place],
        proofs=proofs[place],
        time_limit=asked.time_limit,
        progress=speak.progress,
    )
    result = None if row.result is None else result_to_json(row.result)
    speak.line({"event": "row", "result": result, "why_not": row.why_not})


class Speaker:
    """Writes lines, not too many of those that carry no plan or one that is not the last."""

    def __init__(self, answers: IO[bytes]) -> None:
        self.answers = answers
        self.last, self.plan, self.said = 0.0, 0.0, ""

    def begin(self, cell: int) -> None:
        """Tell that a cell begins."""
        self.plan = time.monotonic()
        self.line({"event": "begin", "cell": cell})

    def progress(self, news: Progress) -> None:
        """Tell how the running cell stands."""
        now = time.monotonic()
        kept = news.result if now - self.plan >= PLANS else None
        if kept is None and now - self.last < PAUSE and news.message == self.said:
            return
        self.last, self.said = now, news.message
        if kept is not None:
            self.plan = now
        self.line(
            {
                "event": "progress",
                "seconds": news.seconds,
                "incumbent": news.incumbent,
                "bound": news.bound,
                "message": news.message,
                "result": None if kept is None else result_to_json(kept),
            }
        )

    def line(self, event: Mapping[str, Any]) -> None:
        """Write one line."""
        self.answers.write(json.dumps(event).encode() + b"\n")
        self.answers.flush()
