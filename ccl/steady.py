"""What a forest or a flow asks of every link in its steady state, where latency is hidden.

A problem that is solved again and again, each time by the same trees or flows, takes as long each
time as its busiest link or shared limit: bytes over bandwidth. Latencies and the filling of the
trees are paid once.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ccl.flow import Flow
from ccl.forest import Forest, Tree
from ccl.laying import exact, lay, link_orbits
from ccl.problem import Problem
from ccl.topology import Topology

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

    It is exact for a forest: bandwidths and sizes are taken as `ccl.laying.exact` reads them.
    """
    if isinstance(plan, Flow):
        return _busiest(problem.topology, _flow_loads(problem, plan))
    loads, unit = forest_loads(problem, plan)
    return unit * _busiest_units(problem.topology, loads)


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
