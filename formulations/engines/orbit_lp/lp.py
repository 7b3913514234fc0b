"""The fluid optimum of a symmetric problem by a linear program on orbits, lifted to all links.

`solve_orbits` takes any problem that fluid models can say, and any cluster: without symmetry it is
the plain program. How it is made stands in `formulations.engines.orbit_lp.program`.

`Lift` says what each link carries of each root, on demand. With g an element that takes the
representative o to an item, and h one that fixes o and takes the representative d to where g takes
what becomes the destination,

    w[g e, g o] = W[o, a(e)]          f[g h e, g o, g h d] = F[o, d, a'(e)].

Such vectors satisfy every row of the plain program. All of f would be n^2 m numbers, so they are
made one root and one destination at a time. Pairs become paths: of each origin's flow paths are
taken off until every destination has its share, for one item of each orbit; the others have images.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from ccl.errors import ProblemError
from ccl.plans import Flow, Rate
from ccl.problem import Problem
from ccl.symmetry import Carriers, Group
from ccl.topology import Topology
from formulations.engines.orbit_lp.group import Acting, Load, Uniform, acting, keeps, loads_of
from formulations.engines.orbit_lp.program import Block, OrbitProgram, Route, blocks_of
from formulations.engines.steady_state import (
    FluidGraph,
    balanced,
    breadth_first,
    graph_of,
    in_steps,
    without_copies,
)
from formulations.solvers.cvxpy_highs import Backend

Copies = Literal["auto", "exact", "free"]
"""Whether devices that may not copy have duplicates, or are taken for devices that may."""


@dataclass(frozen=True, eq=False)
class OrbitSolution:
    """An optimum that is constant on orbits.

    Parameters
    ----------
    makespan
        R in µs, for the problem's size.
    cost
        Least bytes times cost at that R, or None where no costs were given.
    exact
        Whether R is known to be reached by trees or flows; else no plan is faster, but perhaps
        none is as fast: where copies were left free, hops are limited, or what copies (a memory,
        a GPU that some data is not for) is no destination.
    columns, rows
        Size of the linear program.
    row_orbits
        Orbit of each capacity row (links, then shared limits), shape (rows,).
    busy
        Share of R that each orbit's rows are busy, shape (orbits,).
    prices
        Dual of each orbit: by how much of itself R falls for a little more bandwidth of all of
        its rows, where that is unique; they add up to 1. Shape (orbits,).
    loads
        The data that the problem sends.
    acting
        The group.
    blocks
        The rows of the program, root by root.
    usage, flows
        W of each block, and F of each of its paths; see `formulations.engines.orbit_lp.program`.
    """

    makespan: float
    cost: float | None
    exact: bool
    columns: int
    rows: int
    row_orbits: np.ndarray
    busy: np.ndarray
    prices: np.ndarray
    loads: tuple[Load, ...]
    acting: Acting
    blocks: tuple[Block, ...]
    usage: tuple[np.ndarray, ...]
    flows: tuple[tuple[np.ndarray, ...], ...]

    @property
    def group(self) -> Group:
        """The symmetries that were used."""
        return self.acting.group


@dataclass(frozen=True, eq=False)
class Made:
    """A program with what it was made from; the fields are those of `OrbitSolution`."""

    program: OrbitProgram
    loads: tuple[Load, ...]
    acting: Acting
    exact: bool


def solve_orbits(
    problem: Problem | Uniform,
    *,
    group: Group | None = None,
    copies: Copies = "auto",
    steps: int | None = None,
    costs: np.ndarray | None = None,
    backend: Backend | None = None,
    time_limit: float | None = None,
) -> OrbitSolution:
    """Return the least R, and with `costs` the least cost at it.

    Parameters
    ----------
    problem
        The problem.
    group
        Symmetries of the cluster to use; found where none are given.
    copies
        ``exact`` builds duplicates, ``free`` does not, ``auto`` only where they could matter.
    steps
        Most hops from a root to a destination, or None for any number.
    costs
        Cost of a byte on each link, shape (links,).
    backend
        The solver.
    time_limit
        Seconds for each of the two solves.

    Raises
    ------
    ProblemError
        If fluid models cannot say the problem, or the group does not keep it.
    Infeasible
        If `steps` is too small.
    LimitReached
        If the time limit came first.
    """
    backend = backend or Backend()
    made = orbit_program(problem, group=group, copies=copies, steps=steps, costs=costs)
    program = made.program
    makespan = program.fastest(backend, time_limit)
    prices, cost = program.prices, None
    if costs is not None:
        cost = program.cheapest(backend, makespan, time_limit=time_limit)
    values = program.values()
    usage = tuple(each for each, _ in values)
    columns, rows = program.size
    return OrbitSolution(
        makespan=makespan,
        cost=cost,
        exact=made.exact,
        columns=columns,
        rows=rows,
        row_orbits=program.rows,
        busy=program.busy @ np.concatenate(usage) / makespan,
        prices=prices,
        loads=made.loads,
        acting=made.acting,
        blocks=tuple(program.blocks),
        usage=usage,
        flows=tuple(tuple(each) for _, each in values),
    )


def orbit_program(
    problem: Problem | Uniform,
    *,
    group: Group | None = None,
    copies: Copies = "auto",
    steps: int | None = None,
    costs: np.ndarray | None = None,
    classes: np.ndarray | None = None,
) -> Made:
    """Return the program of a problem; the other arguments are those of `solve_orbits`.

    Parameters
    ----------
    classes
        In place of costs: a number for each link, shape (links,). Links of different numbers are
        distinguished, as those of one number will be given more or less bandwidth.
    """
    topology, loads = problem.topology, loads_of(problem)
    if group is None:
        found = acting(topology, loads, costs=costs if classes is None else classes)
    elif keeps(group, loads, costs if classes is None else classes):
        found = Acting(topology, group, (None,) * len(loads))
    else:
        raise ProblemError(
            f"a symmetry given for {topology} does not keep the collective or the costs"
        )
    whole = _copying(loads, topology)
    bare = costs is None and steps is None
    alike = whole or (bare and relays_suffice(topology, loads, classes=classes))
    split = copies == "exact" or (copies == "auto" and not alike)
    graphs = {
        turned: _graph(topology, turned=turned, split=split, steps=steps)
        for turned in {each.turned for each in loads}
    }
    blocks = [
        block
        for number, load in enumerate(loads)
        for block in blocks_of(
            number,
            load,
            graph=graphs[load.turned] if load.spreads else _bare(graphs, load, steps=steps),
            acting=found,
        )
    ]
    unit = _unit(topology, loads)
    graph = next(iter(graphs.values()))
    exact = (split or alike) and steps is None and _all_receive(topology, loads)
    return Made(OrbitProgram(blocks, found.rows(graph), unit, costs), loads, found, exact)


def relays_suffice(
    topology: Topology, loads: Sequence[Load], *, classes: np.ndarray | None = None
) -> bool:
    """Test that relays can be split off, so that R needs no duplicates; in each class, if given.

    Where every device that may not copy lets out as much as in, no shared limit holds, all other
    devices are GPUs and every GPU gets everything, the relays can be replaced by links between
    their neighbours that keep all cuts between GPUs (Bang-Jensen, Frank and Jackson, Preserving and
    increasing local edge-connectivity in mixed graphs, 1995, theorem for T-Eulerian digraphs), and
    trees fill the cuts (Edmonds). Not so for costs, numbers of steps, sums with copies in one
    program, or what only some want.
    """
    if topology.limits or len({each.turned for each in loads if each.spreads}) > 1:
        return False
    turned = any(each.turned for each in loads)
    relays = _relays(topology, turned=turned)
    others = (each for each in topology.devices if each.name not in relays)
    if any(each.kind != "gpu" for each in others) or relays & set(topology.ranks):
        return False
    if len(loads) > 1 or loads[0].wants is not None:
        return False
    return balanced(topology, relays, classes=classes)


def _all_receive(topology: Topology, loads: Sequence[Load]) -> bool:
    """Test that what copies is a destination, so that usage decomposes into trees (Edmonds)."""
    spreading = [each for each in loads if each.spreads]
    for turned in {each.turned for each in spreading}:
        copying = {each.name for each in topology.devices} - _relays(topology, turned=turned)
        if copying != set(topology.ranks):
            return False
    return all(each.wants is None for each in spreading)


def _copying(loads: Sequence[Load], topology: Topology) -> bool:
    """Return whether duplicates would change nothing: nothing spreads, or all devices may copy."""
    turned = {each.turned for each in loads if each.spreads}
    return not any(_relays(topology, turned=each) for each in turned)


def _relays(topology: Topology, *, turned: bool) -> set[str]:
    """Return the names of the devices that may not copy, or add up where the cluster is turned."""
    return {each.name for each in topology.devices if not (each.reduces if turned else each.copies)}


def _graph(topology: Topology, *, turned: bool, split: bool, steps: int | None) -> FluidGraph:
    graph = graph_of(topology.reversed() if turned else topology)
    if split:
        lame = [
            topology.devices[i].name for i in graph.device[graph.origins] if not graph.copies[i]
        ]
        if lame:
            verb = "add up" if turned else "copy"
            raise ProblemError(
                f"GPU {lame[0]} may not {verb}, and in fluid models every GPU may; let it"
            )
        graph = without_copies(graph)
    return in_steps(graph, steps)


def _bare(graphs: dict[bool, FluidGraph], load: Load, *, steps: int | None) -> FluidGraph:
    """Return the graph without duplicates, which pairs do not need."""
    graph = graphs[load.turned]
    if (graph.toward < 0).all():
        return graph
    return in_steps(graph_of(graph.topology), steps)


def _unit(topology: Topology, loads: Sequence[Load]) -> float:
    """Return µs that some GPU needs at least about: the most that one sends or receives."""
    ranks = len(topology.ranks)
    sent, got = np.zeros(ranks), np.zeros(ranks)
    for load in loads:
        counts = np.full(len(load.roots), ranks - 1.0) if load.wants is None else load.wants.sum(1)
        np.add.at(sent, load.roots, load.nbytes * (1.0 if load.spreads else counts))
        if load.wants is not None:
            got += load.wants.T @ load.nbytes
        elif load.free:
            got += load.nbytes.max()
        else:
            got += load.nbytes.sum()
            np.add.at(got, load.roots, -load.nbytes)
    most = max(each.bandwidth for each in topology.links)
    return float(max(sent.max(), got.max())) * 1e-3 / most


NOTHING = 1e-11
"""Shares below this are rounding errors of a solver."""

Paths = list[tuple[float, list[int]]]
"""Shares with the devices that they pass, adding up to 1."""


class Lift:
    """A solution written out for single roots and destinations.

    Parameters
    ----------
    solution
        Of the orbit linear program.
    """

    def __init__(self, solution: OrbitSolution) -> None:
        self.solution = solution
        self._orbits = {
            number: solution.acting.items(number, load)
            for number, load in enumerate(solution.loads)
        }
        self._carriers: dict[tuple[int, int], Carriers] = {}

    def usage(self, load: int, item: int) -> np.ndarray:
        """Return the share of an item's data that each edge carries, shape (edges,)."""
        place, block = self._block(load, item)
        values = _spread(block.edges, self.solution.usage[place])
        return _pushed(values, block.graph.moved(self._element(block, item))[1])

    def flow(self, load: int, item: int, *, rank: int) -> np.ndarray:
        """Return what is in flight from an item's root to a rank, shape (edges,)."""
        place, block = self._block(load, item)
        element = self._element(block, item)
        gpus = self.solution.acting.gpus
        source = int(np.flatnonzero(element == gpus[rank])[0])
        orbit = block.acting.group.orbits()
        number = next(
            i for i, route in enumerate(block.routes) if orbit[gpus[route.rank]] == orbit[source]
        )
        route: Route = block.routes[number]
        inner = self._carried(block.acting, int(gpus[route.rank]), target=source)
        values = _spread(route.edges, self.solution.flows[place][number])
        return _pushed(values, block.graph.moved(element[inner])[1])

    def paths(self) -> Iterator[tuple[int, int, Paths]]:
        """Yield source, destination and paths of every pair; data that may be copied has none.

        Each path leads from the source to the destination, on collected data too.
        """
        ranks = len(self.solution.acting.gpus)
        for number, load in enumerate(self.solution.loads):
            if load.spreads:
                continue
            first: dict[int, list[tuple[int, Paths]]] = {}
            for item, root in enumerate(load.roots.tolist()):
                place, block = self._block(number, item)
                if place not in first:
                    shares = load.shares(block.item, ranks)
                    values = _spread(block.edges, self.solution.usage[place])
                    found = taken_apart(block.graph, block.root, values, shares=shares)
                    first[place] = list(found)
                element = self._element(block, item)
                rank = np.full(len(element), -1)
                rank[self.solution.acting.gpus] = np.arange(ranks)
                for goal, paths in first[place]:
                    there = int(rank[element[self.solution.acting.gpus[goal]]])
                    images = [(share, element[path].tolist()) for share, path in paths]
                    if load.turned:
                        yield there, root, [(share, path[::-1]) for share, path in images]
                    else:
                        yield root, there, images

    def _block(self, load: int, item: int) -> tuple[int, Block]:
        orbits = self._orbits[load]
        return next(
            (place, block)
            for place, block in enumerate(self.solution.blocks)
            if block.load == load and orbits[block.item] == orbits[item]
        )

    def _element(self, block: Block, item: int) -> np.ndarray:
        """Return an element that brings the representative of a block to an item."""
        acting, load = self.solution.acting, self.solution.loads[block.load]
        places = acting.places(block.load, load)
        return self._carried(acting, int(places[block.item]), target=int(places[item]))

    def _carried(self, acting: Acting, device: int, *, target: int) -> np.ndarray:
        key = id(acting), device
        if key not in self._carriers:
            self._carriers[key] = acting.group.carriers(device)
        return np.asarray(self._carriers[key].to(target)[: len(acting.topology.devices)])


