"""Trees laid over links: what the routes of a tree share, what waits for what, and their load.

The data of a root is a line. In an all-reduce each in-tree adds up an interval of it and each
out-tree spreads one, both in their order; where two intervals meet, data goes up the one tree and
down the other, from the root on when the root has all of it. The lines of all roots one after the
other are the chunks one after the other.

`steady_loads` is the load of a forest or a flow on every link in its steady state, where latency is
hidden. A problem that is solved again and again, each time by the same trees or flows, takes as
long each time as its busiest link or shared limit: bytes over bandwidth (`steady_makespan`).
Latencies and the filling of the trees are paid once.
"""

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ccl.collective import Collective
from ccl.plans import Flow, Forest, Tree
from ccl.problem import Problem
from ccl.symmetry import Symmetry, orbits_of
from ccl.topology import Topology

_DENOMINATOR = 10**6
"""Numbers that are written as decimals or thirds have a smaller denominator."""


@lru_cache(maxsize=4096)
def exact(value: float) -> Fraction:
    """Return the simplest fraction that is this floating-point number, else all its bits.

    37.2 is 186/5, and a third of 10**9 bytes is 10**9 / 3.
    """
    near = Fraction(value).limit_denominator(_DENOMINATOR)
    return near if float(near) == value else Fraction(value)


@dataclass(frozen=True, slots=True)
class Laid:
    """A tree as links.

    Parameters
    ----------
    links
        Numbers of the links, one for each time that the tree crosses it.
    before
        For each the place here of the one before it, -1 at the root. Of a reduction the order
        is turned round: a link waits for all that name it as theirs.
    """

    links: tuple[int, ...]
    before: tuple[int, ...]


def lay(topology: Topology, tree: Tree, *, reduces: bool) -> Laid:
    """Lay the routes of a tree over links; routes share a link up to a switch that can copy.

    A reduction is laid from its root outwards, where switches that can reduce join routes.
    """
    links: list[tuple[str, str]] = []
    before: list[int] = []
    laid: dict[tuple[str, ...], int] = {}
    brought = {topology.ranks[tree.root]: -1}
    for route in reversed(tree.routes) if reduces else tree.routes:
        stops = route[::-1] if reduces else route
        last, first_new = brought[stops[0]], 1
        for k in range(len(stops) - 2, 0, -1):
            switch = topology.device(stops[k])
            if (switch.reduces if reduces else switch.copies) and stops[: k + 1] in laid:
                last, first_new = laid[stops[: k + 1]], k + 1
                break
        for k in range(first_new, len(stops)):
            links.append((stops[k - 1], stops[k]))
            before.append(last)
            last = laid[stops[: k + 1]] = len(links) - 1
        brought[stops[-1]] = last
    index = topology.link_index
    numbers = [index[(dst, src) if reduces else (src, dst)] for src, dst in links]
    return Laid(tuple(numbers), tuple(before))


def link_orbits(symmetry: Symmetry) -> NDArray[np.int64]:
    """Return the smallest number of a link in the orbit of each, shape (links,)."""
    topology = symmetry.topology
    many, index = len(topology.devices), topology.index
    ends = np.array([(index[link.src], index[link.dst]) for link in topology.links], dtype=np.int64)
    keys = ends[:, 0] * many + ends[:, 1]
    order = np.argsort(keys)
    images = [np.arange(len(keys))]
    for place in symmetry.generators:
        moved = symmetry.devices[place][ends]
        found = np.searchsorted(keys, moved[:, 0] * many + moved[:, 1], sorter=order)
        images.append(order[found])
    return orbits_of(np.array(images))


@dataclass(frozen=True, slots=True)
class Route:
    """A tree of a share of a chunk, or one up and one down.

    Parameters
    ----------
    chunk
        Number of the chunk.
    share
        Of the chunk.
    links
        Numbers of the links.
    after
        For each the places here of those that must have brought something before it sends.
    steps
        For each the step in which it sends where every link takes one step; what is added up is
        sent as late as the root allows, so that it comes to a switch when it is added there.
    """

    chunk: int
    share: Fraction
    links: tuple[int, ...]
    after: tuple[tuple[int, ...], ...]
    steps: tuple[float, ...]


def routes(problem: Problem, forest: Forest) -> Iterator[Route]:
    """Yield the routes of all chunks over the trees of a forest, images left out."""
    if forest.spread:
        yield from _up_and_down(problem, forest)
    else:
        yield from _one_way(problem, forest)


