"""``python -m formulations.engines.sccl.worker``: instances decided in a process of its own.

As `formulations.engines.cp_sat.worker`, but it answers one request after the other, each with one
line:
``status`` (found, impossible or undecided), the sends and the rounds of the steps. It ends at once
when the pipe that requests come through is closed.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
from collections.abc import Mapping
from typing import IO, Any

from ortools.sat.python import cp_model

from formulations.engines.cp_sat.worker import say
from formulations.engines.sccl.model import Model


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer all requests."""
    waiting: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests, waiting), daemon=True).start()
    while True:
        say(answers, **decided(json.loads(waiting.get())))


def decided(request: Mapping[str, Any]) -> dict[str, Any]:
    """Decide one instance."""
    begin = time.monotonic()
    model = Model(request)
    solver = cp_model.CpSolver()
    built = time.monotonic() - begin
    solver.parameters.max_time_in_seconds = max(0.01, request["seconds"] - built)
    solver.parameters.num_workers = request["workers"]
    solver.parameters.random_seed = request["seed"]
    status = solver.solve(model.model)
    if status == cp_model.MODEL_INVALID:
        raise ValueError(model.model.validate())
    proto = model.model.proto
    told: dict[str, Any] = {
        "status": "impossible" if status == cp_model.INFEASIBLE else "undecided",
        "variables": len(proto.variables),
        "constraints": len(proto.constraints),
        "sends": len(model.copied) + len(model.flowing),
    }
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        told |= {
            "status": "found",
            "rounds": [solver.value(each) for each in model.rounds],
            "copied": [key for key, sent in model.copied.items() if solver.value(sent)],
            "flowing": [
                (*key, solver.value(sent))
                for key, sent in model.flowing.items()
                if solver.value(sent)
            ],
        }
    return told


def _listen(requests: IO[bytes], waiting: queue.SimpleQueue[bytes]) -> None:
    """Pass on requests; end the process when nobody holds the other end of the pipe any more."""
    for line in requests:
        waiting.put(line)
    os._exit(0)


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