def taken_apart(
    graph: FluidGraph, root: int, values: np.ndarray, *, shares: np.ndarray
) -> Iterator[tuple[int, Paths]]:
    """Yield each destination of a flow with its paths, shortest first.

    What is left of a flow after a path has been taken off is a flow again, so whoever still lacks
    something can be reached.

    Parameters
    ----------
    graph
        What it flows on.
    root
        Rank where it begins.
    values
        What each edge carries, in shares of what the one who gets most gets, shape (edges,).
    shares
        What each rank gets, shape (ranks,).
    """
    ahead: defaultdict[int, dict[int, float]] = defaultdict(dict)
    for edge in np.flatnonzero(values > NOTHING).tolist():
        ahead[int(graph.src[edge])][int(graph.dst[edge])] = float(values[edge])
    start = int(graph.origins[root])
    for rank in np.flatnonzero(shares).tolist():
        goal, left = int(graph.goals[rank]), float(shares[rank])
        paths: Paths = []
        while left > NOTHING * 100 and (path := _shortest(ahead, start, goal=goal)):
            amount = min([left, *[ahead[a][b] for a, b in pairwise(path)]])
            for a, b in pairwise(path):
                ahead[a][b] -= amount
                if ahead[a][b] <= NOTHING:
                    del ahead[a][b]
            left -= amount
            paths.append((amount, graph.device[path].tolist()))
        whole = sum(amount for amount, _ in paths)
        yield rank, [(amount / whole, path) for amount, path in paths]


