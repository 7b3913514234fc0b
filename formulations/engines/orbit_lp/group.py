"""The data of a problem as loads, and the symmetries of its cluster, its holders and destinations.

A `Load` is data of many roots that is alike in kind: it *spreads* (copies may be made along the
path) or goes in *pairs* (from one rank to one other, where no copy helps). Pairs of one root flow
together: who gets which byte is decided afterwards, so an all-to-all has as many flows as GPUs and
not as pairs. What is added up or collected spreads or is dealt out on the reversed cluster.

Big clusters have no `Problem`: an all-gather of 100,000 GPUs would list 10^10 destinations.
`Uniform` says the same in four words.

A group may act on loads (`Acting`). Where every rank gets the same of each root, colours say it
all: GPUs of one colour have equal amounts. Otherwise each item of a load becomes one more device,
linked from its root and to who wants it with bandwidths that stand for the bytes, and the
symmetries of that larger cluster are what is wanted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from ccl.collective import CollectiveKind
from ccl.errors import ProblemError
from ccl.problem import Problem
from ccl.symmetry import Group, automorphisms
from ccl.topology import Link, Topology, device
from formulations.engines.steady_state import FluidGraph, demands_of, refusal
from formulations.engines.steady_state import Group as Demand


@dataclass(frozen=True, slots=True)
class Uniform:
    """A collective of equal shares, said without its chunks.

    Parameters
    ----------
    topology
        Where it runs.
    kind
        Any but ``custom``.
    size
        Bytes of the whole buffer, as nccl-tests defines it.
    root
        Rank, where the kind has one.
    """

    topology: Topology
    kind: CollectiveKind
    size: float
    root: int = 0


@dataclass(frozen=True, eq=False)
class Load:
    """Data of one kind that leaves its roots.

    Parameters
    ----------
    roots
        Rank of each item, shape (items,).
    nbytes
        What each rank that an item goes to receives of it at most, in bytes, shape (items,).
    spreads
        Whether what goes to several ranks may be copied along the path; else each gets its own.
    turned
        Whether it flows on the reversed cluster.
    wants
        Share of `nbytes` that each rank gets of each item, shape (items, ranks), or None where
        every rank but the root gets all of it.
    free
        Whether the roots may share the data in any proportion; each has `nbytes` if alone.
    """

    roots: np.ndarray
    nbytes: np.ndarray
    spreads: bool
    turned: bool = False
    wants: sparse.csr_array | None = None
    free: bool = False

    def shares(self, item: int, ranks: int) -> np.ndarray:
        """Return the share of an item's bytes that each rank gets, shape (ranks,)."""
        if self.wants is not None:
            return np.asarray(self.wants[[item], :].toarray()[0])
        shares = np.ones(ranks)
        shares[self.roots[item]] = 0.0
        return shares


def loads_of(problem: Problem | Uniform) -> tuple[Load, ...]:
    """Return all loads of a problem.

    Raises
    ------
    ProblemError
        If no loads can say it.
    """
    if isinstance(problem, Uniform):
        return _uniform(problem)
    words = refusal(problem)
    if words is not None:
        raise ProblemError(words)
    demands = demands_of(problem)
    ranks = len(problem.topology.ranks)
    pairs = [_pair(each) for each in demands.spreads if len(each.others) == 1]
    pairs += [_pair(each)[::-1] for each in demands.sums if len(each.others) == 1]
    sizes = [each.nbytes for each in (*demands.spreads, *demands.sums) if len(each.others) == 1]
    loads = [*_copied(demands.spreads, ranks, turned=False)]
    loads += _copied(demands.sums, ranks, turned=True)
    if pairs:
        loads.append(_dealt(pairs, sizes, ranks=ranks))
    if demands.free:
        loads += _shared(demands.free, ranks)
    return tuple(loads)


def _uniform(problem: Uniform) -> tuple[Load, ...]:
    ranks, size = len(problem.topology.ranks), problem.size
    every, root = np.arange(ranks), np.array([problem.root])
    kinds = {
        "all-gather": (every, size / ranks, True, False),
        "reduce-scatter": (every, size / ranks, True, True),
        "broadcast": (root, size, True, False),
        "reduce": (root, size, True, True),
        "all-to-all": (every, size / ranks, False, False),
        "scatter": (root, size / ranks, False, False),
        "gather": (root, size / ranks, False, True),
    }
    if problem.kind == "all-reduce":
        return _shared(size, ranks)
    if problem.kind not in kinds:
        raise ProblemError(f"{problem.kind} is not the same for all; make a problem of its chunks")
    roots, nbytes, spreads, turned = kinds[problem.kind]
    return (Load(roots, np.full(len(roots), nbytes), spreads, turned),)


def _shared(nbytes: float, ranks: int) -> tuple[Load, ...]:
    """Return a sum for everybody: up the trees of its roots and down again."""
    roots, each = np.arange(ranks), np.full(ranks, nbytes)
    return tuple(Load(roots, each, spreads=True, turned=turn, free=True) for turn in (True, False))


