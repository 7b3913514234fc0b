"""The fluid optimum of a symmetric problem by a linear program on orbits.

`solve_orbits` takes any problem that fluid models can say, and any cluster: without symmetry it is
the plain program. How it is made stands in `formulations.engines.orbit_lp.blocks`; lifting a
solution back to links and ranks in `formulations.engines.orbit_lp.lift`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ccl.errors import ProblemError
from ccl.problem import Problem
from ccl.symmetry import Group
from ccl.topology import Topology
from formulations.engines.orbit_lp.blocks import Block, blocks_of
from formulations.engines.orbit_lp.group import Acting, acting, keeps
from formulations.engines.orbit_lp.loads import Load, Uniform, loads_of
from formulations.engines.orbit_lp.program import OrbitProgram
from formulations.engines.steady_state.graph import (
    FluidGraph,
    balanced,
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
        What the problem moves.
    acting
        The group.
    blocks
        The rows of the program, root by root.
    usage, flows
        W of each block, and F of each of its ways; see `formulations.engines.orbit_lp.blocks`.
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
        What is asked.
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
        told apart, as those of one number will be given more or less bandwidth.
    """
    topology, loads = problem.topology, loads_of(problem)
    if group is None:
        found = acting(topology, loads, costs=costs if classes is None else classes)
    elif keeps(group, loads, costs if classes is None else classes):
        found = Acting(topology, group, (None,) * len(loads))
    else:
        msg = f"a symmetry given for {topology} does not keep the collective or the costs"
        raise ProblemError(msg)
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
    """Whether R needs no duplicates, because relays can be split off; in every class, if given.

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
    """Whether what copies is a destination, so that usage decomposes into trees (Edmonds)."""
    spreading = [each for each in loads if each.spreads]
    for turned in {each.turned for each in spreading}:
        copying = {each.name for each in topology.devices} - _relays(topology, turned=turned)
        if copying != set(topology.ranks):
            return False
    return all(each.wants is None for each in spreading)


def _copying(loads: Sequence[Load], topology: Topology) -> bool:
    """Whether duplicates would change nothing: nothing spreads, or all devices may copy."""
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
            msg = f"GPU {lame[0]} may not {verb}, and in fluid models every GPU may; let it"
            raise ProblemError(msg)
        graph = without_copies(graph)
    return graph if steps is None else in_steps(graph, steps)


def _bare(graphs: dict[bool, FluidGraph], load: Load, *, steps: int | None) -> FluidGraph:
    """Return the graph without duplicates, which pairs do not need."""
    graph = graphs[load.turned]
    if (graph.toward < 0).all():
        return graph
    bare = graph_of(graph.topology)
    return bare if steps is None else in_steps(bare, steps)


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