def flow_along(problem: Problem, paths: dict[tuple[int, int], Paths]) -> Flow:
    """Return the steady state in which every chunk flows along the paths of its pair."""
    names = [each.name for each in problem.topology.devices]
    rates = []
    for number, chunk in enumerate(problem.collective.chunks):
        if chunk.in_place:
            continue
        amounts: defaultdict[tuple[int, int], float] = defaultdict(float)
        for share, path in paths[chunk.holders[0], chunk.destinations[0]]:
            for ends in pairwise(path):
                amounts[ends] += share
        rates += [Rate(number, names[a], names[b], share) for (a, b), share in amounts.items()]
    return Flow(tuple(rates))


def _shortest(
    ahead: defaultdict[int, dict[int, float]], start: int, *, goal: int
) -> list[int] | None:
    """Return a path with fewest edges over what is left, or None."""
    came = breadth_first(start, lambda vertex: ahead.get(vertex, ()))
    if goal not in came:
        return None
    path = [goal]
    while path[-1] != start:
        path.append(came[path[-1]])
    return path[::-1]


def _spread(labels: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the value of each edge from that of its orbit, 0 where it has none."""
    return np.asarray(np.append(values, [0.0])[labels])


def _pushed(values: np.ndarray, image: np.ndarray) -> np.ndarray:
    """Return the values where a permutation takes them."""
    moved = np.empty_like(values)
    moved[image] = values
    return moved