def _one_way(problem: Problem, forest: Forest) -> Iterator[Route]:
    """Yield the routes of chunks that all go out from their roots or all come to them."""
    of_root: defaultdict[int, list[int]] = defaultdict(list)
    for number, chunk in enumerate(problem.collective.chunks):
        if chunk.in_place:
            continue
        ends = chunk.destinations if forest.reduces else chunk.holders
        of_root[ends[0]].append(number)
    found = []
    for tree in forest.trees:
        laid = lay(problem.topology, tree, reduces=forest.reduces)
        rest = _waits(laid, reduces=forest.reduces), _steps(laid, reduces=forest.reduces)
        found += [Route(each, tree.weight, laid.links, *rest) for each in of_root[tree.root]]
    yield from sorted(found, key=lambda way: way.chunk)


def _up_and_down(problem: Problem, forest: Forest) -> Iterator[Route]:
    """Yield the routes of an all-reduce: up an in-tree, then down an out-tree of its root."""
    ends = _ends(problem.collective)
    at, chunk = Fraction(0), 0
    for up, down, weight in _met(forest):
        laid = _joined(problem.topology, up, down)
        stop = at + weight
        while at < stop:
            while ends[chunk + 1] == at:
                chunk += 1
            upto = min(stop, ends[chunk + 1])
            yield Route(chunk, (upto - at) / (ends[chunk + 1] - ends[chunk]), *laid)
            at = upto


def _ends(collective: Collective) -> list[Fraction]:
    """Return where the chunks end on a line of length 1, from 0 on; what is in place has none."""
    sizes = [Fraction(0) if each.in_place else exact(each.size) for each in collective.chunks]
    whole = sum(sizes, Fraction(0))
    return [Fraction(0), *itertools.accumulate(size / whole for size in sizes)]


def _met(forest: Forest) -> Iterator[tuple[Tree, Tree, Fraction]]:
    """Yield in-tree, out-tree and weight of each interval of the roots' data."""
    for root in sorted({tree.root for tree in forest.trees}):
        downs = [(tree, tree.weight) for tree in reversed(forest.spread) if tree.root == root]
        for up in forest.trees:
            left = up.weight if up.root == root else Fraction(0)
            while left:
                down, room = downs.pop()
                weight = min(left, room)
                yield up, down, weight
                left -= weight
                if room > weight:
                    downs.append((down, room - weight))


def _joined(
    topology: Topology, up: Tree, down: Tree
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...], tuple[int, ...]]:
    """Return links of both trees, what each waits for and its step; the second after the first."""
    first, then = lay(topology, up, reduces=True), lay(topology, down, reduces=False)
    many = len(first.links)
    added = tuple(place for place, before in enumerate(first.before) if before < 0)
    after = [added if before < 0 else (many + before,) for before in then.before]
    early = _steps(first, reduces=True)
    done = max(early, default=-1) + 1
    late = [done + step for step in _steps(then, reduces=False)]
    return first.links + then.links, (*_waits(first, reduces=True), *after), (*early, *late)


def _waits(laid: Laid, *, reduces: bool) -> tuple[tuple[int, ...], ...]:
    """Return for each link of a tree the places of those that it waits for."""
    if not reduces:
        return tuple(() if before < 0 else (before,) for before in laid.before)
    found: list[list[int]] = [[] for _ in laid.links]
    for place, before in enumerate(laid.before):
        if before >= 0:
            found[before].append(place)
    return tuple(map(tuple, found))


def _steps(laid: Laid, *, reduces: bool) -> tuple[int, ...]:
    """Return the step of each link, from 0: links from the root, or to it from the farthest."""
    steps: list[int] = []
    for before in laid.before:
        steps.append(0 if before < 0 else steps[before] + 1)
    last = max(steps, default=0)
    return tuple(last - step for step in steps) if reduces else tuple(steps)


__all__ = ["exact", "forest_loads", "shares", "steady_loads", "steady_makespan"]

_WHOLE = 2**62
"""Sums below this fit whole numbers of 64 bits."""


def steady_loads(problem: Problem, plan: Forest | Flow) -> NDArray[np.float64]:
    """Return the bytes that each link carries, shape (links,); what switches merge counts once.

    Parameters
    ----------
    problem
        What the plan is for.
    plan
        One that `ccl.verify` accepts.
    """
    if isinstance(plan, Flow):
        return _flow_loads(problem, plan)
    loads, unit = forest_loads(problem, plan)
    return np.asarray(loads.astype(np.float64) * float(unit))


