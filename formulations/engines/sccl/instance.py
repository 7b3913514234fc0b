"""Instance in steps as whole numbers for the solver, and what is proved of it without a search.

Chunks with one destination never need copies, so those that begin at the same devices are
counted, not distinguished: a flow. What arrives is dealt out to them afterwards. Everything that
crosses to the other process is a list of whole numbers (`Instance.request`), and the solver's
answer becomes a plan.

What links carry in a round are exact fractions (`capacities`). A round is the time that one chunk
takes over the slowest link; a link of ``b`` times its bandwidth carries ``b`` chunks in a round and
``floor(b * r)`` in a step of r rounds.

Three bounds need no search (`Least`). A chunk crosses one way in a step, so there are at least as
many steps as paths from a holder to the farthest destination. Of N chunks that must leave a set of
devices, whose links out carry B chunks in a round, at least N / B rounds are made, however they are
dealt out to steps: the inverse of the bandwidth of the cut (SCCL, section 2). And all links
together carry all that chunks cross on their shortest paths.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import compress, pairwise
from typing import Any

import numpy as np

from ccl.errors import Infeasible
from ccl.problem import Problem
from ccl.topology import Topology
from formulations.bounds.cuts import Network, common_cuts, leaving_of
from formulations.bounds.prices import binding_cuts
from formulations.engines.epoch_grid.arcs import distances as between
from formulations.engines.list_scheduling.multistart import Task
from formulations.engines.list_scheduling.timed import TimedTransfers

FINEST = 1000
"""Largest numerator and denominator of what a link carries in a round."""

ALL_SETS = 10
"""Devices up to which all sets of them are looked at."""

SAME = 1e-9
"""Share by which a ratio of bandwidths may be off the fraction that it is taken for."""


def uneven(topology: Topology) -> str | None:
    """Explain why bandwidths cannot be counted in rounds, or None if they can."""
    slowest = min((each.bandwidth for each in topology.links), default=1.0)
    for link in topology.links:
        ratio = link.bandwidth / slowest
        found = Fraction(ratio).limit_denominator(FINEST)
        if found > FINEST:
            return (
                f"link {link} of {link.bandwidth:g} GB/s carries more than {FINEST} chunks in a "
                f"round of the slowest link, {slowest:g} GB/s; leave that link out"
            )
        if abs(float(found) - ratio) > SAME * ratio:
            return (
                f"link {link} has {link.bandwidth!r} GB/s, in no ratio of whole numbers up to "
                f"{FINEST} with the slowest of {slowest!r} GB/s; make bandwidths rounder"
            )
    return None


def capacities(topology: Topology) -> tuple[Fraction, ...]:
    """Return the chunks that each link carries in a round; `uneven` has let the topology pass."""
    slowest = min(each.bandwidth for each in topology.links)
    return tuple(
        Fraction(each.bandwidth / slowest).limit_denominator(FINEST) for each in topology.links
    )


def described(topology: Topology, nbytes: float) -> str:
    """Describe what a round is, for chunks of `nbytes`."""
    slowest = min(topology.links, key=lambda each: each.bandwidth)
    carried = ", ".join(str(each) for each in sorted(set(capacities(topology))))
    return (
        f"a round is a chunk on the slowest link, {nbytes * slowest.beta:.6g} µs at "
        f"{slowest.bandwidth:g} GB/s; links carry {carried} chunks in one"
    )


@dataclass(frozen=True)
class Least:
    """What is proved without a search.

    Parameters
    ----------
    steps
        No plan has fewer.
    rounds
        No plan has fewer, though this need not be a whole number.
    why_steps, why_rounds
        In words.
    """

    steps: int
    rounds: Fraction
    why_steps: str
    why_rounds: str

    @property
    def in_order(self) -> int:
        """The least number of steps of one round each."""
        return max(self.steps, math.ceil(self.rounds))

    def refutes(self, steps: int, rounds: int) -> str | None:
        """Explain why no plan has so many steps and rounds, or return None if that is open."""
        if steps < self.steps:
            return self.why_steps
        if rounds < self.rounds:
            return self.why_rounds
        if rounds < steps:
            return "each step takes a round or more"
        return None

    def more(self, steps: int, rounds: int) -> str:
        """Describe what would not be refuted, to be read after a refusal, or nothing."""
        wanted = []
        if steps < self.steps:
            wanted.append(f"{self.steps} steps")
        needed = max(steps, self.steps, math.ceil(self.rounds))
        if rounds < needed:
            wanted.append(f"{needed} rounds")
        return f"; allow {' and '.join(wanted)} or more" if wanted else ""


def least_of(problem: Problem, task: Task) -> Least:
    """Prove what can be without a search; `task` is that of the problem.

    Raises
    ------
    Infeasible
        If no paths lead where chunks have to be.
    """
    steps, why_steps = _farthest(problem, task)
    rounds, why_rounds = max(_crowded(problem), _crossed(problem, task), key=lambda each: each[0])
    return Least(steps, rounds, why_steps, why_rounds)


def distances(task: Task, *, links: bool = False) -> np.ndarray:
    """Return the fewest paths from device to device, infinite without, (devices, devices).

    Or the fewest `links` that they cross.
    """
    transfers = task.transfers
    cost = np.diff(transfers.first) if links else np.ones(len(transfers))
    return between(transfers.src, transfers.dst, cost, len(transfers.topology.devices))


def _farthest(problem: Problem, task: Task) -> tuple[int, str]:
    far = distances(task)
    worst, where = 0.0, (0, 0, 0)
    for number, row in enumerate(task.wants):
        held = np.flatnonzero(np.isfinite(task.there[number]))
        wanted = np.flatnonzero(row)
        if len(wanted):
            near = far[held][:, wanted].min(axis=0)
            if near.max() > worst:
                goal = int(wanted[near.argmax()])
                worst, where = float(near.max()), (number, goal, held[far[held, goal].argmin()])
    chunk, device, holder = where
    name, start = (problem.topology.devices[each].name for each in (device, holder))
    if not math.isfinite(worst):
        raise Infeasible(f"no path leads to {name} from where chunk {chunk} is")
    steps = max(1, int(worst))
    return steps, f"chunk {chunk} takes {steps} step{'s' * (steps > 1)} from {start} to {name}"


def _crossed(problem: Problem, task: Task) -> tuple[Fraction, str]:
    """Return the rounds that all links together take for what has to cross them, and why.

    A chunk for one device crosses the links from the nearest holder; one for several crosses a
    link into each of them.
    """
    far, total = distances(task, links=True), 0
    for there, wants in zip(task.there, task.wants, strict=True):
        held = np.isfinite(there)
        wanted = np.flatnonzero(wants & ~held)
        alone = len(wanted) == 1
        total += int(far[held][:, wanted].min()) if alone else len(wanted)
    capacity = sum(capacities(problem.topology), Fraction(0))
    rounds = Fraction(total) / capacity
    return rounds, (
        f"chunks cross {total} links at least, and all links carry {capacity} in a round, which "
        f"takes {math.ceil(rounds)} rounds"
    )


def _crowded(problem: Problem) -> tuple[Fraction, str]:
    """Return the most rounds that a set of devices proves, and which set."""
    topology, network = problem.topology, Network(problem)
    sides = np.array([*_sets(network), *common_cuts(network), *binding_cuts(network)])
    chunks = np.rint(leaving_of(network, sides) / problem.collective.chunk_size).astype(int)
    carried = capacities(topology)
    best, why = Fraction(1), "each step takes a round or more"
    for inside, many in zip(sides, chunks.tolist(), strict=True):
        capacity = sum((carried[link] for link in network.crossing(inside)), Fraction(0))
        if many and capacity and Fraction(many) / capacity > best:
            best = Fraction(many) / capacity
            why = _said(topology, inside, many=many, capacity=capacity)
    return best, why


def _sets(network: Network) -> Iterable[np.ndarray]:
    """Return all sets of devices where these are few."""
    many = len(network.problem.topology.devices)
    if many > ALL_SETS:
        return []
    numbers = np.arange(1, 2**many - 1)
    found = (numbers[:, None] >> np.arange(many)) & 1 == 1
    return [each for each in found if each[network.gpus].any()]


def _said(topology: Topology, inside: np.ndarray, *, many: int, capacity: Fraction) -> str:
    names = [each.name for each in topology.devices]
    out = list(compress(names, ~inside))
    some = list(compress(names, inside))
    if len(out) < len(some):
        some, what = out, "come to"
    else:
        what = "leave"
    described = ", ".join(some[:4]) + (f" and {len(some) - 4} others" if len(some) > 4 else "")
    return (
        f"{many} chunks have to {what} {described} over links of {capacity} chunks a round, which "
        f"takes {math.ceil(Fraction(many) / capacity)} rounds"
    )


NEVER = 1_000_000
"""Steps to where no path leads."""


@dataclass(frozen=True)
class Instance:
    """A task in steps.

    Parameters
    ----------
    task
        What has to be done; its times and sizes are not looked at.
    capacity
        Chunks that each resource carries in a round.
    """

    task: Task
    capacity: tuple[Fraction, ...]

    @cached_property
    def held(self) -> np.ndarray:
        """Whether each chunk is at each device at the beginning, shape (chunks, devices)."""
        return np.asarray(np.isfinite(self.task.there))

    @cached_property
    def wanted(self) -> np.ndarray:
        """Whether each device needs and lacks each chunk, shape (chunks, devices)."""
        return np.asarray(self.task.wants & ~self.held)

    @cached_property
    def copied(self) -> tuple[int, ...]:
        """Numbers of the chunks that several devices need."""
        return tuple(np.flatnonzero(self.wanted.sum(axis=1) > 1).tolist())

    @cached_property
    def flows(self) -> tuple[tuple[int, ...], ...]:
        """Numbers of the chunks that one device needs each, those with the same holders joined."""
        found: dict[bytes, list[int]] = defaultdict(list)
        for chunk in np.flatnonzero(self.wanted.sum(axis=1) == 1).tolist():
            found[self.held[chunk].tobytes()].append(chunk)
        return tuple(tuple(each) for each in found.values())

    @cached_property
    def shares(self) -> np.ndarray:
        """Number of the path up to each crossing that copies may share, -1 for none, shape (m,)."""
        return shared_paths(self.task)

    def sends(self, steps: int) -> int:
        """Return the most sends that a model of so many steps chooses among."""
        return len(self.task.transfers) * steps * (len(self.copied) + len(self.flows))

    def request(self, steps: int, rounds: int) -> dict[str, Any]:
        """Return the request to the solver."""
        transfers, task = self.task.transfers, self.task
        far = np.where(np.isfinite(_far := distances(task)), _far, NEVER).astype(int)
        return {
            "steps": steps,
            "rounds": rounds,
            "src": transfers.src.tolist(),
            "dst": transfers.dst.tolist(),
            "first": transfers.first.tolist(),
            "resource": task.resource[transfers.link].tolist(),
            "share": self.shares.tolist(),
            "capacity": [[each.numerator, each.denominator] for each in self.capacity],
            "far": far.tolist(),
            "copied": [
                {"have": _places(self.held[chunk]), "want": _places(self.wanted[chunk])}
                for chunk in self.copied
            ],
            "flows": [
                {
                    "have": _places(self.held[chunks[0]]),
                    "want": [
                        [device, int(many)]
                        for device, many in enumerate(self.wanted[list(chunks)].sum(axis=0))
                        if many
                    ],
                }
                for chunks in self.flows
            ],
        }

    def plan(
        self, copied: Iterable[Sequence[int]], flowing: Iterable[Sequence[int]]
    ) -> TimedTransfers:
        """Return a plan whose starts are steps.

        Parameters
        ----------
        copied
            Place among the copied chunks, transfer and step of each send.
        flowing
            Place among the flows, transfer, step and number of chunks of each send.
        """
        sends = [(self.copied[place], transfer, step) for place, transfer, step in copied]
        by_flow: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        for place, transfer, step, many in flowing:
            by_flow[place].append((step, transfer, many))
        for place, some in by_flow.items():
            sends += self._dealt(self.flows[place], sorted(some))
        chunks, transfers, steps = np.array(sends, dtype=np.int64).reshape(-1, 3).T
        return TimedTransfers(
            transfers, chunks, steps.astype(float), self._groups(chunks, transfers, steps)
        )

    def _dealt(
        self, chunks: Sequence[int], some: Sequence[tuple[int, int, int]]
    ) -> list[tuple[int, int, int]]:
        """Deal a flow out to its chunks: follow what is sent, then name it by where it ends."""
        transfers = self.task.transfers
        src, dst, held = transfers.src.tolist(), transfers.dst.tolist(), self.held[chunks[0]]
        waiting: dict[int, list[_Trace]] = defaultdict(list)
        coming: list[tuple[int, _Trace]] = []
        now = -1
        for step, transfer, many in some:
            if step > now:
                for device, trace in coming:
                    waiting[device].append(trace)
                coming, now = [], step
            for _ in range(many):
                trace = () if held[src[transfer]] else waiting[src[transfer]].pop()
                coming.append((dst[transfer], _without_loop((*trace, (transfer, step)), src, dst)))
        for device, trace in coming:
            waiting[device].append(trace)
        sends = []
        for chunk in chunks:
            device = int(np.flatnonzero(self.wanted[chunk])[0])
            sends += [(chunk, transfer, step) for transfer, step in waiting[device].pop()]
        return sends

    def _groups(self, chunk: np.ndarray, transfer: np.ndarray, step: np.ndarray) -> np.ndarray:
        """Return the number of the transmission that each send is part of."""
        first = self.shares[self.task.transfers.first[transfer]]
        alone = -1 - np.arange(len(transfer))
        keys = np.column_stack(
            [np.where(first < 0, alone, first), np.where(first < 0, 0, chunk), step]
        )
        return np.asarray(np.unique(keys, axis=0, return_inverse=True)[1]).ravel()


_Trace = tuple[tuple[int, int], ...]
"""Transfers and steps that brought a chunk where it is."""


def _without_loop(trace: _Trace, src: Sequence[int], dst: Sequence[int]) -> _Trace:
    """Leave out what a chunk does between leaving a device and coming back to it."""
    end = dst[trace[-1][0]]
    for place, (transfer, _) in enumerate(trace):
        if src[transfer] == end:
            return trace[:place]
    return trace


def _places(row: np.ndarray) -> list[int]:
    return np.flatnonzero(row).tolist()


def shared_paths(task: Task) -> np.ndarray:
    """Return for each crossing the number of its path from the sender, where copies share it.

    Transfers that leave a device over the same link may be one transmission of a chunk if their
    links form a tree and part at devices that copy only. Else all of them cross their links alone.
    """
    transfers = task.transfers
    prefixes: dict[tuple[int, ...], list[int]] = defaultdict(list)
    alone: set[int] = set()
    onwards: dict[tuple[int, ...], set[int]] = defaultdict(set)
    reached: dict[tuple[int, int], tuple[int, ...]] = {}
    link, parts = transfers.link.tolist(), transfers.parts.tolist()
    for begin, stop in pairwise(transfers.first.tolist()):
        for place in range(begin, stop):
            path = tuple(link[begin:place])
            prefixes[*path, link[place]].append(place)
            onwards[path].add(link[place])
            parted = place > begin and len(onwards[path]) > 1 and not parts[place]
            if parted or reached.setdefault((link[begin], link[place]), path) != path:
                alone.add(link[begin])
    found = np.full(len(link), -1, dtype=np.int64)
    for number, (path, places) in enumerate(prefixes.items()):
        if path[0] not in alone and len(prefixes[path[:1]]) > 1:
            found[places] = number
    return found
