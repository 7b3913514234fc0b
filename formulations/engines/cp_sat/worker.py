"""``python -m formulations.engines.cp_sat.worker``: constraint programming in a process of its own.

OR-tools and HiGHS carry libraries of the same name, so one process can load one of them: this one
has OR-tools and never HiGHS, its parent vice versa. It reads one line, the request, and
writes a line for every news: ``solution``, ``bound``, and ``end``; it ends at once when the pipe
that the request came through is closed.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Mapping
from typing import IO, Any

from ortools.sat.python import cp_model

from formulations.engines.cp_sat.model import Model, Waiting


class _Heard(cp_model.CpSolverSolutionCallback):
    """Writes every better solution."""

    def __init__(self, model: Model, answers: IO[bytes]) -> None:
        super().__init__()
        self.model, self.answers = model, answers

    def on_solution_callback(self) -> None:
        model = self.model
        pairs = [pair for pair in model.pairs if self.boolean_value(model.chosen[pair])]
        say(
            self.answers,
            event="solution",
            makespan=round(self.objective_value),
            bound=_ticks(self.best_objective_bound),
            pairs=pairs,
            starts=[self.value(model.start(pair)) for pair in pairs],
        )


def say(answers: IO[bytes], **news: Any) -> None:
    """Write one line."""
    answers.write(json.dumps(news).encode() + b"\n")
    answers.flush()


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer the one request that `requests` holds."""
    request = json.loads(requests.readline())
    begin = time.monotonic()
    threading.Thread(target=_until_abandoned, args=(requests,), daemon=True).start()
    model = Waiting(request) if request["waits"] else Model(request)
    proto = model.model.proto
    say(
        answers,
        event="size",
        variables=len(proto.variables),
        constraints=len(proto.constraints),
        nonzeros=model.crossings,
    )
    solver = _solver(request, built=time.monotonic() - begin)
    solver.best_bound_callback = lambda bound: say(answers, event="bound", bound=_ticks(bound))
    # Where chunks may wait along the path, a solution is no plan.
    status = solver.solve(model.model, None if request["waits"] else _Heard(model, answers))
    names = {cp_model.OPTIMAL: "optimal", cp_model.INFEASIBLE: "infeasible"}
    if status == cp_model.MODEL_INVALID:
        raise ValueError(model.model.validate())
    say(
        answers,
        event="end",
        status=names.get(status, "limit"),
        bound=_ticks(solver.best_objective_bound),
    )


def _solver(request: Mapping[str, Any], *, built: float) -> cp_model.CpSolver:
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = max(0.01, request["seconds"] - built)
    solver.parameters.num_workers = request["workers"]
    solver.parameters.random_seed = request["seed"]
    return solver


def _ticks(bound: float) -> int:
    """Return a bound of the solver as the whole number that it is."""
    return round(bound)


def _until_abandoned(requests: IO[bytes]) -> None:
    """End the process when nobody holds the other end of the pipe any more."""
    requests.read()
    os._exit(3)


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
    # The thread that reads on would prevent an orderly end.
    os._exit(0)
