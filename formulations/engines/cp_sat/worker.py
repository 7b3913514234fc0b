"""``python -m formulations.engines.cp_sat.worker``: constraint programming in a process of its own.

OR-tools and HiGHS carry libraries of the same name, so one process can load one of them: this one
has OR-tools and never HiGHS, its parent vice versa. It reads one line, the request, and
writes a line for every news: ``solution``, ``bound``, and ``end``; it ends at once when the pipe
that the request came through is closed.

`Model`: who sends what to whom and when, as a constraint program with whole numbers. For every pair
p of a chunk and a path from device u to v (`formulations.engines.cp_sat.instance`) a literal
``x[p]``, for every chunk c that comes to a device v an arrival ``A[c, v]`` in whole ticks, and the
makespan M. A pair starts at ``A[c, v] - delay[p]``.

    minimise    M
    subject to  sum of x[p] into v = 1          for every v that needs c and lacks it
                sum of x[p] into v <= 1         for every other v; what it sends on came to it
                x[p]:  A[c, v] - delay[p] >= A[c, u], or when c is at u at the beginning
                A[c, v] <= M                    for every v that needs c
                no overlap                      of what holds a link
                sum of what holds a link <= M less the shortest time before and after it
                A[c, w] <= A[d, w]              for chunks c, d that may change places

What holds a link is an interval of fixed length that is there if ``x[p]`` is. Paths into one device
that hold a link at the same moments before the chunk comes are one interval, as one of them is
chosen at most.

**Copying devices.** Transfers of c from one device that begin alike may share a transmission up to
where they part: it is one interval, there if one of them is, with a start that is all of theirs.
c may be transmitted several times on such a path, but no more than MOST_TRANSMISSIONS times.

`Waiting`: a program that no plan over switches escapes, as chunks may wait in devices that cannot
store. `Model` lets a chunk cross switches as it comes. A schedule may also send it link by link,
and a switch then keeps it until its way out is free. Here every link of a path p from u to v has a
moment ``b[p, j]`` at which it begins to be held, with alphas of the path before the link
``lead[j]`` and of the whole path ``alpha``, and with ``busy[j]`` for the bytes:

    x[p]:  b[p, j] >= A[c, u] + lead[j]
           b[p, j + 1] >= b[p, j] + lead[j + 1] - lead[j]
           A[c, v] >= b[p, j] + busy[j] + alpha - lead[j]     A[c, v] >= A[c, u] + delay[p]

Crossing without waiting has equalities, waiting and storing along the path only make it later. What
several paths share up to a device that copies is held once at least, so it is one
interval that no path over it begins before. So every plan is a solution that is not longer, and a
bound on all solutions is one on all plans; a solution is not always a plan.

Of a chunk that comes to a device over one link, one path at most is chosen, so that they have one
``b`` for that link together.
"""

import json
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from typing import IO, Any

from ortools.sat.python import cp_model
from ortools.sat.python.cp_model import LinearExprT, LiteralT

from formulations.jobs.child import Speaker, leave, until_abandoned

MOST_TRANSMISSIONS = 3
"""Most transmissions of a chunk from one device on a path that several transfers begin with."""


