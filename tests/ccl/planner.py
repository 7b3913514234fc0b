"""A plain list scheduler: what random schedules are made with, knowing nothing of the verifier.

It keeps the times of a schedule in its own words: a send takes the earliest epoch in which what
it carries is there, its links are free and it leaves them in time.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field, replace
from itertools import pairwise

from ccl.plans import Schedule, Send
from ccl.problem import Problem

EPSILON = 1e-9
MOST_EPOCHS = 10_000


@dataclass(frozen=True)
class Task:
    """A send, perhaps with the sends that take it on from a switch, after other tasks.

    `along` are the other sends of a multicast, or of a sum in switches, with what they are after.
    """

    send: Send
    after: tuple[int, ...] = ()
    onward: tuple[Send, ...] = ()
    along: tuple[tuple[Send, tuple[int, ...]], ...] = ()


@dataclass
class Planner:
    """Places tasks one after the other; links of `shares` never have more of their bandwidth."""

    problem: Problem
    epoch_duration: float
    shares: dict[tuple[str, str], float] = field(default_factory=dict)
    sends: list[Send] = field(default_factory=list)
    starts: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    end: float = 0.0
    last_epoch: dict[tuple[str, str], int] = field(default_factory=dict)
    free: dict[tuple[str, str], float] = field(default_factory=dict)
    loads: dict[tuple[str, int], float] = field(default_factory=dict)
    switched: set[tuple[int, str, int]] = field(default_factory=set)
    shared: set[tuple[int, int, str, str]] = field(default_factory=set)

    def plan(self, tasks: list[Task]) -> Schedule:
        """Place all tasks as early as their order lets them."""
        ends: list[float] = []
        for task in tasks:
            afters = [task.after, *(after for _, after in task.along)]
            ready = [max((ends[i] for i in after), default=0.0) for after in afters]
            ends.append(self._place(task, ready))
        horizon = max(1, math.ceil(self.end / self.epoch_duration - EPSILON))
        return Schedule(tuple(self.sends), self.epoch_duration, horizon)

    def fits_alone(self, task: Task) -> bool:
        """Say whether shared limits let a task through when there is nothing else."""
        empty = Planner(self.problem, self.epoch_duration, self.shares)
        return empty._together(task, 0, [0.0] * (1 + len(task.along))) is not None

    def _place(self, task: Task, ready: list[float]) -> float:
        # One over a longer way begins before the others are ready.
        for epoch in range(int(min(ready) / self.epoch_duration), MOST_EPOCHS):
            trial = self._copy()
            end = trial._together(task, epoch, ready)
            if end is not None:
                self.__dict__.update(trial.__dict__)
                return end
        raise AssertionError(f"{task.send} fits into no epoch")

    def _copy(self) -> Planner:
        starts = {ends: [*those] for ends, those in self.starts.items()}
        return replace(
            self,
            sends=[*self.sends],
            starts=starts,
            last_epoch={**self.last_epoch},
            free={**self.free},
            loads={**self.loads},
            switched={*self.switched},
            shared={*self.shared},
        )

    def _together(self, task: Task, epoch: int, ready: list[float]) -> float | None:
        sends = [replace(send, epoch=epoch) for send in (task.send, *(s for s, _ in task.along))]
        end = self._some(sends, ready)
        if end is None or not task.onward:
            return end
        after = math.ceil(end / self.epoch_duration - EPSILON)
        place = task.send.chunk, task.send.dst, after
        if place in self.switched:
            return None
        self.switched.add(place)
        ends = [self._some([replace(send, epoch=after)], [end]) for send in task.onward]
        return None if None in ends else max(end for end in ends if end is not None)

    def _meets_another(self, sends: list[Send]) -> bool:
        """Say whether a send would share links with one that it does not go along with."""
        marks = {
            (send.epoch, send.chunk, *link)
            for send in sends
            if send.via and send.fraction == 1
            for link in ((send.src, send.via[0]), (send.via[-1], send.dst))
        }
        if marks & self.shared:
            return True
        self.shared |= marks
        return False

    def _some(self, sends: list[Send], ready: list[float]) -> float | None:
        """Place sends that cross together; return when all have arrived, None if they cannot."""
        topology, tau = self.problem.topology, self.epoch_duration
        first = sends[0]
        nbytes = self.problem.collective.chunks[first.chunk].size * first.fraction
        if self._meets_another(sends):
            return None
        latency = [sum(topology.link(*hop).alpha for hop in send.hops) for send in sends]
        joins = len(sends) > 1 and len({send.dst for send in sends}) == 1
        lags = [max(latency) - each if joins else 0.0 for each in latency]
        busy = {hop: nbytes * 1e-3 / self._bandwidth(hop) for send in sends for hop in send.hops}
        capped = any(self._capped(hop) for hop in busy)
        spans = self._spans(sends, lags, busy, joins=joins, capped=capped)
        if any(self.last_epoch.get(hop, 0) > first.epoch for hop in spans):
            return None
        begin = first.epoch * tau
        start = max([begin, *(self.free.get(hop, 0.0) - spans[hop][1] for hop in spans)])
        for hop, (_, late, until) in spans.items():
            epochs = max(1, math.ceil(busy[hop] / tau - EPSILON))
            if start + busy[hop] > begin + epochs * tau + EPSILON:
                return None
            since = first.epoch + int(late / tau + EPSILON)
            wide = round((until - late) / tau)
            if self._load(hop, since, epochs=wide, nbytes=nbytes) is None:
                return None
            self.free[hop] = start + late + busy[hop]
            self.last_epoch[hop] = first.epoch
            self.starts.setdefault(hop, []).append(start + late)
        held = begin if capped else start
        if joins and not capped:
            lags = [spans[send.hops[0]][1] for send in sends]
        if any(held + late < when - EPSILON for late, when in zip(lags, ready, strict=True)):
            return None
        self.sends += sends
        ends = []
        for send in sends:
            *_, until = spans[send.hops[-1]]
            quick = self._spans(sends, lags, busy, joins=joins, capped=capped, whole=False)
            gone = max(held + until, start + quick[send.hops[-1]][2])
            ends.append(gone + topology.link(*send.hops[-1]).alpha)
        self.end = max(self.end, *ends)
        return max(ends)

    def _spans(
        self,
        sends: list[Send],
        lags: list[float],
        busy: dict[tuple[str, str], float],
        *,
        joins: bool,
        capped: bool,
        whole: bool = True,
    ) -> dict[tuple[str, str], tuple[float, float, float]]:
        """Return of each link the alphas before it, and from when until when it is held.

        A sum that nothing limits is a multicast backwards: its times are counted from the end.
        """
        if joins and not capped:
            return self._meeting(sends, busy)
        tau = self.epoch_duration
        came: dict[tuple[str, str], tuple[float, float]] = {}
        frames: dict[tuple[str, str], tuple[float, float, float]] = {}
        for send, lag in zip(sends, lags, strict=True):
            lead, before, until = lag, 0.0, 0.0
            for hop in send.hops:
                # The last of the sends over a link knows all that come to it.
                was = came.get(hop, (0.0, 0.0))
                begin, end = came[hop] = max(was[0], before), max(was[1], until)
                if capped and self._capped(hop):
                    least = max(busy[hop] / self.shares.get(hop, 1.0), end - begin)
                    many = max(1, math.ceil(least / tau - EPSILON))
                    before = begin
                    until = begin + many * tau if whole else max(begin + busy[hop], end)
                else:
                    before = max(begin, end - busy[hop])
                    until = before + busy[hop]
                frames[hop] = lead, lead + before, lead + until
                lead += self.problem.topology.link(*hop).alpha
        return frames

    def _meeting(
        self, sends: list[Send], busy: dict[tuple[str, str], float]
    ) -> dict[tuple[str, str], tuple[float, float, float]]:
        """Count the times of a sum from its end, as of a multicast backwards."""
        alpha = {hop: self.problem.topology.link(*hop).alpha for hop in busy}
        wait: dict[tuple[str, str], float] = {}
        for send in sends:
            before, until = 0.0, 0.0
            for hop in send.hops[::-1]:
                before = wait[hop] = max(before, until - busy[hop])
                until = before + busy[hop]
        first = {send: send.hops[0] for send in sends}
        whole = max(
            sum(alpha[hop] for hop in send.hops) + wait[first[send]] + busy[first[send]]
            for send in sends
        )
        found = {}
        for send in sends:
            lead = whole
            for hop in send.hops[::-1]:
                lead -= alpha[hop]
                until = lead - wait[hop]
                found[hop] = lead, until - busy[hop], until
        return found

    def _capped(self, hop: tuple[str, str]) -> bool:
        limits = self.problem.topology.limits
        return hop in self.shares or any(hop in limit.links for limit in limits)

    def _bandwidth(self, hop: tuple[str, str]) -> float:
        """Return the GB/s that a link has when all others of its limits are quiet."""
        topology = self.problem.topology
        limits = [limit.bandwidth for limit in topology.limits if hop in limit.links]
        return min([topology.link(*hop).bandwidth, *limits])

    def _load(self, hop: tuple[str, str], epoch: int, *, epochs: int, nbytes: float) -> bool | None:
        """Count a send in its limits; say whether it has any, and None if they are exceeded."""
        topology = self.problem.topology
        caps = {limit.name: limit.bandwidth for limit in topology.limits if hop in limit.links}
        if not self._capped(hop):
            return False
        caps[f"{hop}"] = topology.link(*hop).bandwidth * self.shares.get(hop, 1.0)
        for name, bandwidth in caps.items():
            for k in range(epoch, epoch + epochs):
                load = self.loads.get((name, k), 0.0) + nbytes / epochs
                if load > bandwidth * 1e3 * self.epoch_duration * (1 + EPSILON / 10):
                    return None
                self.loads[name, k] = load
        return True


def spread(problem: Problem, rng: random.Random, *, through: bool) -> list[Task]:
    """Send every chunk along a random tree: down from its holder, or up to its destination.

    A sum with several destinations goes up to one of them and down again.
    """
    tasks: list[Task] = []
    for number, chunk in enumerate(problem.collective.chunks):
        tree = _Tree(problem, number, rng=rng, through=through)
        if not chunk.reduced:
            tree.down(tasks, chunk.holders[0])
            continue
        root = rng.choice(chunk.destinations)
        done = tree.up(tasks, root)
        if len(chunk.destinations) > 1:
            tree.down(tasks, root, after=done)
    return tasks


def split(problem: Problem, rng: random.Random, *, through: bool) -> list[Task]:
    """Send every chunk in parts over random ways."""
    tasks: list[Task] = []
    ranks = problem.topology.ranks
    for number, chunk in enumerate(problem.collective.chunks):
        hops = _hops(problem, through=through)
        goal = ranks[chunk.destinations[0]]
        for fraction in rng.choice([(0.5, 0.5), (0.25, 0.75), (0.25, 0.25, 0.5), (1.0,)]):
            here, seen = ranks[chunk.holders[0]], {ranks[chunk.holders[0]]}
            path: list[Way] = []
            while here != goal:
                ways = [hop for hop in hops if hop[0] == here and hop[1] not in seen]
                if not ways:  # a dead end: start again
                    here, seen, path = ranks[chunk.holders[0]], {ranks[chunk.holders[0]]}, []
                    continue
                path.append(rng.choice(ways))
                here = path[-1][1]
                seen.add(here)
            for k, hop in enumerate(path):
                after = (len(tasks) - 1,) if k else ()
                tasks.append(_task(number, hop, after, through=through, fraction=fraction))
    return tasks


class _Tree:
    """Random trees for one chunk."""

    def __init__(self, problem: Problem, number: int, *, rng: random.Random, through: bool) -> None:
        self._problem = problem
        self._ranks = problem.topology.ranks
        self._hops = _hops(problem, through=through)
        self._number = number
        self._rng = rng
        self._through = through

    def down(self, tasks: list[Task], root: int, *, after: tuple[int, ...] = ()) -> None:
        """Add the sends of a tree that reaches every GPU from the root."""
        came = {self._ranks[root]: after}
        while len(came) < len(self._ranks):
            ways = [hop for hop in self._hops if hop[0] in came and hop[1] not in came]
            hop = self._rng.choice(ways)
            more = self._more(hop, [way for way in ways if way[0] == hop[0]], turned=False)
            for each in (hop, *more):
                came[each[1]] = (len(tasks),)
            along = tuple((_send(self._number, each), ()) for each in more)
            task = _task(self._number, hop, came[hop[0]], through=self._through)
            tasks.append(replace(task, along=along))

    def up(self, tasks: list[Task], root: int) -> tuple[int, ...]:
        """Add the sends of a tree that reaches the root; return the last ones."""
        inside: set[str] = {self._ranks[root]}
        grown: list[tuple[Way, ...]] = []
        while len(inside) < len(self._ranks):
            ways = [hop for hop in self._hops if hop[1] in inside and hop[0] not in inside]
            hop = self._rng.choice(ways)
            more = self._more(hop, [way for way in ways if way[1] == hop[1]], turned=True)
            grown.append((hop, *more))
            inside |= {each[0] for each in grown[-1]}
        came: dict[str, list[int]] = {name: [] for name in inside}
        for hop, *more in reversed(grown):
            came[hop[1]].append(len(tasks))
            along = tuple((_send(self._number, each), tuple(came[each[0]])) for each in more)
            task = _task(self._number, hop, tuple(came[hop[0]]), through=self._through)
            tasks.append(replace(task, along=along))
        return tuple(came[self._ranks[root]])

    def _more(self, hop: Way, ways: list[Way], *, turned: bool) -> list[Way]:
        """Choose ways that can be crossed together with one."""
        chosen = [hop]
        if self._through and hop[2] and self._rng.random() < 0.7:
            for way in self._rng.sample(ways, len(ways)):
                new = way[turned ^ 1] not in {each[turned ^ 1] for each in chosen}
                if new and all(self._go_along(way, each, turned=turned) for each in chosen):
                    chosen.append(way)
        return chosen[1:]

    def _go_along(self, one: Way, other: Way, *, turned: bool) -> bool:
        """Say whether two ways part, or run together, at a switch that can do it."""
        routes = [(way[0], *way[2], way[1])[:: -1 if turned else 1] for way in (one, other)]
        common = 0
        while routes[0][common] == routes[1][common]:
            common += 1
        device = self._problem.topology.device(routes[0][common - 1])
        apart = set(pairwise(routes[0][common:])) & set(pairwise(routes[1][common:]))
        return common > 1 and not apart and (device.reduces if turned else device.copies)


Way = tuple[str, str, tuple[str, ...]]
"""The ends of a way, and the switches between them."""


def _hops(problem: Problem, *, through: bool) -> list[Way]:
    """List the ways from a GPU to another over one link, one switch or, going through, more."""
    topology = problem.topology
    found: list[Way] = []
    routes = [(name,) for name in topology.ranks]
    while routes:
        route = routes.pop()
        for link in topology.links_out[route[-1]]:
            if link.dst in topology.rank and link.dst != route[0]:
                found.append((route[0], link.dst, route[1:]))
            elif link.dst not in {*topology.rank, *route} and (through or len(route) == 1):
                routes.append((*route, link.dst))
    return sorted(found)


def _send(number: int, way: Way) -> Send:
    return Send(0, number, way[0], way[1], way[2])


def _task(
    number: int, hop: Way, after: tuple[int, ...], *, through: bool, fraction: float = 1.0
) -> Task:
    src, dst, via = hop
    if through or not via:
        return Task(Send(0, number, src, dst, via, fraction), after)
    onward = Send(0, number, via[0], dst, (), fraction)
    return Task(Send(0, number, src, via[0], (), fraction), after, (onward,))
