"""``python -m formulations.engines.sccl.worker``: instances decided in a process of its own.

As `formulations.engines.cp_sat.worker`, but it answers one request after the other, each with one
line: ``status`` (found, impossible or undecided), the sends and the rounds of the steps. It ends at
once when the pipe that requests come through is closed.

An instance is a collective in S steps of R rounds together, as a constraint program (`Model`). Step
s = 0 .. S-1 takes ``r[s] >= 1`` rounds, and ``sum of r[s] = R``. For every chunk c that several
devices need and every path w from a device u to a device v a literal ``x[c, w, s]``; for every
chunk and device ``has[c, v, s]``, whether it is there when step s begins:

    has[c, v, 0] = 1 for holders, 0 for others
    has[c, v, s + 1] = has[c, v, s] + sum of x[c, w, s] into v      so it comes once at most
    has[c, v, S] = 1                                                for every v that needs c
    x[c, w, s] <= has[c, u, s]                                      what is sent is there
    sum of what crosses link e in step s <= b[e] * r[s]             b chunks in a round

Of a chunk that one device needs there is no reason to have two: those with the same holders are a
flow of whole amounts ``f[w, s]``, with ``h[v, s]`` of them at v when step s begins:

    h[v, s + 1] = h[v, s] - sum of f[w, s] out of v + sum of f[w, s] into v
    sum of f[w, s] out of v <= h[v, s]           no bound for holders, and none come back to them
    h[v, S] = the number that v needs

A path that leaves too few steps, from a holder or to who needs the chunk, is left out. Paths of one
chunk over copying devices load the links that they share once. Capacities b are fractions p / q, so
that the last row is ``q * load <= p * r[s]``.
"""

import json
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import IO, Any

from ortools.sat.python import cp_model
from ortools.sat.python.cp_model import LinearExprT

from formulations.engines.cp_sat.worker import solver_of
from formulations.jobs.child import Speaker, leave, lines_of


