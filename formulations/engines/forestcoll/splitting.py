"""Switches split off, and the connections between GPUs that are left filled with spanning trees.

`split` finds connections between GPUs alone, with the paths that they take. Capacities are in
trees. A flow to every GPU, as large as all trees together, persists while capacity is taken from
u -> w and w -> t and given to u -> t, until the switch w has none left
(`formulations.engines.kernels.packing`); so the spanning trees that fit the cluster still fit.
What cannot be split off now never can, because cuts only become narrower, so one try of every pair
with as much as goes is enough where a switch gives out what it takes in.

Which pairs are tried first decides how deep the trees become, and how local:

* switches that no GPU is linked to are taken out as a whole where all trees fit without them;
* switches near GPUs come first, of these the one with the fewest pairs;
* its capacity is first spread evenly, so that a GPU reaches many others directly; what is left
  goes, one tree at a time, to those that it does not reach yet;
* then what would go back to a device is dropped, as long as all trees fit without it, and only
  what is left takes detours: between devices that have a shorter path, at a switch between hosts
  from a host back to itself, down and up again.

Source: ForestColl, section 4.3 and appendix C.2; the order is ours.

`pack` makes the trees, as many of each root as it gives out. They grow by arcs that leave room for
all other trees (`formulations.engines.kernels.packing`), all copies of one at once: every tree its
first level, every tree its second and so on, so that none takes what another needs to stay shallow;
then each by itself, by the arc nearest to its root. Where an arc suits some copies only, these go
on and the others are grown later. Shallowest trees are NP-hard to find; these are not, but none is
deep without need. Source: Bérczi and Frank, Packing arborescences, 2010, after Schrijver;
ForestColl, appendix C.3.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from ccl.errors import SolveError
from formulations.engines.epoch_grid.arcs import distances
from formulations.engines.forestcoll.search import OTHERS, Ints, Network, arcs_of
from formulations.engines.kernels.maxflow import carries, flows_to
from formulations.engines.kernels.packing import Graph, Partial, grow, split_off

Route = tuple[int, ...]
"""Numbers of devices, from one that stores over switches to the next that stores."""

Routes = dict[tuple[int, int], list[tuple[Route, int]]]
"""For each connection the paths that it takes, and how many trees take each."""

_ALL = 2**62

NUMBERS = 2**28
"""Most numbers that flows to all GPUs over all connections take: 2 GB."""


@dataclass(frozen=True, eq=False)
class Load:
    """What links can carry and roots give out, in trees.

    Parameters
    ----------
    network
        The cluster.
    capacity
        Trees on each link, shape (links,).
    trees
        Trees of each device as a root, shape (devices,).
    """

    network: Network
    capacity: Ints
    trees: Ints

    @property
    def bundle(self) -> int:
        """Trees that had better stay together: all of a root, but those of an only root part."""
        return int(self.trees.max()) if np.count_nonzero(self.trees) > 1 else 1


@dataclass(frozen=True, eq=False)
class Connections:
    """Connections between devices that carry the same trees as the cluster.

    Arcs come with their opposites and are sorted by tail, as in
    `formulations.engines.kernels.packing`.

    Parameters
    ----------
    tail, head, rev
        Device that each leaves and enters, and its opposite, shape (arcs,).
    first
        Where the arcs of each device begin, shape (devices + 1,).
    capacity
        Trees, shape (arcs,).
    residual
        What each arc can still take after a flow to each of `Network.sinks`, shape (sinks, arcs).
    paths
        Over which switches they go.
    """

    tail: Ints
    head: Ints
    rev: Ints
    first: Ints
    capacity: Ints
    residual: Ints
    routes: Routes


def split(load: Load) -> Connections:
    """Return connections between GPUs alone.

    Raises
    ------
    SolveError
        If the trees do not fit, a switch gives out other than it takes in and cannot be split, or
        there are too many connections.
    """
    network = load.network
    capacity = _without_idle(load)
    kept = np.flatnonzero(capacity)
    src, dst, capacity = network.src[kept], network.dst[kept], capacity[kept]
    arcs = arcs_of(len(load.trees), src, dst, roots=network.gpus)
    residual = flows_to(
        arcs.first, arcs.head, arcs.rev, arcs.of_links(capacity), load.trees, network.sinks, 1
    )
    if (residual[:, 0] < 0).any():
        raise SolveError(f"the requested trees do not fit {network.topology}; ask for fewer")
    count = len(load.trees)
    tail = np.repeat(np.arange(count), np.diff(arcs.first[:-1]))
    inner = np.flatnonzero(arcs.head[: len(tail)] < count)
    found = _graph(
        count,
        tail[inner] * count + arcs.head[inner],
        capacity=arcs.of_links(capacity)[inner],
        residual=residual[:, inner],
    )
    routes = _Log(src, dst, capacity)
    place = _Place.of(network)
    left = set(range(count)) - set(network.gpus.tolist())
    while left:
        hub = min(left, key=lambda each: (place.level[each], _pairs(found, each), each))
        left.remove(hub)
        found = _split_off(network, found, hub, steps=_Steps(place, routes, load.bundle))
    return replace(found, routes=routes.routes())


def _graph(count: int, keys: Ints, *, capacity: Ints, residual: Ints) -> Connections:
    """Return the graph of arcs by their keys, tail times devices plus head, in order."""
    tail, head = keys // count, keys % count
    return Connections(
        tail=tail,
        head=head,
        rev=np.searchsorted(keys, head * count + tail),
        first=np.searchsorted(tail, np.arange(count + 1)),
        capacity=capacity,
        residual=residual,
        routes={},
    )


def _without_idle(load: Load) -> Ints:
    """Return the capacities without switches far from all GPUs if the trees fit without them.

    What is left must be as balanced as before.
    """
    network = load.network
    near = np.zeros(len(load.trees), dtype=bool)
    near[network.gpus] = True
    near[network.src[near[network.dst]]] = True
    near[network.dst[np.isin(network.src, network.gpus)]] = True
    kept = near[network.src] & near[network.dst]
    if kept.all():
        return load.capacity
    less = np.where(kept, load.capacity, 0)
    net = np.bincount(network.src, less, len(near)) - np.bincount(network.dst, less, len(near))
    if np.delete(net, network.gpus).any():
        return load.capacity
    arcs = network.arcs
    graph = arcs.first, arcs.head, arcs.rev, arcs.of_links(less), load.trees, network.sinks
    return less if carries(*graph, 1) else load.capacity


def _pairs(found: Connections, hub: int) -> int:
    """Return how many pairs of arcs go through a device."""
    out = slice(found.first[hub], found.first[hub + 1])
    return int((found.capacity[out] > 0).sum() * (found.capacity[found.rev[out]] > 0).sum())


def _merged(found: Connections, more: Ints, *, gone: int) -> Connections:
    """Return the graph with arcs for more keys, without those of a device."""
    count = len(found.first) - 1
    used = (found.capacity > 0) | (found.capacity[found.rev] > 0)
    used &= (found.tail != gone) & (found.head != gone)
    old = np.flatnonzero(used)
    before = found.tail[old] * count + found.head[old]
    keys = np.unique(np.concatenate([before, more, more % count * count + more // count]))
    place = np.searchsorted(keys, before)
    capacity = np.zeros(len(keys), dtype=np.int64)
    capacity[place] = found.capacity[old]
    residual = np.zeros((len(found.residual), len(keys)), dtype=np.int64)
    residual[:, place] = found.residual[:, old]
    return _graph(count, keys, capacity=capacity, residual=residual)


@dataclass(frozen=True, slots=True)
class _Steps:
    """What every split needs and leaves behind."""

    place: _Place
    routes: _Log
    bundle: int


def _split_off(network: Network, found: Connections, hub: int, *, steps: _Steps) -> Connections:
    """Return the graph without a switch."""
    count = len(found.first) - 1
    arcs = np.arange(found.first[hub], found.first[hub + 1])
    out, into = (found.head[arcs[found.capacity[each] > 0]] for each in (arcs, found.rev[arcs]))
    into, out = (each[np.argsort(steps.place.order[each])] for each in (into, out))
    if len(out) == 0 or len(into) == 0:
        return _merged(found, np.zeros(0, np.int64), gone=hub)
    numbers = len(found.residual) * (len(found.tail) + 2 * len(into) * len(out))
    if numbers > NUMBERS:
        name = network.topology.devices[hub].name
        raise SolveError(
            f"it takes {numbers:,} numbers to split {name} off, of {NUMBERS:,}; take {OTHERS}"
        )
    u, t = (each.ravel() for each in np.meshgrid(into, out, indexing="ij"))
    found = _merged(found, (u * count + t)[u != t], gone=count)
    keys = found.tail * count + found.head
    capacity, place = found.capacity, steps.place
    ins, outs = np.searchsorted(keys, into * count + hub), np.searchsorted(keys, hub * count + out)
    late = place.lateness(hub, into=into, out=out)
    across = np.where(into[:, None] == out, -1, np.searchsorted(keys, into[:, None] * count + out))

    def tried(most: Ints, *, new: bool = False) -> bool:
        """Split off as much as goes of each pair; say whether anything could be."""
        known = (capacity[across] > 0) & (across >= 0) & new
        i, j = _listed(late, most, known=known)
        most, over = most[i, j], across[i, j]
        table = np.stack([ins[i], outs[j], over, most], axis=1)
        done = split_off(found.first, found.head, found.rev, capacity, found.residual, table, hub)
        for k in np.flatnonzero(done).tolist():
            steps.routes.join(int(into[i[k]]), hub, int(out[j[k]]), int(done[k]))
        return bool(done.any())

    while tried(
        _even(late, given=capacity[ins], taken=capacity[outs]) // steps.bundle * steps.bundle
    ):
        pass
    while tried(steps.bundle * (late == 0), new=True):
        pass
    tried(np.full(late.shape, _ALL))
    if capacity[ins].any() and capacity[outs].any():
        raise SolveError(
            f"{network.topology.devices[hub].name} does not give out what it takes in once its "
            "links carry whole trees, and cannot be split; ask for another number of trees"
        )
    return _merged(found, np.zeros(0, np.int64), gone=hub)


@dataclass(frozen=True, eq=False)
class _Place:
    """Where devices are: hops between any two, and from the nearest GPU; numbers of hosts.

    A host whose own links do not join its devices counts as several.
    `order` sorts the first devices of all hosts before the second ones, so that neighbours in it
    are in different hosts.
    """

    hops: Ints
    level: Ints
    host: Ints
    order: Ints

    @classmethod
    def of(cls, network: Network) -> _Place:
        """Measure a cluster."""
        devices = network.topology.devices
        shape = len(devices), len(devices)
        hops = distances(network.src, network.dst, np.ones(len(network.src)), len(devices))
        hosts = np.array([each.host or f" {number}" for number, each in enumerate(devices)])
        inner = np.flatnonzero(hosts[network.src] == hosts[network.dst])
        ends = network.src[inner], network.dst[inner]
        joined = sparse.csr_array((np.ones(len(inner)), ends), shape)
        _, label = connected_components(joined, directed=False)
        host = label.tolist()
        inside = [host[:number].count(each) for number, each in enumerate(host)]
        order = np.lexsort((np.arange(len(devices)), np.array(inside)))
        return cls(hops, hops[network.gpus].min(axis=0), np.array(host), np.argsort(order))

    def lateness(self, hub: int, *, into: Ints, out: Ints) -> Ints:
        """Return how late each pair is tried, shape (into, out); 0: first."""
        detour = self.hops[into, hub][:, None] + self.hops[hub, out] > self.hops[into][:, out]
        up = self.level > self.level[hub]
        valley = up[into][:, None] & up[out]
        home = (self.host[into][:, None] == self.host[out]) & (self.host[out] != self.host[hub])
        back = into[:, None] == out
        worst = np.maximum(2 * detour, np.maximum(3 * home, 4 * valley))
        return np.asarray(np.where(back, 1, worst))


def _even(late: Ints, *, given: Ints, taken: Ints) -> Ints:
    """Return for each pair that is not late an even share of what its arcs have left."""
    first = late == 0
    most = np.maximum(first @ taken[:, None], (given @ first)[None, :])
    share = np.where(first, given[:, None] * (taken / np.maximum(most, 1)), 0)
    return share.astype(np.int64)


def _listed(late: Ints, most: Ints, *, known: Ints) -> tuple[Ints, Ints]:
    """Return the pairs in their order: late and known ones last, then the next neighbours first."""
    i, j = (each.ravel() for each in np.indices(late.shape))
    order = np.lexsort((i, (j - i) % max(late.shape), known.ravel(), late.ravel()))
    order = order[most.ravel()[order] > 0]
    return i[order], j[order]


class _Log:
    """The path that every unit of capacity takes."""

    def __init__(self, src: Ints, dst: Ints, capacity: Ints) -> None:
        self._routes: defaultdict[tuple[int, int], deque[tuple[Route, int]]] = defaultdict(deque)
        for ends in zip(src.tolist(), dst.tolist(), capacity.tolist(), strict=True):
            self._routes[ends[:2]].append((ends[:2], ends[2]))

    def join(self, u: int, w: int, t: int, amount: int) -> None:
        """Let some of what goes from u to w and from w to t go from u to t."""
        while amount > 0:
            (first, some), (then, other) = self._routes[u, w][0], self._routes[w, t][0]
            part = min(amount, some, other)
            for ends, route, rest in (((u, w), first, some - part), ((w, t), then, other - part)):
                self._routes[ends].popleft()
                if rest:
                    self._routes[ends].appendleft((route, rest))
            if u != t:
                self._routes[u, t].append((_short(first + then[1:]), part))
            amount -= part

    def routes(self) -> Routes:
        """Return the paths of all that is left."""
        return {ends: list(routes) for ends, routes in self._routes.items() if routes}


def _short(route: Route) -> Route:
    """Leave out what a path goes round in between."""
    at = {device: place for place, device in enumerate(route)}
    short, place = [], 0
    while place < len(route):
        short.append(route[place])
        place = at[route[place]] + 1
    return tuple(short)


_PLACES = 8
"""For copies left behind; there is room for more when they are needed."""

_DEEPEST = 8
"""Levels that all trees reach together; what few trees still lack then, each gets by itself."""

_NUMBERS = 2**25
"""Most numbers that say where the units of all trees start: 256 MB."""


@dataclass(frozen=True, slots=True)
class Packed:
    """Copies of one tree.

    Parameters
    ----------
    root
        Number of the device at its root.
    edges
        Pairs of devices, parents first.
    copies
        How many.
    """

    root: int
    edges: tuple[tuple[int, int], ...]
    copies: int


def pack(
    load: Load, found: Connections, *, stop: Callable[[int, int], None] | None = None
) -> list[Packed]:
    """Return trees that reach every GPU, as many as each root has.

    Parameters
    ----------
    load
        Trees of each root.
    found
        Connections into which they fit; they are used up.
    stop
        Called with the number of roots that are done and of all, after each; may raise.
    """
    return list(_Packing(load, found).trees(stop))


class _Packing:
    """The trees while they grow; GPUs are numbered by rank."""

    def __init__(self, load: Load, found: Connections) -> None:
        network = load.network
        self.gpus = network.gpus
        rank = np.full(len(load.trees), -1)
        rank[self.gpus] = np.arange(len(self.gpus))
        tail, head = rank[found.tail], rank[found.head]
        order = np.lexsort((head, tail))
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        self.graph = Graph(
            first=np.searchsorted(tail[order], np.arange(len(self.gpus) + 1)).astype(np.int64),
            head=head[order].astype(np.int64),
            rev=place[found.rev[order]],
            capacity=found.capacity[order],
            residual=np.ascontiguousarray(found.residual[:, order]),
        )
        self.tail = tail[order]
        self.left = load.trees[self.gpus]
        self.row = np.full(len(self.gpus), -1)
        self.row[rank[network.sinks]] = np.arange(len(network.sinks))
        self.partial = self._places(0)

    def _places(self, count: int) -> Partial:
        many, sinks, arcs = len(self.gpus), len(self.graph.residual), len(self.graph.head)
        return Partial(
            copies=np.zeros(count, dtype=np.int64),
            reached=np.zeros((count, many), dtype=bool),
            depth=np.zeros((count, many), dtype=np.int64),
            parent=np.full((count, many), -1, dtype=np.int64),
            blocked=np.zeros((count, arcs), dtype=bool),
            starts=np.zeros((sinks, many, count), dtype=np.int64),
        )

    def _wider(self) -> None:
        """Make twice as many places for partial trees."""
        old = self.partial
        count = len(old.copies)
        self.partial = self._places(2 * count)
        for before, after in zip(old[:-1], self.partial[:-1], strict=True):
            after[:count] = before
        self.partial.starts[:, :, :count] = old.starts

    def trees(self, stop: Callable[[int, int], None] | None) -> Iterator[Packed]:
        """Yield all trees."""
        roots = np.flatnonzero(self.left)
        together = max(1, _NUMBERS // (len(self.gpus) * len(self.graph.residual)))
        for first in range(0, len(roots), together):
            group = roots[first : first + together].tolist()
            self.partial = self._places(len(group) + _PLACES)
            for place, root in enumerate(group):
                self._begin(place, root)
            for tree, deepest in self._turns(len(group)):
                yield from self._grown(tree, deepest)
                if stop is not None:
                    stop(len(roots) - int((self.left > 0).sum()), len(roots))

    def _turns(self, many: int) -> Iterator[tuple[int, int]]:
        """Yield which tree is grown next and how deep: all trees a level, then one by one."""
        for deepest in range(1, _DEEPEST + 1):
            yield from ((tree, deepest) for tree in range(many) if self.partial.copies[tree])
        while self.partial.copies.any():
            yield int(np.flatnonzero(self.partial.copies)[-1]), 0

    def _begin(self, place: int, root: int) -> None:
        partial = self.partial
        partial.copies[place] = self.left[root]
        partial.reached[place, root] = True
        partial.starts[:, root, place] = self.left[root]
        if self.row[root] >= 0:
            partial.starts[self.row[root], root, place] = 0

    def _grown(self, tree: int, deepest: int) -> Iterator[Packed]:
        if not grow(self.graph, self.partial, tree, self.row, deepest):
            self._wider()
            return
        partial = self.partial
        if not partial.reached[tree].all():
            return
        root = int(np.flatnonzero(partial.parent[tree] < 0)[0])
        order = np.argsort(partial.depth[tree], kind="stable")[1:]
        parents = self.tail[partial.parent[tree][order]]
        edges = zip(self.gpus[parents].tolist(), self.gpus[order].tolist(), strict=True)
        copies = int(partial.copies[tree])
        self.left[root] -= copies
        partial.copies[tree] = 0
        partial.starts[:, :, tree] = 0
        yield Packed(int(self.gpus[root]), tuple(edges), copies)
