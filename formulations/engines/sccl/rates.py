"""What links carry in a round, as exact fractions, and what that proves about steps and rounds.

A round is the time that one chunk takes over the slowest link; a link of ``b`` times its bandwidth
carries ``b`` chunks in a round and ``floor(b * r)`` in a step of r rounds.

Three bounds need no search. A chunk crosses one way in a step, so there are at least as many steps
as ways from a holder to the farthest destination. Of N chunks that must leave a set of devices,
whose links out carry B chunks in a round, at least N / B rounds are made, however they are dealt
out to steps: the inverse of the bandwidth of the cut (SCCL, section 2). And all links together
carry all that chunks cross on their shortest ways.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import compress

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from ccl.errors import Infeasible
from ccl.problem import Problem
from ccl.topology import Topology
from formulations.bounds.cuts import Network, common_cuts, leaving_of
from formulations.bounds.search import binding_cuts
from formulations.engines.list_scheduling.multistart import Task

FINEST = 1000
"""Largest numerator and denominator of what a link carries in a round."""

ALL_SETS = 10
"""Devices up to which all sets of them are looked at."""

SAME = 1e-9
"""Share by which a ratio of bandwidths may be off the fraction that it is taken for."""


def uneven(topology: Topology) -> str | None:
    """Say why bandwidths cannot be counted in rounds, or None if they can."""
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


def rooms(topology: Topology) -> tuple[Fraction, ...]:
    """Return the chunks that each link carries in a round; `uneven` has let the topology pass."""
    slowest = min(each.bandwidth for each in topology.links)
    return tuple(
        Fraction(each.bandwidth / slowest).limit_denominator(FINEST) for each in topology.links
    )


def told(topology: Topology, nbytes: float) -> str:
    """Say what a round is, for chunks of `nbytes`."""
    slowest = min(topology.links, key=lambda each: each.bandwidth)
    carried = ", ".join(str(each) for each in sorted(set(rooms(topology))))
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
        """Say why there is no plan of so many steps and rounds, or None if that is not known."""
        if steps < self.steps:
            return self.why_steps
        if rounds < self.rounds:
            return self.why_rounds
        if rounds < steps:
            return "each step takes a round or more"
        return None

    def more(self, steps: int, rounds: int) -> str:
        """Say what would not be refuted, to be read after a refusal, or nothing."""
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
        If no ways lead where chunks have to be.
    """
    steps, why_steps = _farthest(problem, task)
    rounds, why_rounds = max(_crowded(problem), _crossed(problem, task), key=lambda each: each[0])
    return Least(steps, rounds, why_steps, why_rounds)


def distances(task: Task, *, links: bool = False) -> np.ndarray:
    """Return the fewest ways from device to device, infinite without, (devices, devices).

    Or the fewest `links` that they cross.
    """
    moves = task.moves
    many = len(moves.topology.devices)
    cost = np.diff(moves.first) if links else np.ones(len(moves))
    # The shortest of parallel ways, as a matrix adds up what is at one place.
    order = np.lexsort((cost, moves.dst, moves.src))
    pair = moves.src[order] * many + moves.dst[order]
    best = order[np.unique(pair, return_index=True)[1]]
    joined = csr_array((cost[best], (moves.src[best], moves.dst[best])), shape=(many, many))
    return np.asarray(shortest_path(joined))


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
        msg = f"no way leads to {name} from where chunk {chunk} is"
        raise Infeasible(msg)
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
    room = sum(rooms(problem.topology), Fraction(0))
    rounds = Fraction(total) / room
    return rounds, (
        f"chunks cross {total} links at least, and all links carry {room} in a round, which takes "
        f"{math.ceil(rounds)} rounds"
    )


def _crowded(problem: Problem) -> tuple[Fraction, str]:
    """Return the most rounds that a set of devices proves, and which set."""
    topology, network = problem.topology, Network(problem)
    sides = np.array([*_sets(network), *common_cuts(network), *binding_cuts(network)])
    chunks = np.rint(leaving_of(network, sides) / problem.collective.chunk_size).astype(int)
    carried = rooms(topology)
    best, why = Fraction(1), "each step takes a round or more"
    for inside, many in zip(sides, chunks.tolist(), strict=True):
        room = sum((carried[link] for link in network.crossing(inside)), Fraction(0))
        if many and room and Fraction(many) / room > best:
            best = Fraction(many) / room
            why = _said(topology, inside, many=many, room=room)
    return best, why


def _sets(network: Network) -> Iterable[np.ndarray]:
    """Return all sets of devices where these are few."""
    many = len(network.problem.topology.devices)
    if many > ALL_SETS:
        return []
    numbers = np.arange(1, 2**many - 1)
    found = (numbers[:, None] >> np.arange(many)) & 1 == 1
    return [each for each in found if each[network.gpus].any()]


def _said(topology: Topology, inside: np.ndarray, *, many: int, room: Fraction) -> str:
    names = [each.name for each in topology.devices]
    out = list(compress(names, ~inside))
    some = list(compress(names, inside))
    if len(out) < len(some):
        some, what = out, "come to"
    else:
        what = "leave"
    shown = ", ".join(some[:4]) + (f" and {len(some) - 4} others" if len(some) > 4 else "")
    return (
        f"{many} chunks have to {what} {shown} over links of {room} chunks a round, which takes "
        f"{math.ceil(Fraction(many) / room)} rounds"
    )
