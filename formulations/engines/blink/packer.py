"""From a problem to trees of one root that fill a load, with and without switches.

`solve_blink` finds rate, root and halves. A `Packer` fills the load of each with trees: exactly, by
multiplicative weights, or with a few of these.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from ccl.errors import LimitReached, ProblemError
from ccl.plans import Forest, Tree
from ccl.problem import Problem
from ccl.result import Result
from formulations.core.run import Run
from formulations.engines.blink import Options, roots
from formulations.engines.forestcoll.plans import best_forest, halves, load_of, shared_rates, turned
from formulations.engines.forestcoll.search import (
    BYTES,
    Ints,
    Network,
    Rate,
    forest_rate,
    network_of,
    symmetric_links,
)
from formulations.engines.forestcoll.splitting import Packed, Route, Routes, pack, split
from formulations.engines.interval_overlay import exact_parts, refined

GRACE = 2.0
"""Seconds that packing may take whatever the limit: loading compiled code may have used it up."""


@dataclass
class Packer:
    """Packs the loads of one run.

    Parameters
    ----------
    run
        Gives limits and hears news.
    options
        How.
    begin
        When it was made.
    """

    run: Run
    options: Options
    begin: float = field(default_factory=time.perf_counter)

    @property
    def plain(self) -> bool:
        """Whether trees are packed exactly, as many as that takes."""
        return self.options.packing == "exact" and not self.options.trees

    def watch(self, done: int, of: int) -> None:
        """Stop when time is up.

        Raises
        ------
        LimitReached
            If roots are left.
        """
        if self.run.expired and done < of and time.perf_counter() - self.begin > GRACE:
            raise LimitReached(
                f"{self.run.formulation} had no trees after {self.run.seconds:.0f} s; allow more"
            )

    def trees(self, rate: Rate) -> tuple[Tree, ...]:
        """Return trees of the one root of a network, whose weights add up to 1."""
        if self.plain:
            forest = best_forest(replace(rate, reduces=False), watch=self.watch).forest
            return forest.trees
        load = load_of(rate)
        found = split(load)
        used = np.flatnonzero(found.capacity)
        ends = found.tail[used], found.head[used]
        graph = _graph(load.network, ends, np.arange(len(used)), found.capacity[used].astype(float))
        whole = float(load.trees.max())
        return self._chosen(
            graph, whole, packed=lambda: pack(load, found, stop=self.watch), paths=found.routes
        )

    def both_ways(self, rate: Rate, back: Ints, whole: float) -> tuple[Tree, ...]:
        """Return trees that go up and down on links that are the same both ways.

        Parameters
        ----------
        rate
            Of the half that goes down, for the trees of an exact packing.
        back
            Number of the link back of each.
        whole
            Best rate in GB/s.
        """
        load = load_of(rate)
        network = load.network
        first = np.minimum(np.arange(len(back)), back)
        _, row = np.unique(first, return_inverse=True)
        bandwidths = np.array([each.bandwidth for each in network.topology.links])
        graph = _graph(network, (network.src, network.dst), row, bandwidths[np.unique(first)])
        return self._chosen(graph, whole, packed=lambda: pack(load, split(load), stop=self.watch))

    def _chosen(
        self,
        graph: _Numbered,
        whole: float,
        *,
        packed: Callable[[], list[Packed]],
        paths: Routes | None = None,
    ) -> tuple[Tree, ...]:
        """Return the trees that a program chooses; `whole` is the best rate of any."""
        run, options = self.run, self.options
        pool = roots.weighted(graph, rounds=options.rounds, over=lambda: run.expired)
        run.note(f"multiplicative weights alone reach {pool.rate / whole:.2%} of the best rate")
        if options.packing == "exact":
            pool = _with(pool, graph, packed())
        best = roots.chosen(graph, pool, options.trees, backend=run.backend, time_limit=run.left)
        run.met(best.size)
        run.note(
            f"{len(best.places)} of {len(pool.arcs)} trees reach {best.rate / whole:.2%} of it"
        )
        shares = exact_parts((best.weights / best.rate).tolist())
        return _laid(graph, pool.arcs[best.places], shares, paths)


@dataclass(frozen=True, eq=False)
class _Numbered(roots.Graph):
    """A graph of ranks with the rank of each device, -1 for other devices, and the network."""

    rank: np.ndarray
    network: Network


def _graph(network: Network, ends: tuple[Ints, Ints], row: Ints, capacity: np.ndarray) -> _Numbered:
    """Return arcs between devices as a graph of ranks."""
    rank = np.full(len(network.weight), -1)
    rank[network.gpus] = np.arange(len(network.gpus))
    tail, head = (rank[each] for each in ends)
    root = int(rank[int(np.argmax(network.weight))])
    return _Numbered(len(network.gpus), root, tail, head, row, capacity, rank, network)


def _with(pool: roots.Pool, graph: _Numbered, packed: list[Packed]) -> roots.Pool:
    """Return a pool with more trees, those first."""
    rank = graph.rank
    ends = zip(graph.tail.tolist(), graph.head.tolist(), strict=True)
    number = {pair: arc for arc, pair in enumerate(ends)}
    arcs = [[number[int(rank[a]), int(rank[b])] for a, b in each.edges] for each in packed]
    more = np.array([roots.from_root(graph, np.array(each)) for each in arcs])
    every = np.concatenate([more, pool.arcs])
    _, first = np.unique(np.sort(every, axis=1), axis=0, return_index=True)
    return roots.Pool(every[np.sort(first)], pool.rate)


def _laid(
    graph: _Numbered, trees: Ints, shares: list[Fraction], paths: Routes | None
) -> tuple[Tree, ...]:
    """Return trees with the paths that they take; a tree of several paths becomes several.

    The paths of a connection are filled one after the other, each in proportion to what it carries.
    """
    names = [each.name for each in graph.network.topology.devices]
    used: defaultdict[int, Fraction] = defaultdict(Fraction)
    for arcs, share in zip(trees.tolist(), shares, strict=True):
        for arc in arcs:
            used[arc] += share
    gpus = graph.network.gpus
    left: dict[int, list[tuple[Route, Fraction]]] = {}
    for arc, share in used.items():
        ends = int(gpus[graph.tail[arc]]), int(gpus[graph.head[arc]])
        mine = [(ends, 1)] if paths is None else paths[ends]
        whole = sum(many for _, many in mine)
        left[arc] = [(path, share * many / whole) for path, many in mine]
    made = []
    for arcs, share in zip(trees.tolist(), shares, strict=True):
        taken = [_take(left[arc], share) for arc in arcs]
        for met, weight in refined(taken).items():
            routes = tuple(tuple(names[device] for device in path) for path in met)
            made.append(Tree(graph.root, routes, weight))
    return tuple(made)


def _take(paths: list[tuple[Route, Fraction]], share: Fraction) -> list[tuple[Route, Fraction]]:
    """Take paths from the front of a list until they carry a share."""
    taken = []
    while share:
        path, there = paths.pop(0)
        part = min(there, share)
        taken.append((path, part))
        share -= part
        if there > part:
            paths.insert(0, (path, there - part))
    return taken


def solve_blink(run: Run, options: Options) -> Result:
    """Offer the trees of one root.

    Raises
    ------
    ProblemError
        If the root requested is no rank.
    LimitReached
        If there was no time for any trees.
    """
    packer = Packer(run, options)
    whole = run.problem.collective.kind == "all-reduce"
    forest = _all_reduce(packer) if whole else _half(packer)
    run.note(f"{len(forest.trees)} trees of one root, {forest.depth} GPUs deep")
    run.offer(forest, message="a forest")
    return run.finish_rate()


def _half(packer: Packer) -> Forest:
    """Return the trees of a broadcast or a reduction."""
    run = packer.run
    rate = forest_rate(run.problem)
    run.prove([rate.bound])
    trees = packer.trees(rate)
    return Forest(_turned(trees) if rate.reduces else trees, reduces=rate.reduces)


def _all_reduce(packer: Packer) -> Forest:
    """Return trees that go up to a root and down again."""
    run = packer.run
    network = network_of(halves(run.problem)[1])
    root = roots.best_root(network, _requested_root(run.problem, packer.options.all_reduce_root))
    nbytes = network.share * int(network.weight.sum()) / BYTES
    run.note(
        f"root {run.problem.topology.ranks[root.rank]}: at most {float(root.into):.6g} GB/s up and "
        f"{float(root.out):.6g} GB/s down; {float(nbytes / root.into + nbytes / root.out):.6g} µs "
        "if each half had the links alone, one after the other"
    )
    back = symmetric_links(network)
    rates = roots.alone(network, root.rank)
    whole = None
    if packer.options.halves == "at once":
        shares = roots.shared_halves(network, root.rank, backend=run.backend, left=lambda: run.left)
        run.met(shares.size)
        run.note(f"both halves at once take {shares.makespan:.6g} µs in the steady state")
        whole = float(nbytes) / shares.makespan
        rates = shared_rates(run.problem, shares, backend=run.backend) or rates
    up, down = rates
    if back is None:
        return Forest(_turned(packer.trees(up)), reduces=True, spread=packer.trees(down))
    if whole is None or packer.plain or len(network.gpus) < len(network.weight):
        spread = packer.trees(down)
    else:
        spread = packer.both_ways(down, back, whole)
    return Forest(_turned(spread), reduces=True, spread=spread)


def _requested_root(problem: Problem, rank: int | None) -> int | None:
    ranks = len(problem.topology.ranks)
    if rank is not None and rank >= ranks:
        raise ProblemError(
            f"root {rank} is no rank of {problem.topology}; ranks go from 0 to {ranks - 1}"
        )
    return rank


def _turned(trees: tuple[Tree, ...]) -> tuple[Tree, ...]:
    return tuple(turned(tree) for tree in trees)
