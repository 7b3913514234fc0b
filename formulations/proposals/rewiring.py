"""Networks by exchange of links: distances annealed, then swaps that prices of links suggest.

Annealing: a random regular network of n GPUs with d two-way links each, two links of which are
crossed at a time: a-b and c-e become a-c and b-e, so that degrees stay. The sum of all distances is
what falls: an all-to-all over equal links takes at least the sum over n d links, and where
distances are nearly equal it takes hardly more, so that no linear program is needed on the way. A
set of GPUs is a row of bits, and the GPUs within k + 1 links of all GPUs are found by d gathers and
unions of rows. Temperatures fall evenly to 0 over a number of tries that does not depend on time,
so that a seed gives the same networks on any machine; time only says how many of them.

Where GPUs stand in racks and a cable costs more the farther it goes, time multiplied by what all
cables cost may fall instead. Any network may be laid with its GPUs in the order of their numbers,
so that what a cable costs is known before the network is. Then few cables leave a rack, which
distances do not see: the time is that of the distances or that of the links over the fullest cut,
between a rack and the others or between the first racks and those after them, whichever is longer.

Swaps by prices, for links that differ: an optimal flow has prices y of links, and for any network

    T >= sum over pairs of D dist_y / sum over links of b y.

A link with a low price is idle, so it is likely to be taken away. If the prices, kept on the
changed network, prove that it is no faster, it is refused without a linear program. What is left is
solved, and taken where its flow, made good, is faster. Where cables have costs, faster means that
time and cost multiplied are less, and the bound is multiplied by the cost of the changed network.

Sources: 2-opt moves on graphs: Besta, Hoefler, SC 2014 name them for random shortcuts; annealing:
Kirkpatrick, Gelatt, Vecchi, Science 1983. The bound is the dual of concurrent flow
(`formulations.bounds.concurrent_flow`).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from ccl.collective import all_to_all
from ccl.problem import Problem
from ccl.topology import Link, Topology, device, duplex
from formulations.engines.fluid_lp.certified import CertifiedFlow, certified_flows

Pairs = list[tuple[int, int]]
"""Ends of two-way links, by number."""

LENGTHS = (40, 160, 640)
"""Tries of the first runs for each link; the last goes for all that follow."""

WARMTH = 2e-3
"""Temperature at first, as a share of the sum of distances."""

CLOSE = 1e-5
"""Shares by which a network must be faster to be taken."""

GAP = 1e-3
"""Share by which flows may be above their bounds while networks are compared."""


class Distances:
    """The sum of distances of networks of so many GPUs.

    Parameters
    ----------
    gpus
        How many.
    """

    def __init__(self, gpus: int) -> None:
        self.gpus = gpus
        own = np.zeros((gpus, -(-gpus // 64)), dtype=np.uint64)
        place = np.arange(gpus)
        own[place, place // 64] = np.uint64(1) << (place % 64).astype(np.uint64)
        self._own = own

    def total(self, table: np.ndarray) -> float:
        """Return the sum over ordered pairs, infinite if a GPU is not reached.

        Parameters
        ----------
        table
            Neighbours of each GPU, shape (degree, gpus).
        """
        within, apart, total = self._own, self.gpus * (self.gpus - 1), 0
        while apart:
            total += apart  # these are one link farther than those that have been reached
            within = within | np.bitwise_or.reduce(within[table], axis=0)
            left = self.gpus**2 - int(np.bitwise_count(within).sum())
            if left == apart:
                return math.inf
            apart = left
        return float(total)


class CableCosts:
    """What the cables between GPUs in racks cost, and how many cross each cut between racks.

    Parameters
    ----------
    costs
        Of a cable between any two GPUs, shape (gpus, gpus), symmetric; GPUs of one rack are those
        between which it is least.
    """

    def __init__(self, costs: np.ndarray) -> None:
        self._costs: list[list[float]] = costs.tolist()
        near = costs <= costs.min() * (1 + 1e-9)
        np.fill_diagonal(near, val=True)
        racks = near[np.sort(np.unique(near, axis=0, return_index=True)[1])]
        before = np.logical_or.accumulate(racks)[:-1]
        self._sides = np.vstack([racks, before]).T.copy()
        """Of each GPU, whether it is on the first side of each cut, shape (gpus, cuts)."""
        within = self._sides.sum(axis=0)
        self._pairs = within * (len(costs) - within)
        self.cost = 0.0
        self._crossing = np.zeros(len(within), dtype=np.int64)

    def laid(self, pairs: Pairs) -> None:
        """Lay the cables of a network, none of another being left."""
        self.cost = sum(self._costs[a][b] for a, b in pairs)
        first, second = np.array(pairs).T
        self._crossing = (self._sides[first] ^ self._sides[second]).sum(axis=0)

    def exchange(self, a: int, b: int, *, c: int, e: int) -> None:
        """Lay a-c and b-e for a-b and c-e."""
        costs, sides = self._costs, self._sides
        self.cost += costs[a][c] + costs[b][e] - costs[a][b] - costs[c][e]
        new, old = (sides[[a, b]] ^ sides[[c, e]]), (sides[[a, c]] ^ sides[[b, e]])
        self._crossing += new.sum(axis=0) - old.sum(axis=0)

    def merit(self, total: float, cables: int) -> float:
        """Return the cost times the sum of distances, or what the fullest cut makes of that."""
        with np.errstate(divide="ignore"):
            busiest = float((self._pairs / self._crossing).max())
        return max(total, 2 * cables * busiest) * self.cost


class Annealing:
    """Networks with shorter and shorter distances, run after run.

    Parameters
    ----------
    gpus, degree
        Of the network; an even number of ends, and a degree from 3 to that of a full mesh less 1.
    seed
        Of everything that is drawn by chance.
    costs
        Of a cable between any two GPUs, shape (gpus, gpus), symmetric; by default no matter.
    """

    def __init__(
        self, gpus: int, degree: int, *, seed: int, costs: np.ndarray | None = None
    ) -> None:
        import networkx  # noqa: PLC0415  heavy, and only here

        self._dice = random.Random(seed)
        graph = networkx.random_regular_graph(degree, gpus, seed=self._dice)
        while not networkx.is_connected(graph):
            graph = networkx.random_regular_graph(degree, gpus, seed=self._dice)
        self._distances = Distances(gpus)
        self._cables = None if costs is None else CableCosts(costs)
        self._first: Pairs = sorted((min(pair), max(pair)) for pair in graph.edges())
        self._pairs: Pairs = []
        self.run = 0
        """Number of the run."""
        self._tries, self._length = 0, 0
        self.total = math.inf
        """Least sum of distances so far, or least `CableCosts.merit` where costs matter."""
        self.pairs: Pairs = []
        """Links of the network that has it."""
        self._begin()

    def _begin(self) -> None:
        """Go back to the first network, at the first temperature."""
        self._length = LENGTHS[min(self.run, len(LENGTHS) - 1)] * len(self._first)
        self._tries = 0
        self._pairs = list(self._first)
        gpus = self._distances.gpus
        self._rows: list[list[int]] = [[] for _ in range(gpus)]
        for a, b in self._pairs:
            self._rows[a].append(b)
            self._rows[b].append(a)
        self._table = np.array(self._rows).T.copy()
        if self._cables is not None:
            self._cables.laid(self._pairs)
        self._now = self._merit()
        self._note()

    def _merit(self) -> float:
        total = self._distances.total(self._table)
        return total if self._cables is None else self._cables.merit(total, len(self._first))

    def advance(self, *, seconds: float = math.inf, runs: int = 1) -> None:
        """Go on for a time, or to the end of so many runs from now on if that is sooner."""
        end, last = perf_counter() + seconds, self.run + runs
        while self.run < last and perf_counter() < end:
            self._try()
            self._tries += 1
            if self._tries >= self._length:
                self.run += 1
                self._begin()

    def _try(self) -> None:
        """Cross two links, unless the network is worse than the temperature allows."""
        dice, pairs = self._dice, self._pairs
        crossed = _crossed(pairs, dice, first=dice.randrange(len(pairs)))
        if crossed is None:
            return
        first, second, (a, c), (b, e) = crossed
        if c in self._rows[a] or e in self._rows[b]:
            return
        self._exchange(a, b, c=c, e=e)
        total = self._merit()
        heat = WARMTH * self._now * (1 - self._tries / self._length)
        if total > self._now and dice.random() >= math.exp((self._now - total) / heat):
            self._exchange(a, c, c=b, e=e)  # back again
            return
        pairs[first], pairs[second] = (a, c), (b, e)
        self._now = total
        self._note()

    def _exchange(self, a: int, b: int, *, c: int, e: int) -> None:
        """Make a-b and c-e to a-c and b-e in both tables."""
        for vertex, old, new in ((a, b, c), (b, a, e), (c, e, a), (e, c, b)):
            place = self._rows[vertex].index(old)
            self._rows[vertex][place] = new
            self._table[place, vertex] = new
        if self._cables is not None:
            self._cables.exchange(a, b, c=c, e=e)

    def _note(self) -> None:
        if self._now < self.total:
            self.total, self.pairs = self._now, list(self._pairs)


def _crossed(
    pairs: Pairs, dice: random.Random, *, first: int
) -> tuple[int, int, tuple[int, int], tuple[int, int]] | None:
    """Return two links by number and what becomes of them, None if they share an end."""
    second = dice.randrange(len(pairs))
    (a, b), (c, e) = pairs[first], pairs[second]
    if dice.random() < 0.5:
        c, e = e, c
    return None if len({a, b, c, e}) < 4 else (first, second, (a, c), (b, e))


def possible(gpus: int, degree: int) -> bool:
    """Return whether there are regular networks that are neither a ring nor a full mesh."""
    return 3 <= degree < gpus - 1 and gpus * degree % 2 == 0


def network_of(
    pairs: Pairs, *, gpus: int, name: str, bandwidth: float | Sequence[float], alpha: float
) -> Topology:
    """Return the network of two-way links; of each its own bandwidth in GB/s, or one of all."""
    rates = np.broadcast_to(np.asarray(bandwidth, dtype=float), len(pairs)).tolist()
    names = [f"g{i}" for i in range(gpus)]
    links: list[Link] = []
    for (a, b), rate in zip(pairs, rates, strict=True):
        links += duplex(names[a], names[b], bandwidth=rate, alpha=alpha)
    return Topology(name, tuple(device("gpu", each) for each in names), tuple(links))


@dataclass(frozen=True, kw_only=True)
class Rewired:
    """A network with the flow that shows how fast its all-to-all is.

    Parameters
    ----------
    topology
        The network.
    flow
        All-to-all of `all_to_all_of` on it.
    tries
        Swaps that were looked at.
    refused
        Those that prices proved to be no better.
    solved
        Those for which a linear program was solved.
    cost
        Of all its cables, 1 where that does not matter.
    """

    topology: Topology
    flow: CertifiedFlow
    cost: float = 1.0
    tries: int = 0
    refused: int = 0
    solved: int = 0

    @property
    def merit(self) -> float:
        """Time of the all-to-all in µs times the cost: what is to be small."""
        return self.flow.makespan * self.cost


def all_to_all_of(topology: Topology) -> Problem:
    """Return an all-to-all of 1 MB for each pair of GPUs."""
    many = len(topology.ranks)
    return Problem(topology, all_to_all(many, many * 1e6))


@dataclass
class _Wires:
    """Two-way links between GPUs, each with its two opposite `Link`s."""

    topology: Topology
    pairs: Pairs = field(default_factory=list)
    links: list[Link] = field(default_factory=list)

    def __post_init__(self) -> None:
        rank = self.topology.rank
        for link in self.topology.links:
            ends = rank[link.src], rank[link.dst]
            if ends[0] < ends[1]:
                self.pairs.append(ends)
                self.links.append(link)

    def made(self, pairs: Pairs) -> Topology:
        """Return the network with other ends of the same links."""
        names = self.topology.ranks
        links: list[Link] = []
        for (a, b), link in zip(pairs, self.links, strict=True):
            links.append(replace(link, src=names[a], dst=names[b]))
            links.append(replace(link, src=names[b], dst=names[a]))
        return Topology(self.topology.name, self.topology.devices, tuple(links))


def rewire(
    topology: Topology, *, seconds: float, seed: int = 0, costs: np.ndarray | None = None
) -> Iterator[Rewired]:
    """Yield the network, and then better and better ones with the same links at other places.

    Parameters
    ----------
    topology
        GPUs alone, with two-way links whose directions are equal.
    seconds
        For all of it; what is given first comes later if need be.
    seed
        Of the swaps that are tried.
    costs
        Of a cable between any two GPUs, shape (gpus, gpus): time times cost is to fall, by default
        time alone.
    """
    end, dice = perf_counter() + seconds, random.Random(seed)
    wires = _Wires(topology)
    cost_of = _cost_of(costs)
    best = Rewired(
        topology=topology, flow=_solved(topology, seconds), cost=float(cost_of(wires.pairs).sum())
    )
    yield best
    while perf_counter() < end:
        pairs = wires.pairs
        prices = _by_pair(best, pairs)
        weights = cost_of(pairs) / (1e-3 + prices / max(float(prices.mean()), 1e-300))
        first = dice.choices(range(len(pairs)), weights.tolist())[0]
        crossed = _crossed(pairs, dice, first=first)
        best = replace(best, tries=best.tries + 1)
        if crossed is None or {*map(frozenset, crossed[2:])} & {*map(frozenset, pairs)}:
            continue
        first, second, one, other = crossed
        changed = list(pairs)
        changed[first], changed[second] = one, other
        made, cost = wires.made(changed), float(cost_of(changed).sum())
        if price_bound(made, best.flow.prices) * cost >= best.merit * (1 - CLOSE):
            best = replace(best, refused=best.refused + 1)
            continue
        flow = _solved(made, end - perf_counter())
        best = replace(best, solved=best.solved + 1)
        if flow.makespan * cost < best.merit * (1 - CLOSE):
            wires.pairs = changed
            best = replace(best, topology=made, flow=flow, cost=cost)
            yield best


def _cost_of(costs: np.ndarray | None) -> Callable[[Pairs], np.ndarray]:
    """Return what each of several links costs, alike and 1 in all where that does not matter."""
    if costs is None:
        return lambda pairs: np.full(len(pairs), 1 / len(pairs))
    table = costs
    return lambda pairs: np.asarray(table[tuple(np.array(pairs).T)])


def _solved(topology: Topology, seconds: float) -> CertifiedFlow:
    *_, found = certified_flows(all_to_all_of(topology), seconds=max(seconds, 0.1), near=GAP)
    return found


def _by_pair(best: Rewired, pairs: Pairs) -> np.ndarray:
    """Return the price of both directions of each two-way link together."""
    names, place = best.topology.ranks, best.topology.link_index
    both = [(place[names[a], names[b]], place[names[b], names[a]]) for a, b in pairs]
    return np.asarray(best.flow.prices[np.array(both)].sum(axis=1))


def price_bound(topology: Topology, prices: np.ndarray) -> float:
    """Return the µs that prices prove of `all_to_all_of` on GPUs alone.

    It is worked out in floats, so that it may decide what is worth solving, and is never shown.
    """
    gpus, ends = len(topology.ranks), topology.ends
    costs = np.maximum(prices, 0) + 1e-12 * float(prices.max())
    rates = np.array([each.bandwidth for each in topology.links])
    shape = len(topology.devices), len(topology.devices)
    graph = sparse.csr_array((costs, (ends[0], ends[1])), shape=shape)
    places = np.array([topology.index[name] for name in topology.ranks])
    far = csgraph.dijkstra(graph, indices=places)[:, places]
    assert far.shape == (gpus, gpus)
    return float(far.sum() * 1e6 / (costs @ rates * 1e3))