class Model:
    """The program of one request.

    Parameters
    ----------
    request
        As `formulations.engines.cp_sat.instance.Instance.request` writes it.
    """

    def __init__(self, request: Mapping[str, Any]) -> None:
        self.request = request
        self.model = cp_model.CpModel()
        self.there = {
            (chunk, device): ticks
            for (chunk, device), ticks in zip(request["have"], request["there"], strict=True)
        }
        self.pairs = range(len(request["chunk"]))
        self.chosen = [self.model.new_bool_var("") for _ in self.pairs]
        self.into: dict[tuple[int, int], list[int]] = defaultdict(list)
        self.begin: list[tuple[int, int]] = list(zip(request["chunk"], request["src"], strict=True))
        self.end: list[tuple[int, int]] = list(zip(request["chunk"], request["dst"], strict=True))
        for pair in self.pairs:
            self.into[self.end[pair]].append(pair)
        self.makespan = self.model.new_int_var(request["lower"], request["upper"], "")
        self.arrival = {
            (chunk, device): self.model.new_int_var(
                request["earliest"][chunk][device],
                min(request["latest"][chunk][device], request["upper"]),
                "",
            )
            for chunk, device in self.into
        }
        self.held: dict[int, list[tuple[cp_model.IntervalVar, int, LiteralT, int, int]]] = (
            defaultdict(list)
        )
        self.slots: dict[int, list[tuple[cp_model.IntVar, cp_model.IntVar]]] = {}
        self.parts: dict[tuple[int, int], list[cp_model.IntVar]] = {}
        self._comes_once()
        self._comes_before_it_goes()
        self._holds()
        self._alike()
        self.model.minimize(self.makespan)
        self._hint()

    @property
    def crossings(self) -> int:
        """Number of links that all pairs cross."""
        return len(self.request["resource"])

    def start(self, pair: int) -> LinearExprT:
        """Return when a pair starts if it is chosen."""
        delay: int = self.request["delay"][pair]
        return self.arrival[self.end[pair]] - delay

    def soonest(self, pairs: list[int]) -> int:
        """Return the tick before which no chunk of some pairs is where its pair begins."""
        earliest: list[list[int]] = self.request["earliest"]
        return min(earliest[chunk][device] for chunk, device in map(self.begin.__getitem__, pairs))

    def left(self, pair: int) -> int:
        """Return the ticks that the chunk of a pair takes on from where it ends."""
        chunk, device = self.end[pair]
        tail: int = self.request["tail"][chunk][device]
        return tail

    def _comes_once(self) -> None:
        request, model = self.request, self.model
        wanted = {(chunk, device) for chunk, device in request["want"]}
        for place in wanted:
            # Without any path into it this is a contradiction, as it should be.
            model.add_exactly_one(self.chosen[pair] for pair in self.into.get(place, []))
            if place in self.arrival:
                model.add(self.arrival[place] <= self.makespan)
        for place, pairs in self.into.items():
            if place not in wanted:
                model.add_at_most_one(self.chosen[pair] for pair in pairs)
        self.wanted = wanted

    def _comes_before_it_goes(self) -> None:
        request, model = self.request, self.model
        for pair in self.pairs:
            place = self.begin[pair]
            start, chosen = self.start(pair), self.chosen[pair]
            ready = max(request["ready"][pair], self.there.get(place, 0))
            # A quicker path there may let the chunk come before this one could bring it.
            if ready + request["delay"][pair] > request["earliest"][place[0]][request["dst"][pair]]:
                model.add(start >= ready).only_enforce_if(chosen)
            if place in self.there:
                continue
            if place not in self.into:
                model.add(chosen == 0)
                continue
            model.add(start >= self.arrival[place]).only_enforce_if(chosen)
            if place not in self.wanted:
                model.add_bool_or(
                    [*(self.chosen[each] for each in self.into[place]), chosen.negated()]
                )

    def _holds(self) -> None:
        self._alone()
        self._shared()
        self._once_at_a_time()

    def _once_at_a_time(self) -> None:
        """Let a link be held by one chunk at a time, and what it carries fit in."""
        for held in self.held.values():
            self.model.add_no_overlap(each[0] for each in held)
            load = cp_model.LinearExpr.weighted_sum(
                [each[2] for each in held], [each[1] for each in held]
            )
            head = min(each[3] for each in held)
            tail = min(each[4] for each in held)
            # A link that nothing crosses has nothing before and after it either.
            used = self.model.new_bool_var("")
            self.model.add_max_equality(used, [each[2] for each in held])
            self.model.add(load + (head + tail) * used <= self.makespan)

    def _alone(self) -> None:
        """Make intervals of what one chunk holds before it comes to a device, by when it does."""
        request = self.request
        alike: dict[tuple[int, int, int, int, int], list[int]] = defaultdict(list)
        for pair in self.pairs:
            for cross in range(request["first"][pair], request["first"][pair + 1]):
                begin, end = request["begin"][cross], request["end"][cross]
                if request["shared"][cross] < 0 and end > begin:
                    place = self.end[pair]
                    before = request["delay"][pair] - begin
                    alike[*place, request["resource"][cross], before, end - begin].append(pair)
        for (chunk, device, resource, before, length), pairs in alike.items():
            place = chunk, device
            start = self.arrival[place] - before
            there = self._any(
                pairs, certain=place in self.wanted and len(pairs) == len(self.into[place])
            )
            tail = before - length + request["tail"][chunk][device]
            head = request["earliest"][chunk][device] - before
            self._add(resource, start, length=length, there=there, head=head, tail=tail)

    def _any(self, pairs: list[int], *, certain: bool) -> LiteralT:
        """Return a literal that is true if one of some pairs, of which one can be, is chosen."""
        if certain:
            return True
        if len(pairs) == 1:
            return self.chosen[pairs[0]]
        there = self.model.new_bool_var("")
        self.model.add(sum(self.chosen[pair] for pair in pairs) == there)
        return there

    def _add(
        self,
        resource: int,
        start: LinearExprT,
        *,
        length: int,
        there: LiteralT,
        head: int,
        tail: int,
    ) -> None:
        interval = self.model.new_optional_fixed_size_interval_var(start, length, there, "")
        self.held[resource].append((interval, length, there, max(0, head), max(0, tail)))

    def _shared(self) -> None:
        """Make intervals of what several transfers of a chunk hold together."""
        request, model = self.request, self.model
        users: dict[int, set[int]] = defaultdict(set)
        links: dict[int, set[tuple[int, int, int]]] = defaultdict(set)
        for pair in self.pairs:
            for cross in range(request["first"][pair], request["first"][pair + 1]):
                node = request["shared"][cross]
                if node >= 0:
                    users[node].add(pair)
                    links[node].add(
                        (request["resource"][cross], request["begin"][cross], request["end"][cross])
                    )
        for node, pairs in users.items():
            before = None
            slots = [
                (model.new_bool_var(""), model.new_int_var(0, request["upper"], ""))
                for _ in range(min(len(pairs), MOST_TRANSMISSIONS))
            ]
            self.slots[node] = slots
            for there, start in slots:
                if before is not None:
                    model.add_implication(there, before[0])
                    model.add(before[1] <= start)
                before = there, start
            self._spread(sorted(pairs), slots, node)
            for there, start in slots:
                self._transmit(sorted(pairs), sorted(links[node]), start=start, there=there)

    def _spread(
        self, pairs: list[int], slots: list[tuple[cp_model.IntVar, cp_model.IntVar]], node: int
    ) -> None:
        """Let each chosen pair be part of one of the transmissions, and start with it."""
        model = self.model
        parts: list[list[cp_model.IntVar]] = [[] for _ in slots]
        for pair in pairs:
            part = [model.new_bool_var("") for _ in slots]
            model.add(sum(part) == self.chosen[pair])
            for k, (_, start) in enumerate(slots):
                model.add(self.start(pair) == start).only_enforce_if(part[k])
                parts[k].append(part[k])
            self.parts[node, pair] = part
        for k, (there, _) in enumerate(slots):
            model.add_max_equality(there, parts[k])

    def _transmit(
        self,
        pairs: list[int],
        links: list[tuple[int, int, int]],
        *,
        start: cp_model.IntVar,
        there: cp_model.IntVar,
    ) -> None:
        """Hold the links of one transmission."""
        soonest = self.soonest(pairs)
        left = min(self.request["delay"][pair] + self.left(pair) for pair in pairs)
        for resource, begin, end in links:
            if end > begin:
                self._add(
                    resource,
                    start + begin,
                    length=end - begin,
                    there=there,
                    head=soonest + begin,
                    tail=left - end,
                )

    def _alike(self) -> None:
        for first, second, device in self.request["alike"]:
            if (first, device) in self.arrival and (second, device) in self.arrival:
                self.model.add(self.arrival[first, device] <= self.arrival[second, device])

    def _hint(self) -> None:
        request, model = self.request, self.model
        if not request["chosen"]:
            return
        chosen = set(request["chosen"])
        at = {(chunk, device): ticks for chunk, device, ticks in request["arrival"]}
        for pair in self.pairs:
            model.add_hint(self.chosen[pair], pair in chosen)
        for place, ticks in at.items():
            model.add_hint(self.arrival[place], ticks)
        model.add_hint(self.makespan, max(at.get(place, 0) for place in self.wanted))
        starts = {pair: at[self.end[pair]] - request["delay"][pair] for pair in chosen}
        users: dict[int, list[int]] = defaultdict(list)
        for node, pair in self.parts:
            users[node].append(pair)
        for node, slots in self.slots.items():
            times = sorted({starts[pair] for pair in users[node] if pair in chosen})
            for k, (there, start) in enumerate(slots):
                model.add_hint(there, k < len(times))
                model.add_hint(start, times[k] if k < len(times) else request["upper"])
                for pair in users[node]:
                    inside = pair in chosen and k < len(times) and starts[pair] == times[k]
                    model.add_hint(self.parts[node, pair][k], inside)