def _pair(demand: Demand) -> tuple[int, int]:
    return demand.root, demand.others[0]


def _copied(demands: Sequence[Demand], ranks: int, *, turned: bool) -> Iterable[Load]:
    """Yield one load of what goes to everybody, and one of what goes to some."""
    some = [each for each in demands if 1 < len(each.others) < ranks - 1]
    every = [each for each in demands if 1 < len(each.others) == ranks - 1]
    for listed, all_want in ((every, True), (some, False)):
        if listed:
            roots = np.array([each.root for each in listed])
            item = np.repeat(np.arange(len(listed)), [len(each.others) for each in listed])
            rank = np.concatenate([np.array(each.others) for each in listed])
            wants = sparse.csr_array((np.ones(len(rank)), (item, rank)), (len(listed), ranks))
            sizes = np.array([each.nbytes for each in listed])
            yield Load(roots, sizes, True, turned, None if all_want else wants)


def _dealt(pairs: Sequence[tuple[int, int]], sizes: Sequence[float], *, ranks: int) -> Load:
    """Return pairs by their sources, or by their goals where these are fewer."""
    ends = np.array(pairs)
    turned = len(np.unique(ends[:, 1])) < len(np.unique(ends[:, 0]))
    if turned:
        ends = ends[:, ::-1]
    roots, item = np.unique(ends[:, 0], return_inverse=True)
    shape = len(roots), ranks
    wants = sparse.csr_array((np.array(sizes, dtype=float), (item.ravel(), ends[:, 1])), shape)
    most = wants.max(axis=1).toarray().ravel()
    wants = sparse.csr_array(sparse.diags_array(1 / most) @ wants)
    everyone = wants.nnz == len(roots) * (ranks - 1) and bool((wants.data == 1).all())
    return Load(roots, most, False, turned, None if everyone else wants)


@dataclass(frozen=True, eq=False)
class Acting:
    """A group that acts on a cluster, and on the items of loads that have devices of their own.

    Parameters
    ----------
    topology
        The cluster.
    group
        Of the cluster, or of a larger one whose first devices and links are the cluster's.
    first
        Number of the first device of each load's items, or None where an item maps as its root.
    """

    topology: Topology
    group: Group
    first: tuple[int | None, ...]

    @cached_property
    def devices(self) -> np.ndarray:
        """Where each generator takes each device of the cluster, shape (generators, devices)."""
        return np.asarray(self.group.generators[:, : len(self.topology.devices)])

    @cached_property
    def links(self) -> np.ndarray:
        """Where each generator takes each link of the cluster, shape (generators, links)."""
        return np.asarray(self.group.links[:, : len(self.topology.links)])

    @cached_property
    def gpus(self) -> np.ndarray:
        """Device of each rank, shape (ranks,)."""
        index = self.topology.index
        return np.array([index[name] for name in self.topology.ranks], dtype=np.int64)

    @cached_property
    def ranks(self) -> np.ndarray:
        """Return the orbit of each rank, shape (ranks,)."""
        return numbered(self.group.orbits()[self.gpus])

    def items(self, number: int, load: Load) -> np.ndarray:
        """Return the orbit of each item of a load, shape (items,)."""
        return numbered(self.group.orbits()[self.places(number, load)])

    def fixing(self, number: int, load: Load, *, item: int) -> Acting:
        """Return a group that leaves an item and its root where they are."""
        places = {int(self.gpus[load.roots[item]]), int(self.places(number, load)[item])}
        return replace(self, group=self.group.stabiliser(*sorted(places)))

    def fixing_rank(self, rank: int) -> Acting:
        """Return a group that leaves a rank where it is."""
        return replace(self, group=self.group.stabiliser(int(self.gpus[rank])))

    def places(self, number: int, load: Load) -> np.ndarray:
        """Return the device that stands for each item of a load, shape (items,)."""
        first = self.first[number]
        return self.gpus[load.roots] if first is None else first + np.arange(len(load.roots))

    def orbits(self, graph: FluidGraph) -> tuple[np.ndarray, np.ndarray]:
        """Return the orbit of each vertex and of each edge of a graph of the cluster."""
        if graph.edges == len(self.topology.links) and not graph.steps:
            sizes = graph.vertices, graph.edges
            return joined_orbits(self.devices, sizes[0]), joined_orbits(self.links, sizes[1])
        moves = [graph.moved(each) for each in self.devices]
        return (
            joined_orbits([vertices for vertices, _ in moves], graph.vertices),
            joined_orbits([edges for _, edges in moves], graph.edges),
        )

    def rows(self, graph: FluidGraph) -> np.ndarray:
        """Return the orbit of each capacity row: links, then shared limits, shape (rows,)."""
        links = len(self.topology.links)
        if not self.topology.limits:
            return joined_orbits(self.links, links)
        place = self.topology.link_index
        member = np.concatenate(
            [np.array([place[ends] for ends in each.links]) for each in self.topology.limits]
        )
        limit = np.repeat(
            np.arange(len(self.topology.limits)), [len(each.links) for each in self.topology.limits]
        )
        images = [
            np.concatenate([each, links + _limits_under(each, graph, limit=limit, member=member)])
            for each in self.links
        ]
        return joined_orbits(images, graph.rates.size)


