"""A plain list scheduler: what random schedules are made with, knowing nothing of the verifier.

It keeps the times of a schedule in its own words: a send takes the earliest epoch in which what
it carries is there, its links are free and it leaves them in time.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field, replace

from ccl.problem import Problem
from ccl.schedule import Schedule, Send

EPSILON = 1e-9
MOST_EPOCHS = 10_000


@dataclass(frozen=True)
class Task:
    """A send, perhaps with the sends that take it on from a switch, after other tasks."""

    send: Send
    after: tuple[int, ...] = ()
    onward: tuple[Send, ...] = ()


@dataclass
class Planner:
    """Places tasks one after the other."""

    problem: Problem
    epoch_duration: float
    sends: list[Send] = field(default_factory=list)
    starts: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    end: float = 0.0
    last_epoch: dict[tuple[str, str], int] = field(default_factory=dict)
    free: dict[tuple[str, str], float] = field(default_factory=dict)
    loads: dict[tuple[str, int], float] = field(default_factory=dict)
    switched: set[tuple[int, str, int]] = field(default_factory=set)

    def plan(self, tasks: list[Task]) -> Schedule:
        """Place all tasks as early as their order lets them."""
        ends: list[float] = []
        for task in tasks:
            ready = max((ends[i] for i in task.after), default=0.0)
            ends.append(self._place(task, ready))
        horizon = max(1, math.ceil(self.end / self.epoch_duration - EPSILON))
        return Schedule(tuple(self.sends), self.epoch_duration, horizon)

    def _place(self, task: Task, ready: float) -> float:
        for epoch in range(int(ready / self.epoch_duration), MOST_EPOCHS):
            trial = self._copy()
            end = trial._together(task, epoch, ready)
            if end is not None:
                self.__dict__.update(trial.__dict__)
                return end
        msg = f"{task.send} fits into no epoch"
        raise AssertionError(msg)

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
        )

    def _together(self, task: Task, epoch: int, ready: float) -> float | None:
        end = self._one(replace(task.send, epoch=epoch), ready)
        if end is None or not task.onward:
            return end
        after = math.ceil(end / self.epoch_duration - EPSILON)
        place = task.send.chunk, task.send.dst, after
        if place in self.switched:
            return None
        self.switched.add(place)
        ends = [self._one(replace(send, epoch=after), end) for send in task.onward]
        return None if None in ends else max(end for end in ends if end is not None)

    def _one(self, send: Send, ready: float) -> float | None:
        """Place a send in its epoch and return when it has arrived, or None if it cannot be."""
        topology, tau = self.problem.topology, self.epoch_duration
        nbytes = self.problem.collective.chunks[send.chunk].size * send.fraction
        if any(self.last_epoch.get(hop, 0) > send.epoch for hop in send.hops):
            return None
        begin = start = send.epoch * tau
        offset = 0.0
        for hop in send.hops:
            start = max(start, self.free.get(hop, 0.0) - offset)
            offset += topology.link(*hop).alpha
        latency, offset, left = offset, 0.0, 0.0
        for hop in send.hops:
            link = topology.link(*hop)
            busy = nbytes * 1e-3 / self._bandwidth(hop)
            epochs = max(1, math.ceil(busy / tau - EPSILON))
            if start + busy > begin + epochs * tau + EPSILON:
                return None
            limited = self._load(hop, send.epoch, epochs=epochs, nbytes=nbytes)
            if limited is None:
                return None
            start_needed, sent = (begin, begin + epochs * tau) if limited else (start, start + busy)
            if start_needed < ready - EPSILON:
                return None
            self.free[hop] = start + offset + busy
            self.last_epoch[hop] = send.epoch
            self.starts.setdefault(hop, []).append(start + offset)
            offset += link.alpha
            left = max(left, sent)
        self.sends.append(send)
        self.end = max(self.end, left + latency)
        return left + latency

    def _bandwidth(self, hop: tuple[str, str]) -> float:
        """Return the GB/s that a link has when all others of its limits are quiet."""
        topology = self.problem.topology
        limits = [limit.bandwidth for limit in topology.limits if hop in limit.links]
        return min([topology.link(*hop).bandwidth, *limits])

    def _load(self, hop: tuple[str, str], epoch: int, *, epochs: int, nbytes: float) -> bool | None:
        """Count a send in its limits; say whether it has any, and None if they are exceeded."""
        topology = self.problem.topology
        caps = {limit.name: limit.bandwidth for limit in topology.limits if hop in limit.links}
        if not caps:
            return False
        caps[f"{hop}"] = topology.link(*hop).bandwidth
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
        hops = _hops(problem)
        goal = ranks[chunk.destinations[0]]
        for fraction in rng.choice([(0.5, 0.5), (0.25, 0.75), (0.25, 0.25, 0.5), (1.0,)]):
            here, seen = ranks[chunk.holders[0]], {ranks[chunk.holders[0]]}
            path: list[tuple[str, str, tuple[str, ...]]] = []
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
        self._ranks = problem.topology.ranks
        self._hops = _hops(problem)
        self._number = number
        self._rng = rng
        self._through = through

    def down(self, tasks: list[Task], root: int, *, after: tuple[int, ...] = ()) -> None:
        """Add the sends of a tree that reaches every GPU from the root."""
        came = {self._ranks[root]: after}
        while len(came) < len(self._ranks):
            ways = [hop for hop in self._hops if hop[0] in came and hop[1] not in came]
            hop = self._rng.choice(ways)
            came[hop[1]] = (len(tasks),)
            tasks.append(_task(self._number, hop, came[hop[0]], through=self._through))

    def up(self, tasks: list[Task], root: int) -> tuple[int, ...]:
        """Add the sends of a tree that reaches the root; return the last ones."""
        inside, grown = {self._ranks[root]}, []
        while len(inside) < len(self._ranks):
            ways = [hop for hop in self._hops if hop[1] in inside and hop[0] not in inside]
            grown.append(self._rng.choice(ways))
            inside.add(grown[-1][0])
        came: dict[str, list[int]] = {name: [] for name in inside}
        for hop in reversed(grown):
            came[hop[1]].append(len(tasks))
            after = tuple(came[hop[0]])
            tasks.append(_task(self._number, hop, after, through=self._through))
        return tuple(came[self._ranks[root]])


def _hops(problem: Problem) -> list[tuple[str, str, tuple[str, ...]]]:
    """List the ways from a GPU to another that cross one link or one switch."""
    topology = problem.topology
    ranks = set(topology.ranks)
    direct = [(link.src, link.dst, ()) for link in topology.links if {link.src, link.dst} <= ranks]
    crossing = [
        (first.src, second.dst, (first.dst,))
        for first in topology.links
        for second in topology.links_out[first.dst]
        if first.dst not in ranks and first.src != second.dst
    ]
    return [*direct, *crossing]


def _task(
    number: int,
    hop: tuple[str, str, tuple[str, ...]],
    after: tuple[int, ...],
    *,
    through: bool,
    fraction: float = 1.0,
) -> Task:
    src, dst, via = hop
    if through or not via:
        return Task(Send(0, number, src, dst, via, fraction), after)
    onward = Send(0, number, via[0], dst, (), fraction)
    return Task(Send(0, number, src, via[0], (), fraction), after, (onward,))
