"""Direct: every holder sends each chunk straight to each of its destinations, all at once.

One step, in which a GPU's chunks leave in turn: the one of rank i sends first to rank i + 1, then
to i + 2, and so on, so that no two begin with the same destination. On one port

    α + (p-1)/p mβ      all-gather, reduce-scatter, all-to-all, gather, scatter,
    α + (p-1) mβ        broadcast, reduce;

on several it takes less. An all-reduce has two such steps: everyone sends its contribution to a
shard to the one that adds it up, which sends the sum to all,  2 α + 2 (p-1)/p mβ.  (Thakur,
Rabenseifner, Gropp, IJHPCA 2005, section 6, with all partners at once.)

Where no path over switches joins two GPUs, the chunk takes the quickest path over other devices,
and a GPU along the path that has it already sends it on. Reductions are the time reversal: every
contribution goes straight to where it is added.

Decision: paths over other GPUs that are quicker than those over switches alone are tried besides,
on a grid of epochs, and the better plan counts. Where there are many sends that is left out unless
there is such a path, and always where there are very many. So are custom demands, whose chunks may
have several holders, of which the nearest sends; they have no formula.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from ccl.collective import COLLECTIVES
from ccl.errors import LimitReached, SolveError
from ccl.problem import Problem
from ccl.result import SAME, Result, Stop
from ccl.topology import Topology
from formulations.core.refusals import no_stores
from formulations.core.registry import Formulation, NoOptions
from formulations.core.run import Run
from formulations.engines.closed_forms.hosts import by_rank
from formulations.engines.closed_forms.routing import Formula, Pattern
from formulations.engines.closed_forms.steps import answer
from formulations.engines.closed_forms.steps import refuses as refused
from formulations.engines.closed_forms.trees import EVERYONE, Messages, Task
from formulations.engines.epoch_grid.arcs import link_arcs
from formulations.engines.epoch_grid.epochs import EpochGrid, longest_hop
from formulations.engines.epoch_grid.plans import demand
from formulations.engines.reverse_time import irreversible, search
from formulations.engines.te_ccl.greedy import place

MOST_SENDS = 300_000
"""Chunks times destinations above which no paths are tried on a grid: 260,000 take a minute."""
SOON = 20_000
"""Sends that are placed whatever the limit: there is a plan in a few seconds then."""

EACH = 1e-4
"""Seconds that a send takes to be placed, verified and replayed, about."""

_Transfer = tuple[int, int, tuple[str, ...]]
"""Its turn, the chunk and the path."""


def refuses(problem: Problem) -> str | None:
    """Leave limited buffers, sums of unequal chunks and too many sends to other formulations."""
    if (reason := no_stores(problem)) is not None:
        return reason
    collective = problem.collective
    if _too_many(problem) is not None and (sends := _sends(problem)) > MOST_SENDS:
        return (
            f"it would place {sends:,} sends one by one, and {MOST_SENDS:,} are the most; use list"
        )
    if collective.reduces and len({chunk.size for chunk in collective.chunks}) > 1:
        return "its chunks differ in size, and here the halves of a reduction share one epoch"
    return irreversible(problem)


def _too_many(problem: Problem) -> str | None:
    return refused(problem, straight=True)


def _sends(problem: Problem) -> int:
    collective = problem.collective
    spread = sum(len(each.destinations) for each in collective.chunks)
    added = sum(len(each.holders) for each in collective.chunks) if collective.reduces else 0
    return spread + added


def run(run: Run, options: NoOptions) -> Result:
    """Send every chunk on its quickest path.

    Raises
    ------
    LimitReached
        If others find a plan, and this would take longer than there is time.
    """
    problem, sends = run.problem, _sends(run.problem)
    if EACH * sends > run.grace - run.seconds:
        raise LimitReached(f"{sends:,} sends would take about {EACH * sends:.0f} s")
    if problem.collective.kind != "custom" and _too_many(problem) is None:
        pattern = Pattern(by_rank(problem.topology), _sent, _formula(problem), one_port=True)
        try:
            answer(run, pattern)
        except SolveError as error:
            run.note(f"without a formula: {error}")
    if run.enough or (run.expired and run.best is not None):
        return run.end(Stop.TIME_LIMIT)
    if run.best is not None and sends > SOON and (sends > MOST_SENDS or not _detours(problem)):
        return run.end(Stop.CONSTRUCTED)
    if run.closed_form is not None:
        run.closed_form = replace(run.closed_form, elsewhere=True)
    try:
        return search(run, options, _find)
    except LimitReached:
        if run.best is None:
            raise
        return run.end(Stop.TIME_LIMIT)


def _detours(problem: Problem) -> bool:
    """Return whether paths over other GPUs or memories are quicker than over switches alone."""
    topology, size = problem.topology, problem.collective.chunk_size
    many, (src, dst) = len(topology.devices), topology.ends
    stores = np.array([each.stores for each in topology.devices])
    took = np.array([link.transfer_time(size) for link in topology.links])
    took = np.maximum(took, np.finfo(float).tiny)
    ranks = np.array([topology.index[name] for name in topology.ranks])
    # What stores ends a path: whoever is reached is another than the one who can be left.
    ended = np.where(stores[dst], dst + many, dst)
    every = sparse.csr_array((took, (src, dst)), shape=(many, many))
    over_switches = sparse.csr_array((took, (src, ended)), shape=(2 * many, 2 * many))
    least = csgraph.dijkstra(every, indices=ranks)[:, ranks]
    straight = csgraph.dijkstra(over_switches, indices=ranks)[:, ranks + many]
    return bool((least < straight * (1 - SAME))[~np.eye(len(ranks), dtype=bool)].any())


def _sent(task: Task) -> Messages:
    """Send each chunk to its goal or to all, the next places first."""
    p = task.places
    parts = []
    for turn in range(1, p):
        goal = (task.root + turn) % p
        going = (task.goal == goal) | (task.goal == EVERYONE)
        step = np.zeros(int(going.sum()), dtype=np.int64)
        parts.append(Messages(step, task.chunk[going], task.root[going], goal[going]))
    return Messages.joined(parts)


def _formula(problem: Problem) -> Formula:
    p, size = len(problem.topology.ranks), problem.collective.size
    if problem.collective.kind in ("broadcast", "reduce"):
        return Formula("α + (p-1) mβ", lambda alpha, beta: alpha + (p - 1) * size * beta)
    times = 2 if problem.collective.kind == "all-reduce" else 1
    return Formula(
        "2 α + 2 (p-1)/p mβ" if times == 2 else "α + (p-1)/p mβ",
        lambda alpha, beta: times * (alpha + (p - 1) / p * size * beta),
    )


def _find(run: Run, _: NoOptions) -> Stop:
    problem = run.problem
    topology, collective = problem.topology, problem.collective
    size, ranks = collective.chunk_size, len(topology.ranks)
    quickest = _quickest(topology, size)
    # A whole hop of the largest chunk, so that smaller ones take as many epochs as it.
    tau = run.epoch_duration or longest_hop(topology, size)
    hops = link_arcs(EpochGrid(topology, size, tau, reverse_time=run.reverse_time))
    transfers: list[_Transfer] = []
    for number, chunk in enumerate(collective.chunks):
        for rank in chunk.destinations:
            if rank in chunk.holders:
                continue
            name = topology.ranks[rank]
            near = [each for each in chunk.holders if name in quickest[topology.ranks[each]]]
            turn, holder = min(((rank - each) % ranks, each) for each in near)
            path = quickest[topology.ranks[holder]][name]
            transfers.append((turn, number, tuple(path)))
    transfers.sort()
    run.offer(place(_in_time(run, transfers), hops, demand(problem)))
    return Stop.CONSTRUCTED


def _in_time(run: Run, transfers: list[_Transfer]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield chunks and their paths; many take long to be placed one by one."""
    for done, (_, chunk, path) in enumerate(transfers):
        if done >= SOON and run.expired:
            raise LimitReached(
                f"only {done:,} of {len(transfers):,} sends were placed in time; give more, or use "
                "list"
            )
        yield chunk, path


def _quickest(topology: Topology, size: float) -> dict[str, dict[str, list[str]]]:
    """Return the paths between devices that take a chunk of `size` bytes the shortest time."""
    import networkx as nx  # noqa: PLC0415  only paths over other devices need it

    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(topology.index)
    for link in topology.links:
        graph.add_edge(link.src, link.dst, weight=link.transfer_time(size))
    return dict(nx.all_pairs_dijkstra_path(graph))


FORMULATION = Formulation(
    name="direct",
    title="Direct",
    reference="Thakur, Rabenseifner, Gropp, IJHPCA 2005 (pairwise exchange)",
    collectives=frozenset(COLLECTIVES),
    refuses=refuses,
    run=run,
)
