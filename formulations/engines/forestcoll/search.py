"""Best rate of spanning trees as an exact fraction, and the cuts that limit it.

A problem becomes a `Network`, a graph with whole capacities. Trees start at a root and reach every
GPU; switches and NICs pass on what one GPU sends another and copy nothing, even those that could:
where a cut decides the rate, copying along the path gains nothing. `refusal` says what such trees
cannot take. A reduction is the same on the reversed cluster
(`formulations.engines.forestcoll.plans` turns it back). Bandwidths are read as the simplest
fractions that are these floats (`ccl.tree_embedding.exact`).

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

Source: Zhao et al., ForestColl, sections 4.2 and 4.5, appendices C.1 and C.4, which bisect instead.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from ccl import text
from ccl.bound import Bound, Cut
from ccl.errors import ProblemError
from ccl.problem import Problem
from ccl.symmetry import automorphisms
from ccl.topology import Device, Topology, binding_limits
from ccl.tree_embedding import exact
from formulations.core.preparing import interpreted
from formulations.core.refusals import no_stores, no_sums
from formulations.engines.kernels.maxflow import carries, newton, tight_sides

Ints = np.ndarray
"""An array of whole numbers."""

OTHERS = "orbit-trees"
"""The formulation that takes what is refused here."""

_DENOMINATOR = 10**5
_ROUNDING = 1e-12
"""Sums of floats differ by a larger share from what they stand for only if they are very long."""

WHOLE = 2**61
"""Flows stay below this, so that they fit 64 bits."""


@dataclass(frozen=True, eq=False)
class Network:
    """Capacities and demands in whole numbers.

    Parameters
    ----------
    topology
        The cluster; of a reduction, the reversed one.
    src, dst
        Numbers of the devices that each link leaves and enters, shape (links,).
    capacity
        What each link carries, in `unit`, shape (links,).
    unit
        GB/s.
    weight
        What has to go from each device to all GPUs, in `share`, shape (devices,); 0 where nothing.
    share
        Bytes.
    gpus
        Number of the device of each rank, shape (ranks,).
    """

    topology: Topology
    src: Ints
    dst: Ints
    capacity: Ints
    unit: Fraction
    weight: Ints
    share: Fraction
    gpus: Ints

    @cached_property
    def sinks(self) -> Ints:
        """GPUs that wait for something from another root."""
        others = self.weight.sum() - self.weight[self.gpus]
        return np.asarray(self.gpus[others > 0])

    @cached_property
    def arcs(self) -> Arcs:
        """The graph for `formulations.engines.kernels.maxflow`."""
        return arcs_of(len(self.topology.devices), self.src, self.dst, roots=self.gpus)

    @cached_property
    def capacities(self) -> Ints:
        """Capacity of each arc."""
        return self.arcs.of_links(self.capacity)


@dataclass(frozen=True, eq=False)
class Arcs:
    """Arcs in both directions of each pair of linked devices, sorted by tail; the source is last.

    Parameters
    ----------
    first, head, rev
        As `formulations.engines.kernels.maxflow` wants them.
    place
        Arc of each link, shape (links,).
    """

    first: Ints
    head: Ints
    rev: Ints
    place: Ints

    def of_links(self, values: Ints) -> Ints:
        """Spread a value per link over the arcs, 0 where there is no link, shape (arcs,)."""
        spread = np.zeros(len(self.head), dtype=np.int64)
        spread[self.place] = values
        return spread


def arcs_of(devices: int, src: Ints, dst: Ints, *, roots: Ints) -> Arcs:
    """Return the arcs of links between `devices` devices, and of a source before `roots`."""
    count = devices + 1
    source = np.full(len(roots), devices)
    tail, head = np.concatenate([src, source]), np.concatenate([dst, roots])
    keys = np.unique(np.concatenate([tail * count + head, head * count + tail]))
    tails, heads = keys // count, keys % count
    return Arcs(
        first=np.searchsorted(tails, np.arange(count + 1)).astype(np.int64),
        head=heads.astype(np.int64),
        rev=np.searchsorted(keys, heads * count + tails).astype(np.int64),
        place=np.searchsorted(keys, src * count + dst).astype(np.int64),
    )


def refusal(problem: Problem) -> str | None:
    """Explain why trees of relays cannot take a problem, or None."""
    return (
        no_stores(problem)
        or no_sums(problem)
        or _no_spread(problem)
        or _no_relays(problem)
        or _no_unit(problem)
    )


def cut_decides(problem: Problem) -> bool:
    """Return whether the worst cut is the best rate: one network, which is not refused."""
    return not problem.adds_for_several and refusal(problem) is None


def symmetric_links(network: Network) -> np.ndarray | None:
    """Return the number of the link back of each, None where one lacks or has another bandwidth."""
    many = len(network.weight)
    keys, back = network.src * many + network.dst, network.dst * many + network.src
    order = np.argsort(keys)
    place = order[np.minimum(np.searchsorted(keys[order], back), len(keys) - 1)]
    same = (keys[place] == back) & (network.capacity[place] == network.capacity)
    return place if same.all() else None


def network_of(problem: Problem) -> Network:
    """Return the network of a problem that spreads or adds up; a reduction is turned round.

    Raises
    ------
    ProblemError
        If it is refused, or is an all-reduce: that is two networks.
    """
    why = refusal(problem)
    if why is None and problem.adds_for_several:
        why = "what is added up goes to many; take its two halves"
    if why is not None:
        raise ProblemError(f"no forest of {problem.collective.kind} on {problem.topology}: {why}")
    chunks = problem.collective.chunks
    reduces = chunks[0].reduced
    topology = problem.topology.reversed() if reduces else problem.topology
    nbytes: defaultdict[int, Fraction] = defaultdict(Fraction)
    for chunk in chunks:
        nbytes[(chunk.destinations if reduces else chunk.holders)[0]] += exact(chunk.size)
    return _network(topology, nbytes)


def _network(topology: Topology, nbytes: dict[int, Fraction]) -> Network:
    capacity, unit = whole([_bandwidth(each.bandwidth) for each in topology.links])
    demands, share = whole(list(nbytes.values()))
    gpus = np.array([topology.index[name] for name in topology.ranks], dtype=np.int64)
    weight = np.zeros(len(topology.devices), dtype=np.int64)
    weight[gpus[list(nbytes)]] = demands
    ends = np.array([[topology.index[end] for end in each.ends] for each in topology.links])
    return Network(
        topology=topology,
        src=ends[:, 0],
        dst=ends[:, 1],
        capacity=np.array(capacity, dtype=np.int64),
        unit=unit,
        weight=weight,
        share=share,
        gpus=gpus,
    )


def whole(values: list[Fraction]) -> tuple[list[int], Fraction]:
    """Return whole numbers and the unit in which they are `values`."""
    below = math.lcm(*(each.denominator for each in values))
    above = [int(each * below) for each in values]
    common = math.gcd(*above)
    return [each // common for each in above], Fraction(common, below)


def _bandwidth(value: float) -> Fraction:
    """Return the simple fraction that a bandwidth stands for: `exact`, or one as close as rounding.

    0.1 + 0.2 is 3/10, though as a float it is not; what is simple to no one stays as it is.
    """
    near = Fraction(value).limit_denominator(_DENOMINATOR)
    return near if abs(near - Fraction(value)) <= _ROUNDING * near else exact(value)


def _no_spread(problem: Problem) -> str | None:
    """Return which chunk does not go from one root to all others, or back, as all chunks must."""
    everyone = frozenset(range(len(problem.topology.ranks)))
    chunks = problem.collective.chunks
    for number, chunk in enumerate(chunks):
        ends, others = chunk.holders, chunk.destinations
        if chunk.reduced:
            ends, others = others, ends
        whole = len(ends) == 1 and everyone <= {*ends, *others}
        both = chunk.reduced and everyone == set(ends) == set(others)
        if chunk.reduced != chunks[0].reduced or not (whole or both):
            return (
                f"chunk {number} does not go from one GPU to all others, or from all to one or "
                f"all; {OTHERS} takes others"
            )
        if both != (len(chunks[0].destinations) > 1 and chunks[0].reduced):
            return f"chunk {number} goes to other ranks than those before; {OTHERS} takes it"
    return None


def _no_relays(problem: Problem) -> str | None:
    """Return which device is more than a relay, or takes in other than what it gives out."""
    topology = problem.topology
    for device in topology.devices:
        if device.kind == "gpu":
            continue
        if device.stores and (topology.links_in[device.name] or topology.links_out[device.name]):
            return (
                f"{device.name} stores and copies without wanting anything, so trees may or may "
                f"not reach it; here they reach GPUs alone. {OTHERS} takes it"
            )
        why = _unbalanced(topology, device)
        if why is not None:
            return why
    for limit in binding_limits(topology):
        return (
            f"{limit.name} allows {limit.bandwidth:g} GB/s for links that have more together, and "
            f"here every link has its own; {OTHERS} takes it"
        )
    return None


def _unbalanced(topology: Topology, device: Device) -> str | None:
    into, out = (
        sum((_bandwidth(link.bandwidth) for link in links[device.name]), Fraction(0))
        for links in (topology.links_in, topology.links_out)
    )
    if into == out:
        return None
    return (
        f"{device.name} takes in {float(into):g} GB/s and gives out {float(out):g} GB/s, and the "
        f"cut is the rate only where a switch gives out what it takes in; {OTHERS} takes it"
    )


def _no_unit(problem: Problem) -> str | None:
    """Return the message that bandwidths or sizes have no common unit that is not tiny."""
    _, unit = whole([_bandwidth(each.bandwidth) for each in problem.topology.links])
    sizes, _ = whole([exact(each.size) for each in problem.collective.chunks])
    capacity = sum(Fraction(each.bandwidth) for each in problem.topology.links) / unit
    if capacity * sum(sizes) < WHOLE:
        return None
    return (
        f"its bandwidths are multiples of {float(unit):.3g} GB/s and of nothing more, too fine for "
        f"whole numbers; round them, or take {OTHERS}"
    )


SYMMETRIC = 400
"""GPUs from which on looking for orbits is quicker than a flow for every GPU."""

MOST_CUTS = 8
"""Most of the smallest bottleneck cuts in a report; more would not help a reader."""

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
        most = text.number(float(self.shards), 4)
        what = (
            f"at most {most} GB/s of each GPU's data can cross this cut, "
            "and no other is tighter (ForestColl, equation 1)"
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
        If the problem is refused (`refusal`), or is an all-reduce.
    """
    network = network_of(problem)
    return rate_of(network, sinks=representatives(network), reduces=problem.collective.reduces)


@interpreted()
def rate_of(network: Network, *, sinks: Ints, reduces: bool) -> Rate:
    """Return the best rate of a network, all of whose sinks look like one of `sinks`.

    It never waits until the searches are compiled: as written it takes a second for 128 GPUs.
    """
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


def representatives(network: Network, classes: Ints | None = None) -> Ints:
    """Return one sink of each orbit, all of them where looking for orbits takes longer.

    Where links have `classes`, whose bandwidths may change, symmetries keep these.
    """
    sinks = network.sinks
    if len(sinks) < SYMMETRIC:
        return sinks
    links = None if classes is None else classes.tolist()
    group = automorphisms(
        network.topology, colours=network.weight.tolist(), links=links, steady=links is not None
    )
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
        raise ProblemError(
            f"no {trees} trees per root fit {network.topology}; ask for another number"
        )
    return FixedRate(trees, times[place])
