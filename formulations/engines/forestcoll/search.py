"""The best rate of spanning trees as an exact fraction, and the cuts that hold it down.

Let root r give out x w(r), and let S be a set of devices that does not hold all GPUs. What the
roots in S give out must leave it, so x <= B+(S) / w(S), B+ being the bandwidth that leaves. The
least of these quotients is reached by trees in which switches only relay, if every switch gives
out what it takes in: splitting off (Bang-Jensen, Frank, Jackson 1995, who let all vertices that
are not split and are connected well enough be unbalanced) removes switches one after the other
and leaves every flow from the roots to a GPU as it is, and then Edmonds' theorem gives the trees.

Newton's method (Dinkelbach): start above the optimum, with what the poorest GPU can take in; for
each GPU push a flow from a source that gives x w(r) to every root r, and where it falls short take
the cut S and lower x to B+(S) / w(S). x falls at each cut, and a GPU whose flow is full stays so
when x falls, so there are few more flows than GPUs. One GPU of each orbit is enough.

Bandwidths are read as the simplest fractions that are these floats (`ccl.steady.exact`).

Source: Zhao et al., ForestColl, sections 4.2 and 4.5, appendices C.1 and C.4, which bisect instead.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from ccl.bound import Bound, Cut
from ccl.errors import ProblemError
from ccl.problem import Problem
from ccl.symmetry import automorphisms
from formulations.engines.forestcoll.network import Ints, Network, network_of
from formulations.engines.kernels.maxflow import carries, newton, tight_sides

SYMMETRIC = 400
"""GPUs from which on looking for orbits is quicker than a flow for every GPU."""

MOST_CUTS = 8
"""Most of the smallest bottleneck cuts that are told; in words and drawings more say no more."""

BYTES = 1000
"""Bytes in a microsecond at 1 GB/s."""


@dataclass(frozen=True, eq=False)
class Rate:
    """The best rate of a problem and its proof.

    Parameters
    ----------
    network
        The cluster in whole numbers.
    speed
        GB/s at which each root gives out one share (`Network.share`) of its data.
    sides
        Devices inside cuts that are full at this rate, shape (devices,) each: the most that a
        bottleneck can have, then some of the fewest.
    flows
        How many flows it took.
    reduces
        Whether data is added up; the network is then turned round.
    """

    network: Network
    speed: Fraction
    sides: tuple[Ints, ...]
    flows: int
    reduces: bool

    @property
    def shards(self) -> Fraction:
        """GB/s that a root gives out, the largest where they differ."""
        return self.speed * int(self.network.weight.max())

    @property
    def makespan(self) -> Fraction:
        """µs that each of many repetitions takes in the steady state."""
        return self.network.share / (self.speed * BYTES)

    @property
    def cut(self) -> Cut:
        """One bottleneck cut, with as few devices inside as possible."""
        return self.cuts[-1]

    @cached_property
    def cuts(self) -> tuple[Cut, ...]:
        """Bottleneck cuts: the one with the most devices inside first, then the smallest."""
        return tuple(self._cut(side) for side in self.sides)

    @property
    def bound(self) -> Bound:
        """The proof that no plan has a better steady state."""
        what = (
            f"at most {float(self.shards):.6g} GB/s of each root's data can leave this cut, "
            "the worst of all (ForestColl, equation 1)"
        )
        return Bound(float(self.makespan), "cut", self.cut, what, steady=True)

    def _cut(self, inside: Ints) -> Cut:
        """Return a cut of the problem: of a reduction, what is outside and sends in."""
        network = self.network
        crossing = np.flatnonzero(inside[network.src] & ~inside[network.dst])
        if self.reduces:
            inside = ~inside
        links = [network.topology.links[i].ends for i in crossing.tolist()]
        return Cut(
            inside=tuple(
                each.name
                for each, within in zip(network.topology.devices, inside.tolist(), strict=True)
                if within
            ),
            links=tuple((dst, src) if self.reduces else (src, dst) for src, dst in links),
            bandwidth=float(int(network.capacity[crossing].sum()) * network.unit),
        )


def forest_rate(problem: Problem) -> Rate:
    """Return the best rate of a broadcast, an all-gather or alike, or of one that adds up.

    Raises
    ------
    ProblemError
        If the problem is refused (`formulations.engines.forestcoll.network.refusal`), or is an
        all-reduce.
    """
    network = network_of(problem)
    return rate_of(network, sinks=representatives(network), reduces=problem.collective.reduces)


def rate_of(network: Network, *, sinks: Ints, reduces: bool) -> Rate:
    """Return the best rate of a network, all of whose sinks look like one of `sinks`."""
    arcs, capacity, weight = network.arcs, network.capacities, network.weight
    graph = arcs.first, arcs.head, arcs.rev, capacity, weight
    into = np.bincount(network.dst, weights=network.capacity, minlength=len(weight))
    start = [(Fraction(int(into[t]), int(weight.sum() - weight[t])), t) for t in sinks.tolist()]
    first, poorest = min(start)
    above, below, last, flows = newton(*graph, sinks, first.numerator, first.denominator)
    sink = poorest if last < 0 else last
    sides = tight_sides(*graph, sink, above, below, MOST_CUTS)[:, :-1]
    once = {side.tobytes(): side for side in sides}
    return Rate(
        network=network,
        speed=Fraction(above, below) * network.unit,
        sides=tuple(once.values()),
        flows=flows,
        reduces=reduces,
    )


def representatives(network: Network) -> Ints:
    """Return one sink of each orbit, all of them where looking for orbits takes longer."""
    sinks = network.sinks
    if len(sinks) < SYMMETRIC:
        return sinks
    group = automorphisms(network.topology, colours=network.weight)
    _, chosen = np.unique(group.orbits()[sinks], return_index=True)
    return sinks[chosen]


@dataclass(frozen=True, slots=True)
class FixedRate:
    """The best rate with a fixed number of trees per root.

    Parameters
    ----------
    trees
        Trees for each unit of `Network.weight`.
    time
        Every link carries at most this times its capacity (`Network.capacity`) in trees.
    """

    trees: int
    time: Fraction

    def capacities(self, network: Network) -> Ints:
        """Trees that each link carries, shape (links,)."""
        above, below = self.time.numerator, self.time.denominator
        return network.capacity * above // below


def fixed_rate(network: Network, trees: int, *, best: Fraction) -> FixedRate:
    """Return the best rate with `trees` trees for each unit of weight.

    The time that a link needs is a whole number of trees over its capacity, so the optimum is one
    of these numbers, from ``trees / best`` on up to one tree more on the thinnest link (theorem 15
    of the paper); they are bisected, with a flow to every GPU for each try.

    Parameters
    ----------
    network
        The cluster.
    trees
        1 or more.
    best
        `Rate.speed` in units of the network.
    """
    least = trees / best
    most = least + Fraction(1, int(network.capacity.min()))
    times = sorted(
        {
            Fraction(number, bandwidth)
            for bandwidth in np.unique(network.capacity).tolist()
            for number in range(-int(-least * bandwidth // 1), int(most * bandwidth) + 1)
        }
    )
    arcs, sinks = network.arcs, representatives(network)

    def enough(time: Fraction) -> bool:
        capacity = arcs.of_links(FixedRate(trees, time).capacities(network))
        found = carries(arcs.first, arcs.head, arcs.rev, capacity, network.weight, sinks, trees)
        return bool(found)

    place = bisect_left(times, True, key=enough)
    if place == len(times):
        msg = f"no {trees} trees per root fit {network.topology}; ask for another number"
        raise ProblemError(msg)
    return FixedRate(trees, times[place])
