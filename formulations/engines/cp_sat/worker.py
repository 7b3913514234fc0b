"""``python -m formulations.engines.cp_sat.worker``: constraint programming in a process of its own.

OR-tools and HiGHS carry libraries of the same name, so one process can load one of them: this one
has OR-tools and never HiGHS, its parent vice versa. It reads one line, the request, and
writes a line for every news: ``solution``, ``bound``, and ``end``; it ends at once when the pipe
that the request came through is closed.
"""

import json
import threading
import time
from collections.abc import Mapping
from typing import IO, Any

from ortools.sat.python import cp_model

from formulations.engines.cp_sat.model import Model, Waiting
from formulations.jobs.child import Speaker, leave, until_abandoned


class _Heard(cp_model.CpSolverSolutionCallback):
    """Writes every better solution."""

    def __init__(self, model: Model, speak: Speaker) -> None:
        super().__init__()
        self.model, self.speak = model, speak

    def on_solution_callback(self) -> None:
        model = self.model
        pairs = [pair for pair in model.pairs if self.boolean_value(model.chosen[pair])]
        self.speak.line(
            {
                "event": "solution",
                "makespan": round(self.objective_value),
                "bound": round(self.best_objective_bound),
                "pairs": pairs,
                "starts": [self.value(model.start(pair)) for pair in pairs],
            }
        )


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer the one request that `requests` holds."""
    request = json.loads(requests.readline())
    begin = time.monotonic()
    threading.Thread(target=until_abandoned, args=(requests,), daemon=True).start()
    model = Waiting(request) if request["waits"] else Model(request)
    proto = model.model.proto
    speak = Speaker(answers)
    sizes = {"variables": len(proto.variables), "constraints": len(proto.constraints)}
    speak.line({"event": "size", **sizes, "nonzeros": model.crossings})
    solver = solver_of(request, built=time.monotonic() - begin)
    solver.best_bound_callback = lambda bound: speak.line({"event": "bound", "bound": round(bound)})
    # Where chunks may wait along the path, a solution is no plan.
    status = solver.solve(model.model, None if request["waits"] else _Heard(model, speak))
    names = {cp_model.OPTIMAL: "optimal", cp_model.INFEASIBLE: "infeasible"}
    if status == cp_model.MODEL_INVALID:
        raise ValueError(model.model.validate())
    bound = round(solver.best_objective_bound)
    speak.line({"event": "end", "status": names.get(status, "limit"), "bound": bound})


def solver_of(request: Mapping[str, Any], *, built: float) -> cp_model.CpSolver:
    """Return the solver that a request asks for, once building has taken `built` seconds."""
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = max(0.01, request["seconds"] - built)
    solver.parameters.num_workers = request["workers"]
    solver.parameters.random_seed = request["seed"]
    return solver


if __name__ == "__main__":
    leave(serve)