Key = tuple[object, ...]


class Waiting(Model):
    """The program for bounds over switches."""

    def _holds(self) -> None:
        request = self.request
        first = request["first"]
        self.moment: dict[Key, cp_model.IntVar] = {}
        self.users: dict[Key, list[int]] = defaultdict(list)
        self.busy: dict[Key, tuple[int, int]] = {}
        for pair in self.pairs:
            self._cross(pair, range(first[pair], first[pair + 1]))
        for key, pairs in self.users.items():
            resource, length = self.busy[key]
            if length > 0:
                self._add(
                    resource,
                    self.moment[key],
                    length=length,
                    there=self._one_of(pairs),
                    head=self.soonest(pairs),
                    tail=min(map(self.left, pairs)),
                )
        self._once_at_a_time()

    def _cross(self, pair: int, crossings: range) -> None:
        """Let the links of a path be held one after the other."""
        request, model, chosen = self.request, self.model, self.chosen[pair]
        arrival, place = self.arrival[self.end[pair]], self.begin[pair]
        # Differences of rounded times may be a tick too long.
        spare = 0 if request["exact"] else 1
        before = None
        for cross in crossings:
            begin = request["begin"][cross]
            length = request["end"][cross] - begin
            key = self._key(pair, cross, last=cross == crossings[-1])
            if key not in self.moment:
                self.moment[key] = model.new_int_var(0, request["upper"], "")
                self.busy[key] = request["resource"][cross], length
            self.users[key].append(pair)
            moment = self.moment[key]
            lead = max(0, begin - spare)
            if place in self.there:
                ready = max(self.there[place], request["ready"][pair]) + lead
                model.add(moment >= ready).only_enforce_if(chosen)
            elif place in self.arrival:
                model.add(moment >= self.arrival[place] + lead).only_enforce_if(chosen)
            after = max(0, length + request["latency"][pair] - begin)
            model.add(arrival >= moment + after).only_enforce_if(chosen)
            if before is not None:
                gap = max(0, begin - before[1] - spare)
                model.add(moment >= before[0] + gap).only_enforce_if(chosen)
            before = moment, begin

    def _key(self, pair: int, cross: int, *, last: bool) -> Key:
        """Return what paths that begin to hold a link together have in common."""
        request = self.request
        resource = request["resource"][cross]
        if request["shared"][cross] >= 0:
            return "shared", request["shared"][cross], resource
        if last:
            length = request["end"][cross] - request["begin"][cross]
            return "last", *self.end[pair], resource, length
        return "own", pair, cross

    def _one_of(self, pairs: list[int]) -> LiteralT:
        """Return a literal that is true if some of the pairs are chosen."""
        if len(pairs) == 1:
            return self.chosen[pairs[0]]
        there = self.model.new_bool_var("")
        self.model.add_max_equality(there, [self.chosen[pair] for pair in pairs])
        return there


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