class Model:
    """The program of one request, as `sccl.instance.Instance.request` writes it."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        self.request = request
        self.model = cp_model.CpModel()
        self.steps: int = request["steps"]
        spare = request["rounds"] - self.steps
        self.rounds = [self.model.new_int_var(1, 1 + spare, "") for _ in range(self.steps)]
        self.model.add(sum(self.rounds) == request["rounds"])
        self.copied: dict[tuple[int, int, int], cp_model.IntVar] = {}
        self.flowing: dict[tuple[int, int, int], cp_model.IntVar] = {}
        self._load: dict[tuple[int, int], list[LinearExprT]] = defaultdict(list)
        for place, chunk in enumerate(request["copied"]):
            self._copy(place, chunk["have"], chunk["want"])
        for place, flow in enumerate(request["flows"]):
            self._flow(place, flow["have"], dict(flow["want"]))
        self._fits()

    def _routes(
        self, have: Sequence[int], want: Sequence[int]
    ) -> dict[int, dict[int, tuple[list[int], list[int]]]]:
        """Return for each step and device the paths out of it and into it that may be of use."""
        request, far = self.request, self.request["far"]
        holders = set(have)
        early = [min(far[u][v] for u in have) for v in range(len(far))]
        late = [min(far[v][w] for w in want) for v in range(len(far))]
        found: dict[int, dict[int, tuple[list[int], list[int]]]] = {
            step: defaultdict(lambda: ([], [])) for step in range(self.steps)
        }
        for transfer, (u, v) in enumerate(zip(request["src"], request["dst"], strict=True)):
            if v in holders:
                continue
            for step in range(early[u], self.steps - late[v]):
                found[step][u][0].append(transfer)
                found[step][v][1].append(transfer)
        return found

    def _copy(self, place: int, have: Sequence[int], want: Sequence[int]) -> None:
        model, routes = self.model, self._routes(have, want)
        holders, wanted = set(have), set(want)
        for step, devices in routes.items():
            for _, into in devices.values():
                for transfer in into:
                    self.copied[place, transfer, step] = model.new_bool_var("")
        for device in range(len(self.request["far"])):
            if device in holders:
                continue
            self._come(place, device, routes, needed=device in wanted)
        for step in routes:
            self._carry(
                place, step, {transfer for _, into in routes[step].values() for transfer in into}
            )

    def _come(
        self,
        place: int,
        device: int,
        routes: Mapping[int, Mapping[int, tuple[list[int], list[int]]]],
        *,
        needed: bool,
    ) -> None:
        """Let a chunk come to a device once, and be sent on from then."""
        model = self.model
        every: list[cp_model.IntVar] = []
        here = model.new_constant(0)
        for step in range(self.steps):
            out, into = routes[step].get(device, ([], []))
            for transfer in out:
                model.add(self.copied[place, transfer, step] <= here)
            came = [self.copied[place, transfer, step] for transfer in into]
            every += came
            if came and step + 1 < self.steps:
                then = model.new_bool_var("")
                model.add(sum(came) + here == then)
                here = then
        if needed:
            # Without any path into it this is a contradiction, as it should be.
            model.add_exactly_one(every)
        elif every:
            model.add_at_most_one(every)

    def _carry(self, place: int, step: int, transfers: set[int]) -> None:
        """Count what one chunk loads in a step."""
        request, model = self.request, self.model
        alike: dict[tuple[int, int], list[cp_model.IntVar]] = defaultdict(list)
        for transfer in sorted(transfers):
            sent = self.copied[place, transfer, step]
            for cross in range(request["first"][transfer], request["first"][transfer + 1]):
                share, resource = request["share"][cross], request["resource"][cross]
                if share < 0:
                    self._load[resource, step].append(sent)
                else:
                    alike[resource, share].append(sent)
        by_resource: dict[int, list[cp_model.IntVar]] = defaultdict(list)
        for (resource, _), users in alike.items():
            used = users[0]
            if len(users) > 1:
                used = model.new_bool_var("")
                model.add_max_equality(used, users)
            by_resource[resource].append(used)
        for resource, several in by_resource.items():
            self._load[resource, step] += several

    def _flow(self, place: int, have: Sequence[int], want: Mapping[int, int]) -> None:
        model, routes = self.model, self._routes(have, list(want))
        holders, many = set(have), sum(want.values())
        sent = self.flowing
        for step, devices in routes.items():
            for _, into in devices.values():
                for transfer in into:
                    sent[place, transfer, step] = model.new_int_var(0, many, "")
                    self._cross(transfer, step, sent[place, transfer, step])
        for device in range(len(self.request["far"])):
            if device in holders:
                continue
            here = model.new_constant(0)
            for step in range(self.steps):
                out, into = routes[step].get(device, ([], []))
                gone = sum(sent[place, transfer, step] for transfer in out)
                if out:
                    model.add(gone <= here)
                then = (
                    model.new_int_var(0, many, "")
                    if step + 1 < self.steps
                    else model.new_constant(want.get(device, 0))
                )
                model.add(
                    then == here - gone + sum(sent[place, transfer, step] for transfer in into)
                )
                here = then

    def _cross(self, transfer: int, step: int, load: LinearExprT) -> None:
        request = self.request
        for cross in range(request["first"][transfer], request["first"][transfer + 1]):
            self._load[request["resource"][cross], step].append(load)

    def _fits(self) -> None:
        for (resource, step), loads in self._load.items():
            top, below = self.request["capacity"][resource]
            self.model.add(below * sum(loads) <= top * self.rounds[step])


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer all requests."""
    speak = Speaker(answers)
    for line in lines_of(requests):
        speak.line(decided(json.loads(line)))


def decided(request: Mapping[str, Any]) -> dict[str, Any]:
    """Decide one instance."""
    begin = time.monotonic()
    model = Model(request)
    solver = solver_of(request, built=time.monotonic() - begin)
    status = solver.solve(model.model)
    if status == cp_model.MODEL_INVALID:
        raise ValueError(model.model.validate())
    proto = model.model.proto
    answer: dict[str, Any] = {
        "status": "impossible" if status == cp_model.INFEASIBLE else "undecided",
        "variables": len(proto.variables),
        "constraints": len(proto.constraints),
        "sends": len(model.copied) + len(model.flowing),
    }
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        answer |= {
            "status": "found",
            "rounds": [solver.value(each) for each in model.rounds],
            "copied": [key for key, sent in model.copied.items() if solver.value(sent)],
            "flowing": [
                (*key, solver.value(sent))
                for key, sent in model.flowing.items()
                if solver.value(sent)
            ],
        }
    return answer


if __name__ == "__main__":
    leave(serve)