def acting(topology: Topology, loads: Sequence[Load], *, costs: np.ndarray | None) -> Acting:
    """Return the symmetries of a problem that keep costs of links too."""
    if all(_regular(each) for each in loads):
        group = automorphisms(
            topology, colours=_colours(topology, loads), links=_listed(costs), steady=True
        )
        return Acting(topology, group, (None,) * len(loads))
    larger, first, colours = _with_items(topology, loads)
    extra = len(larger.links) - len(topology.links)
    links = None if costs is None else [*costs.tolist(), *[-1.0] * extra]
    group = automorphisms(larger, colours=colours, links=links, steady=True)
    return Acting(topology, group, first)


def keeps(group: Group, loads: Sequence[Load], costs: np.ndarray | None) -> bool:
    """Return whether a group of the cluster preserves the loads and the costs.

    Where not every rank gets the same only the trivial group is known to.
    """
    if group.trivial:
        return True
    topology = group.topology
    if not all(_regular(each) for each in loads):
        return False
    colours = np.array([hash(each) for each in _colours(topology, loads)])
    same = (colours[group.generators] == colours).all()
    return bool(same) and (costs is None or bool((costs[group.links] == costs).all()))


def numbered(labels: np.ndarray) -> np.ndarray:
    """Return numbers from 0 on in place of labels, equal for equal ones."""
    return np.unique(labels, return_inverse=True)[1].ravel()


def joined_orbits(images: Iterable[np.ndarray], size: int) -> np.ndarray:
    """Return the orbit of each point, numbered from 0 on, by all that moves."""
    moving = [(np.flatnonzero(each != np.arange(size)), each) for each in images]
    src = np.concatenate([np.empty(0, dtype=np.int64), *[points for points, _ in moving]])
    dst = np.concatenate([np.empty(0, dtype=np.int64), *[each[points] for points, each in moving]])
    pairs = sparse.csr_array((np.ones(len(src)), (src, dst)), shape=(size, size))
    return np.asarray(csgraph.connected_components(pairs, directed=False)[1])


def _listed(costs: np.ndarray | None) -> list[float] | None:
    return None if costs is None else costs.tolist()


def _regular(load: Load) -> bool:
    """Return whether every rank gets the same of each root."""
    return load.wants is None and len(np.unique(load.roots)) == len(load.roots)


def _colours(topology: Topology, loads: Sequence[Load]) -> list[tuple[float, ...]]:
    """Return how much each device has of each load."""
    has = np.zeros((len(topology.devices), len(loads)))
    gpus = np.array([topology.index[name] for name in topology.ranks])
    for number, load in enumerate(loads):
        has[gpus[load.roots], number] = load.nbytes
    return [tuple(row) for row in has.tolist()]


def _with_items(
    topology: Topology, loads: Sequence[Load]
) -> tuple[Topology, tuple[int, ...], list[tuple[float, ...]]]:
    """Return the cluster with a device for each item, where these begin, and all colours."""
    devices, links = list(topology.devices), list(topology.links)
    colours: list[tuple[float, ...]] = [(-1.0, 0.0)] * len(devices)
    over = 2 * max(each.bandwidth for each in topology.links)
    first = []
    for number, load in enumerate(loads):
        first.append(len(devices))
        for item, root in enumerate(load.roots.tolist()):
            name = f"load {number} item {item}"
            devices.append(device("nic", name))
            colours.append((float(number), float(load.nbytes[item])))
            links.append(Link(topology.ranks[root], name, over))
            shares = load.shares(item, len(topology.ranks))
            links += [
                Link(name, topology.ranks[rank], over * (1 + shares[rank]))
                for rank in np.flatnonzero(shares).tolist()
            ]
    larger = Topology(topology.name, tuple(devices), tuple(links), topology.limits)
    return larger, tuple(first), colours


def _limits_under(
    links: np.ndarray, graph: FluidGraph, *, limit: np.ndarray, member: np.ndarray
) -> np.ndarray:
    """Return where each shared limit goes: sets of links are matched by sums of random numbers."""
    dice = np.random.default_rng(0)
    mark = dice.integers(1 << 62, size=len(links), dtype=np.uint64)
    rates = graph.rates[len(links) :]
    own = numbered(rates).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    before, after = own.copy(), own.copy()
    np.add.at(before, limit, mark[member])
    np.add.at(after, limit, mark[links[member]])
    order = np.argsort(before, kind="stable")
    return np.asarray(order[np.searchsorted(before[order], after)])