def steady_makespan(problem: Problem, plan: Forest | Flow) -> Fraction | float:
    """Return the µs of the busiest link or shared limit: bytes over bandwidth, at its full one.

    It is exact for a forest: bandwidths and sizes are taken as `exact` reads them.
    """
    if isinstance(plan, Flow):
        return _busiest(problem.topology, _flow_loads(problem, plan))
    known = _steady.get(plan)
    if known is None or known[0] is not problem:
        loads, unit = forest_loads(problem, plan)
        known = _steady[plan] = problem, unit * _busiest_units(problem.topology, loads)
    return known[1]


_steady: WeakKeyDictionary[Forest, tuple[Problem, Fraction]] = WeakKeyDictionary()
"""What the last problem of each forest takes: results of it are copied, and ask again and again."""


def forest_loads(problem: Problem, forest: Forest) -> tuple[NDArray[np.generic], Fraction]:
    """Return whole numbers, shape (links,), and the bytes that 1 of them stands for."""
    topology = problem.topology
    parts = [
        (lay(topology, tree, reduces=reduces).links, amount)
        for tree, reduces, amount in shares(problem, forest)
    ]
    unit = Fraction(1, math.lcm(*(amount.denominator for _, amount in parts)))
    numbers = [int(amount / unit) for _, amount in parts]
    crossings = (number * len(links) for number, (links, _) in zip(numbers, parts, strict=True))
    small = sum(crossings) * forest.images < _WHOLE
    many = len(topology.links)
    orbit = np.arange(many) if forest.symmetry is None else link_orbits(forest.symmetry)
    crossed = np.zeros(many, dtype=np.int64 if small else object)
    for number, (links, _) in zip(numbers, parts, strict=True):
        places, counts = np.unique(orbit[list(links)], return_counts=True)
        crossed[places] += number * counts.astype(crossed.dtype)
    # Of the images of the crossings of an orbit every link of it has as many.
    images = forest.images // np.bincount(orbit, minlength=many)[orbit]
    loads = crossed[orbit] * images.astype(crossed.dtype)
    return loads, unit


def shares(problem: Problem, forest: Forest) -> Iterator[tuple[Tree, bool, Fraction]]:
    """Yield each tree of a forest, whether it reduces, and the bytes that take it."""
    chunks = [each for each in problem.collective.chunks if not each.in_place]
    if forest.spread:
        whole = sum((exact(chunk.size) for chunk in chunks), Fraction(0))
        for trees, reduces in ((forest.trees, True), (forest.spread, False)):
            yield from ((tree, reduces, tree.weight * whole) for tree in trees)
        return
    nbytes: defaultdict[int, Fraction] = defaultdict(Fraction)
    for chunk in chunks:
        ends = chunk.destinations if forest.reduces else chunk.holders
        nbytes[ends[0]] += exact(chunk.size)
    for tree in forest.trees:
        yield tree, forest.reduces, tree.weight * nbytes[tree.root]


def _flow_loads(problem: Problem, flow: Flow) -> NDArray[np.float64]:
    index, chunks = problem.topology.link_index, problem.collective.chunks
    loads = np.zeros(len(index))
    for rate in flow.rates:
        loads[index[rate.src, rate.dst]] += rate.amount * chunks[rate.chunk].size
    return loads


def _busiest(topology: Topology, loads: NDArray[np.float64]) -> float:
    bandwidths = np.array([link.bandwidth for link in topology.links])
    index = topology.link_index
    under = (
        float(loads[[index[ends] for ends in limit.links]].sum()) / limit.bandwidth
        for limit in topology.limits
    )
    return max([float((loads / bandwidths).max(initial=0.0)), *under]) * 1e-3


def _busiest_units(topology: Topology, loads: NDArray[np.generic]) -> Fraction:
    """Return the most µs that any link or limit takes, one byte for each whole number."""
    most: defaultdict[float, int] = defaultdict(int)
    for link, load in zip(topology.links, loads.tolist(), strict=True):
        most[link.bandwidth] = max(most[link.bandwidth], load)
    index = topology.link_index
    for limit in topology.limits:
        load = sum(loads[[index[ends] for ends in limit.links]].tolist())
        most[limit.bandwidth] = max(most[limit.bandwidth], load)
    return max(load / (exact(bandwidth) * 1000) for bandwidth, load in most.items())
