"""Certified flow: pairs on clusters without symmetry, a flow and a bound that need not be optimal.

The linear program by source (`formulations.bounds.concurrent_flow`) is solved by a first-order
method, loosely at first and then less so, until a flow is near enough to what the prices prove.
Both hold whatever the solver says:

* the bound, by cheapest paths in whole numbers (`certified`);
* the flow, made good source by source. What runs in circles is taken out, so that vertices have
  an order. Against it, what a vertex needs, for itself and to pass on, is taken from the links
  into it in proportion to what they carry. Where they carry less than is needed, the rest comes
  straight from the source, along a path that is cheap where links have to spare. Paths are taken
  off what is left of the flow.

So each byte arrives, and a link carries no more than the solver's flow and what was lacking.

Source: bounds by prices are the duals of the thesis, LP (3.16) without time; first-order methods
for linear programs: Applegate et al., PDLP, NeurIPS 2021.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from time import perf_counter

import numpy as np

from ccl.problem import Problem
from ccl.symmetry.graphs import igraph
from formulations.bounds.concurrent_flow import LARGEST, ConcurrentFlow, certified
from formulations.bounds.cuts import BYTES, Network
from formulations.bounds.prices import Rows, rows_of
from formulations.engines.orbit_lp.lp import Paths, taken_apart
from formulations.engines.steady_state import graph_of

TOLERANCES = (5e-3, 1e-3, 1e-4, 1e-6)
"""Shares by which the solver may miss, from one attempt to the next."""

NEAR = 0.005
"""Share by which a flow may be above its bound."""

CROWDED = 4.0
"""How many times dearer than an empty link one of the busiest is for what was lacking."""

SLIGHT = 5e-4
"""Shares of what the least destination gets that a link need not carry: noise of a solver."""


@dataclass(frozen=True, eq=False)
class CertifiedFlow:
    """A flow of pairs in a steady state, and what no flow can beat.

    Parameters
    ----------
    bound
        µs that every plan takes, exactly.
    makespan
        µs that the flow takes.
    prices
        Of links and limits, which prove the bound, shape (rows,).
    columns, constraints
        Size of the linear program.
    network
        What it flows on.
    sources
        Ranks that send, shape (sources,).
    flow
        Bytes that each link carries of each of them, shape (links, sources).
    """

    bound: Fraction
    makespan: float
    prices: np.ndarray
    columns: int
    constraints: int
    network: Network
    sources: np.ndarray
    flow: np.ndarray

    def paths(self) -> Iterator[tuple[int, int, Paths]]:
        """Yield source, destination and paths of every pair that sends, shortest first."""
        graph = graph_of(self.network.problem.topology)
        for place, source in enumerate(self.sources.tolist()):
            wanted = self.network.demand.traffic[source]
            most = float(wanted.max())
            values, shares = self.flow[:, place] / most, wanted / most
            for goal, ways in taken_apart(graph, source, values, shares=shares):
                yield source, goal, ways

    @property
    def gap(self) -> float:
        """By how much the flow may be longer than the best, as a share."""
        return self.makespan / float(self.bound) - 1


def proved(problem: Problem, *, seconds: float) -> tuple[Fraction, np.ndarray, np.ndarray] | None:
    """Return µs that every plan takes, the prices of links and limits that prove it, their GB/s.

    None if the linear program would be too large.

    Parameters
    ----------
    problem
        All of whose chunks are pairs.
    seconds
        For the solver, which need not come to its end.
    """
    if too_large(problem) is not None:
        return None
    network = Network(problem)
    rows = rows_of(network, 0.0)
    program = ConcurrentFlow(network, rows)
    program.solve(seconds=seconds, tolerance=TOLERANCES[1])
    return *_proof(program, rows), rows.rates


def _proof(program: ConcurrentFlow, rows: Rows) -> tuple[Fraction, np.ndarray]:
    """Return the most that prices of the solver prove, or that simple ones do, and these prices."""
    tried = [program.prices, 1 / rows.rates, np.ones(len(rows.rates))]
    some = [each for each in tried if each.any()]
    return max(((certified(program.network, rows, each), each) for each in some), key=_first)


def _first(proof: tuple[Fraction, np.ndarray]) -> Fraction:
    return proof[0]


def too_large(problem: Problem) -> str | None:
    """Say that the linear program would have too many amounts, or None."""
    amounts = len(problem.topology.links) * len(problem.topology.ranks)
    if amounts <= LARGEST:
        return None
    return f"its linear program would have {amounts:,} amounts, and {LARGEST:,} are the most"


def certified_flows(
    problem: Problem, *, seconds: float, near: float = NEAR
) -> Iterator[CertifiedFlow]:
    """Yield better and better flows with their bounds, until one is near or the time is up.

    At least one is yielded, later than that if need be.

    Parameters
    ----------
    problem
        All of whose chunks are pairs.
    seconds
        For everything.
    near
        Share by which a flow may be above its bound.
    """
    end = perf_counter() + seconds
    network = Network(problem)
    rows = rows_of(network, 0.0)  # without waits: the steady state
    program = ConcurrentFlow(network, rows)
    best: CertifiedFlow | None = None
    for tolerance in TOLERANCES:
        program.solve(seconds=max(end - perf_counter(), 0.1), tolerance=tolerance)
        bound, prices = _proof(program, rows)
        found = _made_good(program, rows, bound=bound, prices=prices)
        if best is not None:  # either may have been nearer before
            if best.bound > found.bound:
                found = replace(found, bound=best.bound, prices=best.prices)
            if best.makespan < found.makespan:
                found = replace(best, bound=found.bound, prices=found.prices)
        best = found
        yield found
        if found.gap <= near or perf_counter() >= end:
            return


def _made_good(
    program: ConcurrentFlow, rows: Rows, *, bound: Fraction, prices: np.ndarray
) -> CertifiedFlow:
    """Return a flow in which every byte arrives."""
    network, loose = program.network, program.flow
    used = (rows.members @ loose.sum(axis=1)) / rows.rates
    crowded = 1 + CROWDED * used / max(float(used.max()), 1e-300)
    costs = (rows.members.T @ (crowded / rows.rates)).tolist()
    flow = np.zeros_like(loose)
    for place, source in enumerate(program.sources.tolist()):
        flow[:, place] = _arriving(network, loose[:, place], source=source, costs=costs)
    makespan = float(((rows.members @ flow.sum(axis=1)) / rows.rates).max()) / BYTES
    columns = program.size + 1
    constraints = len(network.problem.topology.devices) * len(program.sources) + len(rows.rates)
    return CertifiedFlow(
        bound, makespan, prices, columns, constraints, network, program.sources, flow
    )


def _arriving(network: Network, flow: np.ndarray, *, source: int, costs: list[float]) -> np.ndarray:
    """Return bytes that each link carries of a source, so that all of it arrives, (links,)."""
    root, wanted = int(network.gpus[source]), network.demand.traffic[source]
    tails, heads = network.ends.T
    least = SLIGHT * float(wanted[wanted > 0].min())
    many = len(network.problem.topology.devices)
    reached = network.graph.subcomponent(root, mode="out")
    # What a solver's noise sends from where nothing can be does not arrive.
    noise = (heads == root) | ~np.isin(tails, reached)
    flow = _without_circles(network, np.where(noise, 0.0, flow), least=least)
    kept = np.flatnonzero(flow)
    graph = igraph.Graph(n=many, edges=network.ends[kept].tolist(), directed=True)
    into = [kept[each] for each in graph.get_inclist(mode="in")]
    paths = network.graph.get_shortest_paths(root, reached, weights=costs, output="epath")
    straight = dict(zip(reached, paths, strict=True))
    # What each vertex needs: for itself, and to pass on.
    needs, carried = np.zeros(many), np.zeros(len(flow))
    needs[network.gpus] = wanted
    for vertex in reversed(graph.topological_sorting()):
        need, there = needs[vertex], float(flow[into[vertex]].sum())
        if vertex == root or need <= 0:
            continue
        if there > 0:
            taken = flow[into[vertex]] * min(1.0, need / there)
            carried[into[vertex]] += taken
            needs[tails[into[vertex]]] += taken
        if there < need:
            carried[straight[vertex]] += need - there
    return carried


def _without_circles(network: Network, flow: np.ndarray, *, least: float) -> np.ndarray:
    """Return a flow without what runs in circles, and without links that carry `least` or less.

    Along a circle all links lose what the emptiest of them carries, so no balance changes. They are
    found by going on and on from a vertex; what has been left for good is never entered again.
    """
    ends = network.ends.tolist()
    left = np.where(flow > least, flow, 0.0).tolist()
    out: defaultdict[int, list[int]] = defaultdict(list)
    for link in np.flatnonzero(flow > least).tolist():
        out[ends[link][0]].append(link)
    for start in list(out):
        path: list[int] = []
        place = {start: 0}  # of each vertex on the path: how many links lead there
        vertex = start
        while vertex != start or out[start]:
            if not out[vertex]:
                del place[vertex]
                vertex = ends[path.pop()][0]
                out[vertex].pop()
                continue
            link = out[vertex][-1]
            head = ends[link][1]
            if left[link] <= least:
                out[vertex].pop()
            elif head not in place:
                path.append(link)
                place[head] = len(path)
                vertex = head
            else:
                circle = [*path[place[head] :], link]
                amount = min(left[each] for each in circle)
                for each in circle:
                    left[each] -= amount
                for each in path[place[head] :]:
                    del place[ends[each][1]]
                del path[place[head] :]
                vertex = head
    return np.where(np.array(left) > least, left, 0.0)
